//! Words that the project has retired: as names of modules, types, functions and JSON fields, and *told* and *tell* in prose too.

use std::path::Path;

use syn::visit::Visit;

use super::imports::Sources;

/// Names made of one of these words are retired.
const NAMES: [&str; 24] = [
    "sway", "swayed", "book", "strip", "shelf", "shelves", "desk", "kept", "caught", "wire", "told", "tell",
    "tells", "survey", "hearing", "heard", "weigh", "weighed", "carried", "brought", "asked", "known",
    "given", "why",
];

/// Names that hold such a word and mean it.
const ALLOWED_NAMES: [&str; 0] = [];

/// Word lists of the English rules may hold these.
const ALLOWED_PROSE: [&str; 3] = ["tell told told", "teach tell tend", "\"telling\""];

/// Names of items and of fields that are written to JSON.
#[derive(Default)]
struct Names(Vec<String>);

impl<'a> Visit<'a> for Names {
    fn visit_item_fn(&mut self, item: &'a syn::ItemFn) {
        if !item.attrs.iter().any(|attr| attr.path().is_ident("test")) {
            self.0.push(item.sig.ident.to_string());
        }
        syn::visit::visit_item_fn(self, item);
    }
    fn visit_impl_item_fn(&mut self, item: &'a syn::ImplItemFn) {
        self.0.push(item.sig.ident.to_string());
        syn::visit::visit_impl_item_fn(self, item);
    }
    fn visit_trait_item_fn(&mut self, item: &'a syn::TraitItemFn) {
        self.0.push(item.sig.ident.to_string());
        syn::visit::visit_trait_item_fn(self, item);
    }
    fn visit_item_struct(&mut self, item: &'a syn::ItemStruct) {
        self.0.push(item.ident.to_string());
        if serialised(&item.attrs) {
            self.0.extend(item.fields.iter().filter_map(|field| Some(field.ident.as_ref()?.to_string())));
        }
        syn::visit::visit_item_struct(self, item);
    }
    fn visit_item_enum(&mut self, item: &'a syn::ItemEnum) {
        self.0.push(item.ident.to_string());
        syn::visit::visit_item_enum(self, item);
    }
    fn visit_item_trait(&mut self, item: &'a syn::ItemTrait) {
        self.0.push(item.ident.to_string());
        syn::visit::visit_item_trait(self, item);
    }
    fn visit_item_type(&mut self, item: &'a syn::ItemType) {
        self.0.push(item.ident.to_string());
    }
    fn visit_item_mod(&mut self, item: &'a syn::ItemMod) {
        self.0.push(item.ident.to_string());
        syn::visit::visit_item_mod(self, item);
    }
}

fn serialised(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|attr| {
        attr.path().is_ident("derive")
            && matches!(&attr.meta, syn::Meta::List(list) if list.tokens.to_string().contains("erialize"))
    })
}

/// The words of a name: `BookOfLabels` and `book_of_labels` hold `book`, `of` and `labels`.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in name.chars() {
        if c == '_' || c.is_uppercase() && words.last().is_some_and(|word| !word.is_empty()) {
            words.push(String::new());
        }
        if c != '_'
            && let Some(word) = words.last_mut()
        {
            word.extend(c.to_lowercase());
        }
    }
    words
}

/// Retired names, each with its file.
pub fn names(sources: &Sources) -> Vec<String> {
    let mut found = Vec::new();
    for (file, parsed) in &sources.files {
        let mut names = Names::default();
        names.visit_file(parsed);
        names.0.retain(|name| !ALLOWED_NAMES.contains(&name.as_str()));
        let retired = |name: &String| words(name).iter().any(|word| NAMES.contains(&word.as_str()));
        found.extend(names.0.into_iter().filter(retired).map(|name| format!("{file}: {name}")));
    }
    found
}

/// Lines of sources, tests, scripts and pages with *told*, *tell* or *tells*.
pub fn prose(root: &Path, files: &[(String, String)]) -> Vec<String> {
    let mut found = Vec::new();
    for (name, text) in files {
        for (i, line) in text.lines().enumerate() {
            let lower = line.to_lowercase();
            let words = lower.split(|c: char| !c.is_alphanumeric());
            let retired = words.into_iter().any(|word| matches!(word, "told" | "tell" | "tells" | "telling"));
            if retired && !ALLOWED_PROSE.iter().any(|phrase| lower.contains(phrase)) {
                let name = name.trim_start_matches(&*root.to_string_lossy());
                found.push(format!("{name}:{}: {}", i + 1, line.trim()));
            }
        }
    }
    found
}
