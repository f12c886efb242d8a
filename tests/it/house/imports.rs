//! Finds which source file uses which, with `syn`: `use` trees and paths in expressions, followed through re-exports.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use syn::visit::Visit;
use syn::{File, Item, ItemUse, UseTree, Visibility};

/// The sources of the library as a graph of files.
pub struct Sources {
    /// The parsed files by their path from the repository's root.
    pub files: BTreeMap<String, File>,
    /// Module path, such as `engine::rank`, to file name.
    modules: BTreeMap<Vec<String>, String>,
    /// Re-exports: module path and name to the path of the original.
    exports: BTreeMap<(Vec<String>, String), Vec<String>>,
}

impl Sources {
    /// Reads everything below `src`.
    pub fn read() -> Self {
        let mut sources =
            Sources { files: BTreeMap::new(), modules: BTreeMap::new(), exports: BTreeMap::new() };
        for (name, text) in super::sources("") {
            let file = syn::parse_file(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            let module = module_of(&name);
            sources.modules.insert(module.clone(), name.clone());
            for item in &file.items {
                if let Item::Use(item) = item
                    && !matches!(item.vis, Visibility::Inherited)
                {
                    for (path, alias) in flat(item) {
                        let target = absolute(&path, &module);
                        sources.exports.insert((module.clone(), alias), target);
                    }
                }
            }
            sources.files.insert(name, file);
        }
        sources
    }

    /// The files that each file uses, in its unit tests too if `with_tests`.
    pub fn uses(&self, with_tests: bool) -> BTreeMap<&str, BTreeSet<&str>> {
        let mut uses = BTreeMap::new();
        for (name, file) in &self.files {
            let module = module_of(name);
            if !with_tests && is_test_file(name) {
                uses.insert(name.as_str(), BTreeSet::new());
                continue;
            }
            let mut paths = Paths { with_tests, module, found: Vec::new() };
            paths.visit_file(file);
            let targets = paths.found.iter().filter_map(|path| self.file_of(path, 0));
            // A `mod.rs` names its children to declare them; only the paths that it uses itself count.
            let own = targets.filter(|target| target != name).collect();
            uses.insert(name.as_str(), own);
        }
        uses
    }

    /// The file that defines what a path names.
    pub fn file_of(&self, path: &[String], depth: usize) -> Option<&str> {
        let known = (0..=path.len()).rev().find(|&n| self.modules.contains_key(&path[..n]))?;
        let (module, rest) = path.split_at(known);
        if let Some(name) = rest.first()
            && depth < 8
            && let Some(target) = self.exports.get(&(module.to_vec(), name.clone()))
        {
            let mut target = target.clone();
            target.extend_from_slice(&rest[1..]);
            return self.file_of(&target, depth + 1);
        }
        self.modules.get(module).map(String::as_str).filter(|_| !module.is_empty())
    }
}

/// Every path that a file names outside its re-exports, from the crate's root on.
struct Paths {
    with_tests: bool,
    /// The module that is being visited.
    module: Vec<String>,
    found: Vec<Vec<String>>,
}

impl<'a> Visit<'a> for Paths {
    fn visit_item_use(&mut self, item: &'a ItemUse) {
        if matches!(item.vis, Visibility::Inherited) {
            self.found.extend(flat(item).into_iter().map(|(path, _)| absolute(&path, &self.module)));
        }
    }

    fn visit_item_mod(&mut self, module: &'a syn::ItemMod) {
        if self.with_tests || !is_test(&module.attrs) {
            self.module.push(module.ident.to_string());
            syn::visit::visit_item_mod(self, module);
            self.module.pop();
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        let names: Vec<String> = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if matches!(names[0].as_str(), "crate" | "super" | "self") && names.len() > 1 {
            self.found.push(absolute(&names, &self.module));
        }
        syn::visit::visit_path(self, path);
    }
}

/// Whether a file holds only unit tests. A test may use a file that uses the tested one, so tests do not count as circles.
fn is_test_file(name: &str) -> bool {
    let stem = name.rsplit('/').next().unwrap_or(name).trim_end_matches(".rs");
    stem == "tests" || stem == "testing" || stem.ends_with("_tests") || name.contains("/tests/")
}

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("cfg")
            && attr.parse_args::<syn::Ident>().is_ok_and(|condition| condition == "test")
    })
}

/// The module path of a file: `src/engine/rank/mod.rs` is `engine::rank`.
pub fn module_of(name: &str) -> Vec<String> {
    let inside = name.trim_start_matches("src/").trim_end_matches(".rs");
    let mut parts: Vec<String> = inside.split('/').map(str::to_owned).collect();
    if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
        parts.pop();
    }
    parts
}

/// A path as written in `module`, turned into one from the crate's root on.
pub fn absolute(path: &[String], module: &[String]) -> Vec<String> {
    let mut at = module.to_vec();
    let mut rest = path;
    match rest.first().map(String::as_str) {
        Some("crate") => {
            at.clear();
            rest = &rest[1..];
        }
        Some("self") => rest = &rest[1..],
        Some("super") => {
            while rest.first().is_some_and(|part| part == "super") {
                at.pop();
                rest = &rest[1..];
            }
        }
        // A sibling declared in this file, such as `mod journal; pub use journal::Journal;`, or another crate.
        _ => {}
    }
    at.extend_from_slice(rest);
    at
}

/// Every path of a `use`, with the name it brings in.
pub fn flat(item: &ItemUse) -> Vec<(Vec<String>, String)> {
    fn walk(tree: &UseTree, before: &mut Vec<String>, found: &mut Vec<(Vec<String>, String)>) {
        match tree {
            UseTree::Path(path) => {
                before.push(path.ident.to_string());
                walk(&path.tree, before, found);
                before.pop();
            }
            UseTree::Name(name) if name.ident == "self" => {
                found.push((before.clone(), before.last().cloned().unwrap_or_default()));
            }
            UseTree::Name(name) => {
                let mut path = before.clone();
                path.push(name.ident.to_string());
                found.push((path, name.ident.to_string()));
            }
            UseTree::Rename(name) => {
                let mut path = before.clone();
                path.push(name.ident.to_string());
                found.push((path, name.rename.to_string()));
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| walk(tree, before, found)),
            UseTree::Glob(_) => found.push((before.clone(), "*".into())),
        }
    }
    let mut found = Vec::new();
    walk(&item.tree, &mut Vec::new(), &mut found);
    found
}

/// Groups of files that use each other in a circle.
pub fn circles<'a>(uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> Vec<Vec<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> =
        uses.keys().map(|&from| (from, reachable(from, uses))).collect();
    let mut rings: BTreeSet<Vec<&str>> = BTreeSet::new();
    for (&from, targets) in &reach {
        let ring: Vec<&str> = targets.iter().copied().filter(|to| reach[to].contains(from)).collect();
        if ring.len() > 1 {
            rings.insert(ring);
        }
    }
    rings.into_iter().collect()
}

fn reachable<'a>(from: &'a str, uses: &BTreeMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
    while let Some(next) = open.pop() {
        for &to in &uses[next] {
            if seen.insert(to) {
                open.push(to);
            }
        }
    }
    seen
}

/// The first folder or file below `src` that a source belongs to: `src/engine/rank/mod.rs` belongs to `engine`.
pub fn room(name: &str) -> &str {
    let inside = name.trim_start_matches("src/");
    inside.split('/').next().unwrap_or(inside).trim_end_matches(".rs")
}

/// All Rust files below a folder, with their number of lines.
pub fn count(folder: &Path) -> Vec<(PathBuf, usize)> {
    let (mut found, mut open) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = open.pop() {
        for entry in fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                let lines = fs::read_to_string(&path).unwrap().lines().count();
                found.push((path, lines));
            }
        }
    }
    found
}
