//! The rules for the sources, which CONTRIBUTING.md lists, checked by reading the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;

use parallax::tui::keymap::TABLE;

mod imports;
mod words;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The Rust files of a module of `src`, a folder or one file, by their path.
fn sources(below: &str) -> Vec<(String, String)> {
    let place = root().join("src").join(below);
    if !place.is_dir() {
        let file = place.with_extension("rs");
        return vec![(format!("src/{below}.rs"), fs::read_to_string(&file).unwrap())];
    }
    let (mut found, mut open) = (Vec::new(), vec![place]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path: PathBuf = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let name = path.strip_prefix(root()).unwrap().to_string_lossy().replace('\\', "/");
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(!found.is_empty(), "src/{below} holds no Rust file");
    found
}

/// The code of a line, without its comment.
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Every line of code that names one of the crates, in a file that may not use it.
fn uses_of(crates: &[&str], may: impl Fn(&str) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in sources("").into_iter().filter(|(name, _)| !may(name)) {
        for (i, line) in text.lines().enumerate() {
            let words = code(line).split(|c: char| !c.is_alphanumeric() && c != '_');
            if words.into_iter().any(|word| crates.contains(&word)) {
                found.push(format!("{name}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    found
}

fn none(found: &[String]) {
    assert!(found.is_empty(), "\n{}", found.join("\n"));
}

#[test]
fn only_tui_uses_the_terminal_crates() {
    none(&uses_of(&["ratatui", "crossterm", "tui_input"], |name| name.starts_with("src/tui/")));
}

#[test]
fn only_bm25_and_its_index_use_tantivy() {
    let may = ["src/retrieve/bm25.rs", "src/retrieve/index.rs"];
    none(&uses_of(&["tantivy"], |name| may.contains(&name)));
}

#[test]
fn only_the_graph_uses_rten_and_only_networks_use_candle() {
    none(&uses_of(&["rten", "rten_tensor"], |name| name == "src/encode/graph.rs"));
    none(&uses_of(&["candle", "candle_core", "candle_nn", "gemm"], |name| {
        name.starts_with("src/encode/family/") || name.starts_with("src/llm/local/")
    }));
}

#[test]
fn only_llm_and_net_use_the_network_crates() {
    none(&uses_of(&["reqwest", "tokio", "rustls"], |name| {
        name.starts_with("src/llm/") || name.starts_with("src/net/")
    }));
}

#[test]
fn only_remote_milvus_uses_its_sdk() {
    let mut found = uses_of(&["milvus"], |name| name.starts_with("src/remote/milvus/"));
    // Its name also occurs in features and in recipes. From outside, only the function that opens a client may be used.
    found.retain(|line| line.contains("milvus::") || line.contains("use milvus"));
    found.retain(|line| {
        !(line.starts_with("src/remote/mod.rs:") && line.contains("(milvus::Milvus::from_env("))
    });
    none(&found);
}

#[test]
fn files_use_each_other_in_one_direction() {
    let sources = imports::Sources::read();
    let uses = sources.uses(false);
    let rings: Vec<String> = imports::circles(&uses).iter().map(|ring| ring.join(" ↔ ")).collect();
    none(&rings);
}

/// The layers of ARCHITECTURE.md, the lowest first: each line of its fenced block `layers` names the rooms of one layer.
fn layers() -> Vec<Vec<String>> {
    let page = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let block = page.split_once("```layers\n").and_then(|(_, rest)| rest.split_once("```"));
    let (block, _) = block.expect("ARCHITECTURE.md holds a block ```layers");
    let rooms = |line: &str| line.split_whitespace().map(str::to_owned).collect();
    block.lines().rev().map(rooms).collect()
}

/// The layers bind unit tests too; a test that needs a higher layer belongs to `tests/it`.
#[test]
fn no_room_uses_a_room_above_it() {
    let layers = layers();
    let layer = |room: &str| layers.iter().position(|rooms| rooms.iter().any(|name| name == room));
    let sources = imports::Sources::read();
    let mut found = Vec::new();
    for (file, targets) in sources.uses(true) {
        let from = imports::room(file);
        if matches!(from, "lib" | "main") {
            continue;
        }
        let Some(own) = layer(from) else {
            found.push(format!("{file}: no layer of ARCHITECTURE.md names `{from}`"));
            continue;
        };
        for target in targets {
            let to = imports::room(target);
            if to != from && layer(to).is_none_or(|other| other >= own) {
                found.push(format!("{file} uses {target}, which is not below it"));
            }
        }
    }
    none(&found);
}

/// What a file's first comment says after "May use", up to the end of the sentence; `None` if it does not say.
fn may_use(text: &str) -> Option<String> {
    let comment = text.lines().map_while(|line| line.strip_prefix("//!"));
    let comment = comment.map(str::trim).collect::<Vec<_>>().join(" ");
    let (_, rest) = comment.split_once("May use")?;
    Some(rest.trim_start_matches(':').split_once(['.', ';']).map_or(rest, |(list, _)| list).trim().to_owned())
}

#[test]
fn every_folder_opens_with_what_it_does_and_may_use() {
    let mut found = Vec::new();
    for (name, text) in sources("").iter().filter(|(name, _)| name.ends_with("/mod.rs")) {
        if !text.starts_with("//! ") || may_use(text).is_none() {
            found.push(format!("{name}: its first lines do not say what it does and what it may use"));
        }
    }
    // A module with a plain list uses nothing else.
    let layers = layers();
    let sources = imports::Sources::read();
    let opening: BTreeMap<&str, String> = self::sources("")
        .iter()
        .filter(|(name, _)| {
            name.ends_with("/mod.rs") && name.matches('/').count() == 2 || name.matches('/').count() == 1
        })
        .filter_map(|(name, text)| {
            let room = layers.iter().flatten().find(|room| *room == imports::room(name))?;
            Some((room.as_str(), may_use(text)?))
        })
        .collect();
    let everything = |list: &str| list.contains("every");
    for (file, targets) in sources.uses(true) {
        let own = imports::room(file);
        let Some(list) = opening.get(own).filter(|list| !everything(list)) else { continue };
        let listed: Vec<&str> = list.split([',', ' ']).collect();
        let others = targets.iter().map(|target| imports::room(target)).filter(|other| *other != own);
        found.extend(
            others
                .filter(|other| !listed.contains(other))
                .map(|other| format!("{file} uses {other}, which its module does not list")),
        );
    }
    none(&found);
}

#[test]
fn the_numbers_of_files_and_of_lines_stay_below_their_limits() {
    let (src, tests) = (imports::count(&root().join("src")), imports::count(&root().join("tests")));
    assert!(src.len() <= 320 && tests.len() <= 60, "{} and {}", src.len(), tests.len());
    let lines: usize = src.iter().map(|(_, lines)| lines).sum();
    assert!(lines / src.len() >= 200, "{} lines per file", lines / src.len());
    let long = src.iter().filter(|(path, lines)| {
        *lines > 500
            && !fs::read_to_string(path).unwrap().lines().next().unwrap_or_default().contains("Long:")
    });
    let long: Vec<String> = long.map(|(path, lines)| format!("{}: {lines} lines", path.display())).collect();
    none(&long);
}

#[test]
fn retired_words_name_nothing() {
    none(&words::names(&imports::Sources::read()));
}

#[test]
fn prose_has_no_retired_word() {
    let mut files = sources("");
    for page in pages() {
        files.push((page.display().to_string(), fs::read_to_string(&page).unwrap()));
    }
    for (path, _) in
        imports::count(&root().join("tests")).into_iter().chain(imports::count(&root().join("benches")))
    {
        if !path.ends_with("house/words.rs") {
            files.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
    none(&words::prose(root(), &files));
}

fn key_table() -> String {
    let mut table = String::from("| where | keys | does |\n| --- | --- | --- |\n");
    for binding in TABLE {
        let place = binding.context.name();
        let keys: Vec<String> = binding.keys.iter().map(|key| format!("`{key}`")).collect();
        table.push_str(&format!("| {place} | {} | {} |\n", keys.join(" "), binding.help));
    }
    table
}

#[test]
fn the_actions_keep_the_names_that_configurations_use() {
    let mut names: Vec<String> = TABLE.iter().map(|line| line.action.name()).collect();
    names.sort();
    names.dedup();
    insta::with_settings!({ omit_expression => true, prepend_module_to_snapshot => false }, {
        insta::assert_snapshot!("action-names", names.join("\n"));
    });
}

#[test]
fn the_key_table_of_the_page_is_that_of_the_program() {
    let page = fs::read_to_string(root().join("docs/keys.md")).expect("docs/keys.md");
    let inside = page.split_once("<!-- keys -->").and_then(|(_, rest)| rest.split_once("<!-- /keys -->"));
    let (inside, _) = inside.expect("docs/keys.md holds <!-- keys --> and <!-- /keys -->");
    let table = key_table();
    assert!(inside.trim() == table.trim(), "between the two comments of docs/keys.md belongs:\n\n{table}");
}

/// The Markdown pages in the root folder and in `docs`.
fn pages() -> Vec<PathBuf> {
    let folders =
        [root().to_owned(), root().join("docs")].map(|folder| fs::read_dir(folder).expect("a folder"));
    let files = folders.into_iter().flatten().map(|entry| entry.expect("an entry").path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

#[test]
fn every_link_between_the_pages_leads_to_a_file() {
    let reports = fs::read_dir(root().join("docs/reports"))
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path());
    let reports = reports.filter(|path| path.extension().is_some_and(|ending| ending == "md"));
    for page in pages().into_iter().chain(reports) {
        let text = fs::read_to_string(&page).expect("a page");
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if !file.is_empty() && !link.contains("://") {
                let leads = page.parent().expect("a folder").join(file).exists();
                assert!(leads, "{}: {link} leads nowhere", page.display());
            }
        }
    }
}

/// `docs/reports/papers.md` names tests and outputs; a name that is gone would mislead its reader.
#[test]
fn the_page_of_the_papers_names_tests_and_outputs_that_exist() {
    let place = root().join("docs/reports");
    let page = fs::read_to_string(place.join("papers.md")).unwrap();
    let mut code: Vec<String> = sources("").into_iter().map(|(_, text)| text).collect();
    for (path, _) in imports::count(&root().join("tests")) {
        code.push(fs::read_to_string(path).unwrap());
    }
    // A test's name is a sentence.
    let named = |text: &str| -> Vec<String> {
        let quoted = text.split('`').skip(1).step_by(2).filter(|name| name.matches('_').count() >= 4);
        quoted.filter(|name| !name.contains([' ', '/', '-'])).map(str::to_owned).collect()
    };
    let exists = |name: &String| {
        let function = format!("fn {name}(");
        code.iter().any(|text| text.contains(&function))
    };
    let missing: Vec<String> = named(&page).into_iter().filter(|name| !exists(name)).collect();
    none(&missing);
    // Every method of the list at its end has a test.
    let (_, list) = page.split_once("## Methods and their tests").expect("a list of methods");
    let rows: Vec<&str> = list.lines().filter(|line| line.starts_with("| ")).skip(2).collect();
    for (i, row) in rows.iter().enumerate() {
        let number = row.split('|').nth(1).unwrap_or_default().trim();
        assert_eq!(number, (i + 1).to_string(), "{row}");
        assert!(!named(row).is_empty(), "no test: {row}");
    }
    assert_eq!(rows.len(), 37);
    for entry in fs::read_dir(place.join("data")).unwrap() {
        let name = entry.unwrap().file_name().to_string_lossy().into_owned();
        assert!(page.contains(&format!("(data/{name})")), "the page does not name data/{name}");
    }
}

#[test]
fn what_differs_between_systems_lies_in_four_modules() {
    let home = |name: &str| {
        ["src/signals.rs", "src/storage/", "src/input/", "src/tui/shell/"]
            .iter()
            .any(|home| name.starts_with(home))
    };
    let mut found = Vec::new();
    for (name, text) in sources("").into_iter().filter(|(name, _)| !home(name)) {
        // Tests may need a system.
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        for (i, line) in code.lines().enumerate() {
            if [
                "cfg(unix",
                "cfg(windows",
                "cfg(not(unix",
                "cfg(not(windows",
                "cfg!(unix",
                "cfg!(windows",
                "target_os",
            ]
            .iter()
            .any(|word| line.contains(word))
            {
                found.push(format!("{name}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    none(&found);
}

/// Only `input` opens what a user names, because only it refuses devices, pipes and files without end. The others open files that this
/// program wrote into its data folder.
#[test]
fn only_the_reader_of_inputs_opens_what_a_user_names() {
    let own = [
        "src/input/",
        "src/storage/",
        "src/signals.rs",
        "src/corpus/build.rs",
        "src/corpus/library.rs",
        "src/encode/hub.rs",
        "src/encode/corpus_vectors.rs",
        "src/encode/sparse.rs",
        "src/encode/codes.rs",
        "src/retrieve/impact.rs",
        "src/retrieve/late.rs",
        "src/web/store.rs",
        "src/cli/job.rs",
    ];
    let openers = ["File::open(", "File::options(", "fs::read(", "fs::read_to_string(", "OpenOptions::new("];
    let mut found = Vec::new();
    for (name, text) in sources("") {
        if name.ends_with("tests.rs") || own.iter().any(|own| name.starts_with(own)) {
            continue;
        }
        let code = text.split("#[cfg(test)]").next().unwrap_or_default();
        let lines = code.lines().enumerate();
        let opens = lines.filter(|(_, line)| openers.iter().any(|opener| line.contains(opener)));
        found.extend(opens.map(|(i, line)| format!("{name}:{}: {}", i + 1, line.trim())));
    }
    none(&found);
}

#[test]
fn the_first_pages_are_short() {
    for (page, most) in [("README.md", 700), ("ARCHITECTURE.md", 1_500)] {
        let words = fs::read_to_string(root().join(page)).unwrap().split_whitespace().count();
        assert!(words <= most, "{page} has {words} words; expected at most {most}");
    }
}

/// Foreign text reaches the terminal only through `report::safe`.
#[test]
fn commands_print_through_one_function() {
    let mut found = Vec::new();
    for (name, text) in sources("cli") {
        for (i, line) in text.lines().enumerate() {
            let prints = ["println!", "print!(", "io::stdout()", "io::stderr()"]
                .iter()
                .any(|word| line.contains(word));
            let asks = ["is_terminal", ".flush()"].iter().any(|word| line.contains(word));
            if prints && !asks {
                found.push(format!("{name}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    none(&found);
}

/// What a function calls or names.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Call {
    /// A function by its path, called or only named.
    Path { path: Vec<String>, called: bool },
    /// A method, perhaps one of the explorer's state.
    Method { name: String, of_app: bool },
}

/// The functions of a file with what each calls, and the names that the file imports.
#[derive(Default)]
struct Calls {
    inside: Vec<String>,
    of: BTreeMap<String, BTreeSet<Call>>,
    imports: BTreeMap<String, Vec<String>>,
}

impl Calls {
    fn enter(&mut self, name: String, visit: impl FnOnce(&mut Self)) {
        self.inside.push(name);
        visit(self);
        self.inside.pop();
    }

    fn call(&mut self, call: Call) {
        if let Some(inside) = self.inside.last() {
            self.of.entry(inside.clone()).or_default().insert(call);
        }
    }

    fn path(&mut self, path: &syn::Path, called: bool) {
        let path = path.segments.iter().map(|part| part.ident.to_string()).collect();
        self.call(Call::Path { path, called });
    }

    /// The names under which a call may be forbidden: `terms`, `Figures::doubt`, `.exists`. A name alone may also be a variable.
    fn names(&self, call: &Call) -> Vec<String> {
        match call {
            Call::Method { name, .. } => vec![format!(".{name}")],
            Call::Path { path, called } => match path.as_slice() {
                [.., of, name] => vec![name.clone(), format!("{of}::{name}")],
                [name] if *called || self.imports.contains_key(name) => vec![name.clone()],
                _ => Vec::new(),
            },
        }
    }
}

impl<'a> Visit<'a> for Calls {
    fn visit_item_use(&mut self, item: &'a syn::ItemUse) {
        self.imports.extend(imports::flat(item).into_iter().map(|(path, name)| (name, path)));
    }
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        // Unit tests do as they like.
        if item.ident != "tests" {
            syn::visit::visit_item_mod(self, item);
        }
    }
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        self.enter(item.sig.ident.to_string(), |calls| syn::visit::visit_item_fn(calls, item));
    }
    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.enter(item.sig.ident.to_string(), |calls| syn::visit::visit_impl_item_fn(calls, item));
    }
    fn visit_expr_call(&mut self, call: &'a syn::ExprCall) {
        if let syn::Expr::Path(function) = &*call.func {
            self.path(&function.path, true);
        }
        syn::visit::visit_expr_call(self, call);
    }
    fn visit_expr_path(&mut self, path: &'a syn::ExprPath) {
        self.path(&path.path, false);
    }
    fn visit_expr_method_call(&mut self, call: &'a syn::ExprMethodCall) {
        let of_app = matches!(&*call.receiver, syn::Expr::Path(of) if of.path.is_ident("app") || of.path.is_ident("self"));
        self.call(Call::Method { name: call.method.to_string(), of_app });
        syn::visit::visit_expr_method_call(self, call);
    }
}

/// The file with the explorer's state.
const STATE: &str = "src/tui/app.rs";

/// Every name that a function called `draw…` reaches, with the file where it stands: through functions of its own file, functions that are
/// named by path, and methods of the explorer's state. `resolve` finds the file of a path that another file names.
fn while_drawing(
    all: &BTreeMap<String, Calls>,
    resolve: impl Fn(&str, &[String]) -> Option<String>,
) -> BTreeSet<(String, String)> {
    let draws = |name: &&String| *name == "draw" || name.starts_with("draw_");
    let mut open: Vec<(String, String)> = all
        .iter()
        .flat_map(|(file, calls)| calls.of.keys().filter(draws).map(|name| (file.clone(), name.clone())))
        .collect();
    let (mut seen, mut found) = (BTreeSet::new(), BTreeSet::new());
    while let Some(next) = open.pop() {
        if !seen.insert(next.clone()) {
            continue;
        }
        let (file, function) = next;
        let own = &all[&file];
        for call in own.of.get(&function).into_iter().flatten() {
            found.extend(own.names(call).into_iter().map(|name| (file.clone(), name)));
            let (target, name) = match call {
                Call::Method { name, of_app } => {
                    // A method of the state has the state's name before it, there too.
                    let here = file != STATE && own.of.contains_key(name);
                    (if here { Some(file.clone()) } else { of_app.then(|| STATE.to_owned()) }, name)
                }
                Call::Path { path, .. } => (resolve(&file, path), path.last().unwrap()),
            };
            let target =
                target.filter(|target| all.get(target).is_some_and(|calls| calls.of.contains_key(name)));
            open.extend(target.map(|target| (target, name.clone())));
        }
    }
    found
}

#[test]
fn drawing_samples_stems_compares_and_reads_nothing() {
    // Each goes over whole lists, texts, draws or files. `refresh` of a page works it out when its input changes, and keeps it.
    let costly = [
        ".to_lowercase",
        ".passes",
        ".selected",
        ".open_passage",
        ".only_in",
        ".overlap",
        "expansion_rows",
        "measure",
        "refresh",
        // Draws.
        "bootstrap_interval",
        "paired_randomisation",
        "Figures::doubt",
        "Figures::change",
        "Draws::of",
        "SplitMix64::new",
        // Stems and tokens.
        "terms",
        "stem",
        ".stem",
        "sentences",
        ".unicode_words",
        ".split_word_bounds",
        // Files.
        "read_to_string",
        "read_dir",
        "File::open",
        "fs::read",
        "fs::metadata",
        ".exists",
        ".is_file",
        ".is_dir",
        ".metadata",
    ];
    let sources = imports::Sources::read();
    let drawing = |name: &str| name.starts_with("src/tui/") && !name.contains("/shell/");
    let read = |file: &syn::File| {
        let mut calls = Calls::default();
        calls.visit_file(file);
        calls
    };
    let files = sources.files.iter().filter(|(name, _)| drawing(name));
    let all: BTreeMap<String, Calls> = files.map(|(name, file)| (name.clone(), read(file))).collect();
    let resolve = |file: &str, path: &[String]| {
        let imported = all[file].imports.get(&path[0]);
        if imported.is_some_and(|before| !["crate", "self", "super"].contains(&before[0].as_str())) {
            return None; // another crate's
        }
        let path = imported.map_or_else(|| path.to_vec(), |before| [before.as_slice(), &path[1..]].concat());
        sources.file_of(&imports::absolute(&path, &imports::module_of(file)), 0).map(str::to_owned)
    };
    let reached = while_drawing(&all, resolve);
    none(
        &reached
            .iter()
            .filter(|(_, name)| costly.contains(&name.as_str()))
            .map(|(file, name)| format!("{file}: {name}"))
            .collect::<Vec<_>>(),
    );
    assert!(reached.len() > 500, "{} names are reached", reached.len());
    // The test sees what it looks for: through another file, and through the state.
    let texts = [
        (STATE, "impl App { fn late(&self) { Figures::doubt(1) } }"),
        ("other", "fn helper() { terms(1) }"),
        (
            "draw",
            "use other::helper; fn draw(app: &App) { let sentences = 1; helper(); app.late(); sentences }",
        ),
    ];
    let all = texts.map(|(name, text)| (name.to_owned(), read(&syn::parse_file(text).unwrap())));
    let resolve = |_: &str, path: &[String]| (path[0] == "helper").then(|| "other".to_owned());
    let reached = while_drawing(&all.into(), resolve);
    let names: Vec<&str> = reached.iter().map(|(_, name)| name.as_str()).collect();
    assert!(
        names.contains(&"terms") && names.contains(&"Figures::doubt") && !names.contains(&"sentences"),
        "{names:?}"
    );
}
