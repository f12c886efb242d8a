//! Reads the settings from a file's text, writes them in the same format, and watches the file for changes on a thread of its own.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fmt, fs, thread};

use clap::ValueEnum;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Collector, Problem, Problems, in_order, keys, suggest};
use crate::input::open_regular;
use crate::report::marks::Glyphs;
use crate::tui::keymap::{Bound, Context, Keymap};
use crate::tui::theme::Look;
use crate::web::engines::ProviderError;
use crate::web::{Provider, is_contact};

/// The names at the top level: settings and tables.
const SETTINGS: [&str; 9] =
    ["theme", "glyphs", "tint", "pictures", "mouse", "contact", "provider", "layout", "keys"];
/// The names of the settings in `[layout]`.
const SIZES: [&str; 2] = ["lane-width", "passage-rows"];

/// The settings.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Config {
    /// The colours; `None` if neither the file nor an option names them.
    pub look: Option<Look>,
    /// The characters of marks, frames and bars.
    pub glyphs: Glyphs,
    /// Whether titles stand on a faint tint of their side's colour.
    pub tint: Tint,
    /// How plots are drawn as pictures.
    pub pictures: Pictures,
    /// Whether the mouse is captured.
    pub mouse: Mouse,
    /// Where the user can be reached, for wikis that ask programs for it.
    pub contact: Option<String>,
    /// What finds pages for a corpus from the web.
    pub provider: Provider,
    /// Sizes of lanes and passages.
    pub layout: Layout,
    /// The keys of actions.
    pub keys: Arc<Keymap>,
}

/// How plots are drawn as pictures; braille where there are none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pictures {
    /// As the terminal is known to show them.
    #[default]
    Auto,
    /// Not at all.
    Off,
    /// By kitty's graphics protocol.
    Kitty,
    /// By iTerm2's inline images.
    ITerm2,
    /// As sixels.
    Sixel,
}

impl Pictures {
    /// All values with their names.
    const NAMES: [(&str, Pictures); 5] = [
        ("auto", Pictures::Auto),
        ("off", Pictures::Off),
        ("kitty", Pictures::Kitty),
        ("iterm2", Pictures::ITerm2),
        ("sixel", Pictures::Sixel),
    ];

    /// The way of this terminal, by what terminals say of themselves in the environment; `variable` returns one. Multiplexers pass no pictures
    /// on.
    pub fn of_terminal(self, variable: impl Fn(&str) -> Option<String>) -> Self {
        let set = |name: &str| variable(name).unwrap_or_default();
        let (term, program) = (set("TERM"), set("TERM_PROGRAM"));
        let inside = !set("TMUX").is_empty() || !set("STY").is_empty();
        match self {
            Pictures::Auto if inside || term.starts_with("screen") || term.starts_with("tmux") => {
                Pictures::Off
            }
            Pictures::Auto if !set("KITTY_WINDOW_ID").is_empty() => Pictures::Kitty,
            Pictures::Auto if ["xterm-kitty", "xterm-ghostty"].contains(&&*term) => Pictures::Kitty,
            Pictures::Auto if ["iTerm.app", "WezTerm", "mintty"].contains(&&*program) => Pictures::ITerm2,
            Pictures::Auto if ["foot", "mlterm", "yaft"].iter().any(|name| term.starts_with(name)) => {
                Pictures::Sixel
            }
            Pictures::Auto if term.contains("sixel") => Pictures::Sixel,
            Pictures::Auto => Pictures::Off,
            chosen => chosen,
        }
    }
}

/// Whether titles stand on a faint tint of their side's colour, where the terminal has 24-bit colour.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Tint {
    /// They do.
    #[default]
    On,
    /// They do not.
    Off,
}

/// Whether the mouse is captured. While it is, the terminal does not select text with it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mouse {
    /// The explorer captures it.
    #[default]
    On,
    /// The terminal keeps it.
    Off,
}

/// Sizes of lanes and passages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The fewest columns of a lane that is shown next to others; narrower lanes become tabs.
    pub lane_width: u16,
    /// The most rows of a passage in a list.
    pub passage_rows: u16,
}

impl Default for Layout {
    fn default() -> Self {
        Layout { lane_width: 32, passage_rows: 3 }
    }
}

impl Config {
    /// The colours.
    pub fn look(&self) -> Look {
        self.look.unwrap_or_default()
    }
}

/// Reads a configuration. Returns the settings that could be read, and all problems.
pub fn read(text: &str) -> (Config, Vec<Problem>) {
    let mut problems = Collector::of(text);
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        problems.add(error.span().unwrap_or(0..0), error.message().trim().replace('\n', "; "));
    }
    let syntax = errors.len();
    let mut config = Config::default();
    for (name, value) in in_order(table.get_ref()) {
        match name.get_ref().as_ref() {
            "theme" => {
                let all = Look::value_variants().iter().map(|look| (look.name(), *look));
                config.look = problems.one_of(value, all.collect());
            }
            "glyphs" => {
                let all = vec![("unicode", Glyphs::Shapes), ("ascii", Glyphs::Ascii)];
                config.glyphs = problems.one_of(value, all).unwrap_or_default();
            }
            "mouse" => match value.get_ref().as_bool() {
                Some(on) => config.mouse = if on { Mouse::On } else { Mouse::Off },
                None => problems.expected("true or false", value),
            },
            "tint" => match value.get_ref().as_bool() {
                Some(on) => config.tint = if on { Tint::On } else { Tint::Off },
                None => problems.expected("true or false", value),
            },
            "pictures" => {
                config.pictures = problems.one_of(value, Pictures::NAMES.to_vec()).unwrap_or_default();
            }
            "contact" => match value.get_ref().as_str().map(str::trim) {
                Some("") => config.contact = None,
                Some(contact) if is_contact(contact) => config.contact = Some(contact.to_owned()),
                _ => problems
                    .expected("an address such as \"you@example.org\" or \"https://example.org/you\"", value),
            },
            "provider" => match value.get_ref().as_str().and_then(|text| text.parse().ok()) {
                Some(provider) => config.provider = provider,
                None => problems.expected(&ProviderError.to_string().replacen("expected ", "", 1), value),
            },
            "layout" => config.layout = layout(value, &mut problems),
            "keys" => config.keys = Arc::new(keys::read(value, &mut problems)),
            unknown => {
                let what = format!("there is no setting `{unknown}`; {}", suggest(unknown, &SETTINGS));
                problems.add(name.span(), what);
            }
        }
    }
    (config, problems.in_order(syntax))
}

fn layout(value: &Spanned<DeValue<'_>>, problems: &mut Collector<'_>) -> Layout {
    let mut layout = Layout::default();
    let Some(table) = problems.table(value, "lane-width = 32") else { return layout };
    for (name, value) in in_order(table) {
        match name.get_ref().as_ref() {
            "lane-width" => layout.lane_width = problems.number(value, 20..201).unwrap_or(layout.lane_width),
            "passage-rows" => {
                layout.passage_rows = problems.number(value, 1..11).unwrap_or(layout.passage_rows)
            }
            unknown => {
                let what =
                    format!("there is no setting `{unknown}` in [layout]; {}", suggest(unknown, &SIZES));
                problems.add(name.span(), what);
            }
        }
    }
    layout
}

/// Writes a whole configuration file, which names the theme too. Reading it gives the same settings.
impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (plain, layout) = (Config::default(), self.layout);
        let look = |config: &Config| format!("{:?}", config.look().name());
        let glyphs = |config: &Config| match config.glyphs {
            Glyphs::Shapes => "\"unicode\"".to_owned(),
            Glyphs::Ascii => "\"ascii\"".to_owned(),
        };
        let mouse = |config: &Config| (config.mouse == Mouse::On).to_string();
        let looks = "terminal, light, dark, deuteranopia, mono";
        writeln!(f, "theme = {}", line(look(self), look(&plain), looks))?;
        writeln!(f, "glyphs = {}", line(glyphs(self), glyphs(&plain), "unicode, ascii"))?;
        let left = "false leaves it to the terminal, which selects text with it";
        writeln!(f, "mouse = {}", line(mouse(self), mouse(&plain), left))?;
        let tint = |config: &Config| (config.tint == Tint::On).to_string();
        let tinted = "titles on a faint tint of their side's colour, with 24-bit colour";
        writeln!(f, "tint = {}", line(tint(self), tint(&plain), tinted))?;
        let pictures = |config: &Config| {
            let name = Pictures::NAMES.iter().find(|(_, value)| *value == config.pictures);
            format!("\"{}\"", name.map_or("auto", |(name, _)| name))
        };
        let plots = "plots as pictures: auto, off, kitty, iterm2 or sixel";
        writeln!(f, "pictures = {}", line(pictures(self), pictures(&plain), plots))?;
        let contact = |config: &Config| format!("{:?}", config.contact.as_deref().unwrap_or_default());
        let reached = "where you can be reached; wikis refuse programs without it";
        writeln!(f, "contact = {}", line(contact(self), contact(&plain), reached))?;
        let provider = |config: &Config| format!("{:?}", config.provider.to_string());
        let finds = "the search engine or wiki for `corpus from-web`; takes the values of --provider";
        writeln!(f, "provider = {}", line(provider(self), provider(&plain), finds))?;
        let (width, rows) = (layout.lane_width, layout.passage_rows);
        let (usual_width, usual_rows) = (plain.layout.lane_width, plain.layout.passage_rows);
        let narrow = "columns that a lane needs to stand beside others";
        let most = "rows of a passage in a list, at most";
        writeln!(f, "\n[layout]\nlane-width = {}", line(width.to_string(), usual_width.to_string(), narrow))?;
        writeln!(f, "passage-rows = {}", line(rows.to_string(), usual_rows.to_string(), most))?;
        let preset = |config: &Config| format!("{:?}", config.keys.preset.name());
        writeln!(f, "\n[keys]\npreset = {}", line(preset(self), preset(&plain), "default, vim"))?;
        let mut places: Vec<Context> = Vec::new();
        for bound in self.keys.lines() {
            if !places.contains(&bound.line.context) {
                places.push(bound.line.context);
            }
        }
        for place in places {
            writeln!(f, "\n[keys.{}]", place.key())?;
            for bound in self.keys.of_context(place) {
                writeln!(f, "{} = {}", bound.line.action.name(), key_line(bound))?;
            }
        }
        Ok(())
    }
}

/// Returns a value with its explanation, and with the default if it differs.
fn line(value: String, default: String, about: &str) -> String {
    let differs = if value == default { String::new() } else { format!("; the default is {default}") };
    format!("{value}  # {about}{differs}")
}

fn key_line(bound: &Bound) -> String {
    let usual: Vec<String> = bound.line.keys.iter().map(ToString::to_string).collect();
    line(list(&bound.keys), list(&usual), bound.line.help)
}

/// Writes one key or a list of keys. No key is a control character, so two escapes are enough.
fn list(keys: &[String]) -> String {
    let quote = |key: &String| format!("\"{}\"", key.replace('\\', r"\\").replace('"', "\\\""));
    let quoted: Vec<String> = keys.iter().map(quote).collect();
    match quoted.as_slice() {
        [one] => one.clone(),
        all => format!("[{}]", all.join(", ")),
    }
}

/// The most bytes of a configuration, which is a page or two; a longer file is something else.
pub(super) const LONGEST: u64 = 1 << 20;

/// The source of a configuration, and what overrides it.
#[derive(Clone, Debug, Default)]
pub struct Source {
    /// The file; `None` if the system has no folder for it.
    pub path: Option<PathBuf>,
    /// Whether the user named the file. Then it must exist.
    pub named: bool,
    /// A theme from a flag or the environment.
    pub look: Option<Look>,
    /// Whether a flag or the environment wants plain ASCII.
    pub ascii: bool,
}

impl Source {
    /// Reads the file. A file that the user did not name may be absent.
    ///
    /// # Errors
    /// The file cannot be read or has problems. Then none of its settings are used.
    pub fn load(&self) -> Result<Config, Problems> {
        let mut config = match &self.path {
            Some(path) if self.named || path.exists() => self.file(path)?,
            _ => Config::default(),
        };
        config.look = self.look.or(config.look);
        if self.ascii {
            config.glyphs = Glyphs::Ascii;
        }
        Ok(config)
    }

    fn file(&self, path: &Path) -> Result<Config, Problems> {
        let whole = |what: String| Problems { file: path.into(), all: vec![Problem::of_file(what)] };
        let bytes = bytes(path).map_err(|error| whole(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let before = String::from_utf8_lossy(&error.as_bytes()[..good]).into_owned();
            let what = "expected UTF-8 text; convert the file with `iconv -t utf-8`".to_owned();
            Problems { file: path.into(), all: vec![Problem::at(&before, good, what)] }
        })?;
        let (config, all) = read(&text);
        if all.is_empty() { Ok(config) } else { Err(Problems { file: path.into(), all }) }
    }

    /// Returns a value that differs once the file has changed.
    fn stamp(&self) -> Option<(u64, Option<SystemTime>)> {
        let about = fs::metadata(self.path.as_ref()?).ok()?;
        Some((about.len(), about.modified().ok()))
    }
}

/// The reason why a configuration file was not read.
#[derive(Debug, thiserror::Error)]
enum FileError {
    #[error("expected a file, found a folder; name the file in it")]
    Folder,
    #[error("no such file; `parallax config show` prints one to begin with")]
    Missing,
    #[error("expected at most 1 MB; this file is larger, so it is probably not a configuration")]
    TooLong,
    #[error(transparent)]
    Io(io::Error),
}

fn bytes(path: &Path) -> Result<Vec<u8>, FileError> {
    if path.is_dir() {
        return Err(FileError::Folder);
    }
    let file = open_regular(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => FileError::Missing,
        _ => FileError::Io(error),
    })?;
    let mut bytes = Vec::new();
    file.take(LONGEST + 1).read_to_end(&mut bytes).map_err(FileError::Io)?;
    if bytes.len() as u64 > LONGEST {
        return Err(FileError::TooLong);
    }
    Ok(bytes)
}

/// Decides which configurations are worth a report.
struct Reported {
    /// The last configuration without problems.
    last: Config,
    /// Whether a configuration with problems came after it.
    wrong: bool,
}

impl Reported {
    /// Whether to report what was read: it differs from the last configuration, has problems, or had problems before.
    fn is_news(&mut self, read: &Result<Config, Problems>) -> bool {
        let was = std::mem::replace(&mut self.wrong, read.is_err());
        match read {
            Ok(config) => was | (std::mem::replace(&mut self.last, config.clone()) != *config),
            Err(_) => true,
        }
    }
}

/// The longest delay before a change is noticed.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts a thread that passes every changed configuration, or the problems of a changed file, to `report`, until `report` returns false.
///
/// The thread polls the size and time of the file: change notifications differ from system to system and do not come from network disks.
/// It does not read pipes and devices (a pipe can be read only once); a file that disappears counts as changed.
///
/// # Errors
/// The thread cannot be started.
pub fn watch(
    source: Source,
    last: Config,
    report: impl Fn(Result<Config, Problems>) -> bool + Send + 'static,
) -> io::Result<()> {
    let Some(path) = source.path.clone() else { return Ok(()) };
    let watching = move || {
        let mut reported = Reported { last, wrong: false };
        let mut seen = None;
        loop {
            let stamp = Some(source.stamp());
            if stamp != seen && (path.is_file() || !path.exists()) {
                seen = stamp;
                let read = source.load();
                if reported.is_news(&read) && !report(read) {
                    return;
                }
            }
            thread::sleep(PAUSE);
        }
    };
    thread::Builder::new().name("config".into()).spawn(watching).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_corrected_file_is_reported_even_if_nothing_changed() {
        let mut reported = Reported { last: Config::default(), wrong: false };
        assert!(!reported.is_news(&Ok(Config::default())));
        let wrong = || Err(Problems { file: "config.toml".into(), all: Vec::new() });
        assert!(reported.is_news(&wrong()) && reported.is_news(&wrong()));
        assert!(reported.is_news(&Ok(Config::default())));
        assert!(!reported.is_news(&Ok(Config::default())));
        let other = Config { look: Some(Look::Mono), ..Config::default() };
        assert!(reported.is_news(&Ok(other)));
    }
}
