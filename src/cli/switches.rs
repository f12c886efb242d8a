//! Switches given beside the lanes, for every lane that has none of its own.

use crate::expand::Kind;
use crate::pipeline::Recipe;
use crate::pipeline::recipe::escaped;
use crate::project::Variant;

/// Switches given beside the lanes.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct SwitchArgs {
    /// Re-rank by MMR with this λ, from 0 to 1.
    #[arg(long, value_name = "LAMBDA", conflicts_with = "diversify")]
    pub mmr: Option<String>,
    /// Expand the query: perspectives, keqe, csqe or rm3.
    #[arg(long, value_name = "KIND")]
    pub expand: Option<Kind>,
    /// Project the query: pap, pap-plus, cast, add, concat, dual-sum, tri-sum …
    #[arg(long, value_name = "KIND")]
    pub pap: Option<Variant>,
    /// The perspective to project toward, by number from 1, or =TEXT; the second if not given.
    #[arg(long, value_name = "N", requires = "pap")]
    pub toward: Option<String>,
    /// Re-rank by the model's verdicts: xquad or pm2, perhaps with @λ.
    #[arg(long, value_name = "KIND")]
    pub diversify: Option<String>,
}

impl SwitchArgs {
    /// The recipes with these switches where they have none of their own; a lane that has no use for one goes without, and that
    /// is told.
    ///
    /// # Errors
    /// A switch is not what it should be, or no lane has a use for it.
    pub fn applied(&self, recipes: Vec<Recipe>) -> anyhow::Result<Vec<Recipe>> {
        let mut wanted: Vec<(&str, String)> = Vec::new();
        wanted.extend(self.mmr.as_ref().map(|lambda| ("--mmr", format!("mmr@{lambda}"))));
        wanted.extend(self.expand.map(|kind| ("--expand", kind.to_string())));
        let toward = self.toward.as_deref().unwrap_or("2").trim();
        let toward = match toward.strip_prefix('=') {
            Some(text) => format!("={}", escaped(text)),
            None => toward.to_owned(),
        };
        let option = if self.toward.is_some() { "--pap with --toward" } else { "--pap" };
        wanted.extend(self.pap.map(|variant| (option, format!("{variant}@{toward}"))));
        wanted.extend(self.diversify.clone().map(|kind| ("--diversify", kind)));
        let mut switched = recipes.clone();
        for (option, name) in wanted {
            let given = format!("hybrid+{name}").parse::<Recipe>();
            let given = given.map_err(|error| anyhow::anyhow!("{option}: expected {}", error.expected()))?;
            let mut without = Vec::new();
            for recipe in &mut switched {
                match format!("{}+{name}", recipe.plain()).parse::<Recipe>() {
                    Ok(_) => recipe.switches = recipe.switches.clone().or(&given.switches),
                    Err(error) => without.push((recipe.to_string(), error.expected().to_owned())),
                }
            }
            match without.first() {
                Some((_, expected)) if without.len() == switched.len() => {
                    anyhow::bail!("{option}: no lane has a use for it; expected {expected}")
                }
                Some(_) => {
                    let lanes: Vec<&str> = without.iter().map(|(lane, _)| lane.as_str()).collect();
                    eprintln!(
                        "parallax: {option} is left out of {}, which has no use for it",
                        lanes.join(", ")
                    );
                }
                None => {}
            }
        }
        Ok(switched)
    }
}
