//! The variants by name.

use std::fmt;
use std::str::FromStr;

/// How a passage is scored, after Tables 4 and 8 of the paper; all similarities are cosines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Variant {
    /// `cos(q, c)`.
    #[default]
    None,
    /// `cos(r + p, c)`.
    Add,
    /// `cos(q + p, c)`.
    AddPlus,
    /// `cos([r; p], [c; p])`.
    Concat,
    /// `cos([q; p], [c; p])`.
    ConcatPlus,
    /// `cos(q − p, c)`.
    Cast,
    /// `cos(q − p, c − p)`.
    CastPlus,
    /// `cos(r, c) + cos(p, c)`.
    DualSum,
    /// `cos(r, c) + cos(p, c) + cos(q, c)`.
    TriSum,
    /// `cos(proj q, c)`.
    Pap,
    /// `cos(proj q, proj c)`.
    PapPlus,
}

impl Variant {
    /// All of them, in the order of the paper's tables.
    pub const ALL: [Variant; 11] = [
        Variant::None,
        Variant::Add,
        Variant::AddPlus,
        Variant::Concat,
        Variant::ConcatPlus,
        Variant::Cast,
        Variant::CastPlus,
        Variant::DualSum,
        Variant::TriSum,
        Variant::Pap,
        Variant::PapPlus,
    ];

    /// The name in recipes and tables.
    pub fn name(self) -> &'static str {
        match self {
            Variant::None => "none",
            Variant::Add => "add",
            Variant::AddPlus => "add-plus",
            Variant::Concat => "concat",
            Variant::ConcatPlus => "concat-plus",
            Variant::Cast => "cast",
            Variant::CastPlus => "cast-plus",
            Variant::DualSum => "dual-sum",
            Variant::TriSum => "tri-sum",
            Variant::Pap => "pap",
            Variant::PapPlus => "pap-plus",
        }
    }

    /// Whether the perspective is taken away from the query, so that `q − r` stands in for one that is missing.
    pub fn removes(self) -> bool {
        matches!(self, Variant::Cast | Variant::CastPlus | Variant::Pap | Variant::PapPlus)
    }
}

impl fmt::Display for Variant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No variant has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is no projection; expected one of add, concat, cast, pap (each also with -plus), dual-sum, tri-sum"
)]
pub struct UnknownVariant(String);

impl FromStr for Variant {
    type Err = UnknownVariant;

    fn from_str(text: &str) -> Result<Self, UnknownVariant> {
        // The paper writes `PAP+`.
        let name = text.trim().to_ascii_lowercase().replace('+', "-plus");
        Variant::ALL
            .into_iter()
            .find(|variant| variant.name() == name)
            .ok_or_else(|| UnknownVariant(text.to_owned()))
    }
}
