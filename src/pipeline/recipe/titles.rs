//! The names of several lanes beside each other, so that they can be told apart where there is little room.

use super::Recipe;

/// Every lane's name; runs of equal names have their folders before them.
pub fn titles<'a>(recipes: impl IntoIterator<Item = &'a Recipe>) -> Vec<String> {
    let recipes: Vec<&Recipe> = recipes.into_iter().collect();
    let title = |recipe: &&Recipe| {
        let equal = |other: &&Recipe| match (recipe.run(), other.run()) {
            (Some(own), Some(run)) => own.path != run.path && own.stem() == run.stem(),
            _ => false,
        };
        let folder = recipe.run().and_then(|run| run.path.parent()?.file_name());
        match folder.filter(|_| recipes.iter().any(equal)) {
            Some(folder) => format!("{}/{}", folder.to_string_lossy(), recipe.title()),
            None => recipe.title(),
        }
    };
    recipes.iter().map(title).collect()
}

/// One of several titles in at most `most` characters. Where it is longer, what it has in common with the others goes first:
/// its beginning is kept short, and it goes on where it differs.
pub fn fit_apart(titles: &[String], which: usize, most: usize) -> String {
    let Some(title) = titles.get(which) else { return String::new() };
    let own: Vec<char> = title.chars().collect();
    let shared = |other: &String| own.iter().zip(other.chars()).take_while(|(a, b)| **a == *b).count();
    let others = titles.iter().enumerate().filter(|(i, other)| *i != which && *other != title);
    let shared = others.map(|(_, other)| shared(other)).max().unwrap_or(0);
    if own.len() <= most || shared + 2 < most || most < 8 {
        return title.clone();
    }
    // From the beginning of the word in which they differ, else of the difference.
    let word = own[..shared].iter().rposition(|c| " /".contains(*c)).map_or(0, |at| at + 1);
    let head = most / 3;
    let from = if shared - word + 2 < most - head && word > head { word } else { shared };
    let from = from.max(head).min(own.len().saturating_sub(most - head - 1).max(head));
    let [begin, end] = [&own[..head], &own[from..]].map(|part| part.iter().collect::<String>());
    format!("{begin}…{end}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_of_one_name_are_told_apart_by_their_folder() {
        let recipes =
            ["run:a/r.json", "run:b/r.json+mmr", "run:b/other.run", "bm25"].map(|r| r.parse().unwrap());
        assert_eq!(titles(&recipes), ["a/r", "b/r +mmr .75", "other", "BM25"]);
    }

    #[test]
    fn titles_that_do_not_fit_show_where_they_differ() {
        let all = ["MiniLM +csqe +pap-plus→2 +mmr .75", "MiniLM +csqe +pap-plus→2 +mmr .90", "BM25"]
            .map(String::from);
        let shown: Vec<String> = (0..3).map(|i| fit_apart(&all, i, 18)).collect();
        assert_eq!(shown[2], "BM25");
        assert_ne!(shown[0], shown[1]);
        for (title, end) in [(&shown[0], ".75"), (&shown[1], ".90")] {
            assert!(
                title.starts_with("MiniLM…") && title.ends_with(end) && title.chars().count() <= 18,
                "{title}"
            );
        }
        assert_eq!(fit_apart(&all, 0, 40), all[0]);
        assert_eq!(fit_apart(&all[..1], 0, 18), all[0], "alone, its beginning says most");
    }
}
