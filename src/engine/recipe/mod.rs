//! Recipes: one line says how a lane makes its list, such as `bm25@k1=1.2,b=.75`, `minilm+mmr@.75` or
//! `hybrid+csqe+pap-plus@2+xquad@.5`.
//!
//! A recipe is a retriever with its constants, an engine on another machine (`milvus:URL/COLLECTION`) or a finished run
//! (`run:FILE`), then switches in any order. They run in this order: wordings, expansion, projection, merging, fusion,
//! re-ranking.
//!
//! May use: encode (names of encoders), expand, input, measure, project, remote (addresses), rerank, retrieve.

mod base;
mod switches;
mod text;

pub use base::{Base, Recipe, RunFile, fit_apart, titles};
pub use escape::escaped;
pub use switches::{Ask, ByModel, Diversify, Listwise, Mmr, Norm, Project, Rerank, Switch, Switches, Toward};
pub use text::RecipeError;

mod escape {
    //! Percent-encodes texts inside a recipe. Written by hand because decoding must be strict: general decoders let a `%` without two
    //! hexadecimal digits pass, and a recipe with one is wrong.

    /// Encodes a typed text for a recipe: every byte that is not a letter, a digit or one of `-_.~` becomes `%` and two hexadecimal
    /// digits, so that a copied recipe needs no quotes.
    pub fn escaped(text: &str) -> String {
        escaped_but(text, b"-_.~")
    }

    /// Encodes every byte that is not a letter, a digit or one of `kept`.
    pub(super) fn escaped_but(text: &str, kept: &[u8]) -> String {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || kept.contains(&byte);
        text.bytes().map(|b| if plain(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect()
    }

    /// Decodes what [`escaped`] wrote, without the blanks typed around it; encoded blanks stay. `None` if a `%` has no two digits or the
    /// bytes are not UTF-8.
    pub(super) fn unescaped(text: &str) -> Option<String> {
        unescaped_whole(text.trim())
    }

    /// Decodes like [`unescaped`] and keeps all blanks.
    pub(super) fn unescaped_whole(text: &str) -> Option<String> {
        let mut bytes = Vec::new();
        let mut rest = text.as_bytes();
        while let Some((first, after)) = rest.split_first() {
            rest = after;
            if *first != b'%' {
                bytes.push(*first);
                continue;
            }
            let digits = std::str::from_utf8(rest.get(..2)?).ok()?;
            bytes.push(u8::from_str_radix(digits, 16).ok()?);
            rest = &rest[2..];
        }
        String::from_utf8(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_that_is_written_is_read_back_the_same() {
        for text in [
            "bm25",
            "bm25@k1=1.2,b=.75",
            "BM25@b=1",
            "minilm",
            " hybrid ",
            "minilm+mmr@.75",
            "minilm+pap@2+ivf@16+mmr@.5",
            "hybrid+ivf@nprobe=8",
            "bm25+mmr@1,norm=dataset",
            "bm25+mmr@.5,sim=uae-large,norm=dataset",
            "contriever+mmr@.5,sim=minilm",
            "bm25@k1=1.2,b=.75+rm3+mmr",
            "minilm+pap-plus@2",
            "minilm+pap@=animals%20%2B%20people%2C%20100%25",
            "hybrid+csqe+dual-sum@1+xquad@.5",
            "hybrid+pm2@0.25+perspectives",
            "bm25+csqe@llm=org%2FModel%3A8b,answers=0,repeat=2+mmr",
            "bm25+rm3@docs=5,terms=20,weight=.25",
            "minilm+keqe@n=3,n=5",
            "hybrid+grf@n=2",
            "bm25+q2d-prf@tokens=128",
            "bm25+listwise",
            "minilm+csqe+listwise@llm=org%2FModel%3A8b,top=40,window=10,step=5,words=100",
            "run:runs/dl19.tasb.json",
            "run:/a%20b/c%2Bd%40e%2C100%25:ü.run@ties=trec-eval+mmr@.75",
            "run:..%5Cr.jsonl+xquad",
        ] {
            let recipe: Recipe = text.parse().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }
    }

    #[test]
    fn the_name_of_every_encoder_is_read_as_that_encoder() {
        for entry in &crate::encode::registry::MODELS {
            let recipe: Recipe = entry.name.parse().unwrap();
            assert!(
                matches!(recipe.base, Base::Custom(_) | Base::Sparse(_) | Base::Late(_)),
                "{} is a retriever's name",
                entry.name
            );
        }
    }

    #[test]
    fn encoded_blanks_at_the_ends_stay_and_typed_ones_go() {
        for text in ["run:%20a.run%20", "run: %20a.run%20 ", "run: %20a.run%20@ties=trec-eval"] {
            let recipe: Recipe = text.parse().unwrap();
            assert!(matches!(&recipe.base, Base::Run(file) if file.path.as_os_str() == " a.run "), "{text}");
            assert_eq!(recipe.to_string().parse(), Ok(recipe));
        }
        assert_eq!("run: a.run ".parse::<Recipe>().unwrap().to_string(), "run:a.run");
        assert!("run:%20".parse::<Recipe>().is_err());
    }

    #[test]
    fn a_typed_perspective_may_hold_anything_and_needs_no_quotes() {
        let toward = Toward::Text("don't ban — “regulate” + tax, 100 %".into());
        let project = Project { variant: crate::project::Variant::Pap, toward };
        let switches = Switches { project: Some(project), ..Switches::default() };
        let recipe = Recipe { base: Base::MiniLm, switches };
        let written = recipe.to_string();
        assert!(written.bytes().all(|b| b.is_ascii_alphanumeric() || b"+@=%-_.~".contains(&b)), "{written}");
        assert_eq!(written.parse(), Ok(recipe));
    }

    #[test]
    fn a_wrong_recipe_says_what_was_expected() {
        for (text, hint) in [
            ("", "bm25"),
            ("bm52", "did you mean `bm25`?"),
            ("bm25+mrr", "found `mrr`; did you mean `mmr`?"),
            ("bm25+perspective@2", "did you mean `perspectives`?"),
            ("lexical", "expected bm25, minilm, hybrid, a model"),
            ("bm25@k2=1", "k1=NUMBER"),
            ("bm25@b=1.5", "0 to 1"),
            ("bm25@k1=nan", "k1=NUMBER"),
            ("bm25@k1=-1", "k1=NUMBER"),
            ("minilm@x", "without options"),
            ("minilm+mmr@1.5", "0 to 1"),
            ("minilm+mmr@nan", "0 to 1"),
            ("minilm+mmr@.5,norm=x", "norm=question"),
            ("minilm+mmr@.5,sim=bm25", "models list"),
            ("minilm+mmr+xquad", "one of"),
            ("minilm+ivf@0", "1 or more"),
            ("minilm+ivf@8+ivf", "one ivf@N"),
            ("bm25+ivf@8", "try the MiniLM lane"),
            ("minilm+pap-plus@2+ivf@8", "compare every passage"),
            ("minilm+keqe+csqe", "one expansion"),
            ("bm25+listwise+mmr", "one of"),
            ("bm25+listwise@20", "top=100"),
            ("bm25+listwise@top=101", "at most 100"),
            ("bm25+listwise@step=0", "found `step=0`"),
            ("bm25+listwise@window=5", "step=10 and window=5"),
            ("bm25+listwise@llm=", "llm=NAME"),
            ("minilm+csqe@3", "copies=2, answers=2"),
            ("minilm+csqe@answers=many", "found `answers=many`"),
            ("minilm+keqe@n=0", "n=5"),
            ("minilm+keqe@llm=", "a language model"),
            ("bm25+rm3@llm=a", "docs=10"),
            ("minilm+grf", "an encoder cannot read weights"),
            ("minilm+pap@0", "from 1"),
            ("minilm+pap@=", "from 1"),
            ("minilm+pap@=%zz", "from 1"),
            ("minilm+none", "a switch"),
            ("minilm+", "a switch"),
            ("bm25+pap@1", "`bm25+pap@1`: a projection turns vectors"),
            ("minilm+rm3", "an encoder cannot read weights"),
            ("run:", "the path of a run"),
            ("run:a%zz", "the path of a run"),
            ("run:a@x", "ties=trec-eval"),
            ("run:a+rm3", "no query to expand"),
            ("run:a+pap@1", "no query to project"),
        ] {
            let error = text.parse::<Recipe>().unwrap_err().to_string();
            assert!(error.contains(hint), "{text}: {error}");
        }
    }

    #[test]
    fn a_title_names_what_is_on_and_nothing_else() {
        let title = |text: &str| text.parse::<Recipe>().unwrap().title();
        assert_eq!(title("bm25"), "BM25");
        assert_eq!(title("bm25@k1=1.2,b=.75+mmr@.75"), "BM25 k1=1.2 b=0.75 +mmr .75");
        assert_eq!(title("bm25+listwise@llm=a%20b,top=20"), "BM25 +listwise a b top=20");
        assert_eq!(title("run:runs/dl19.tasb.json+mmr"), "dl19.tasb +mmr .75");
        assert_eq!(title("hybrid+csqe+pap-plus@2+xquad"), "Hybrid +csqe +pap-plus→2 +xquad .50");
    }

    #[test]
    fn options_of_an_expansion_are_written_where_they_differ_from_the_default() {
        let recipe: Recipe = "bm25+csqe@copies=2,answers=0,llm=llama%203".parse().unwrap();
        let expand = recipe.switches.expand.as_ref().unwrap();
        assert_eq!((expand.llm.as_deref(), expand.set()), (Some("llama 3"), &[("answers", 0.0)][..]));
        assert_eq!(recipe.to_string(), "bm25@k1=0.9,b=0.4+csqe@llm=llama%203,answers=0");
        assert_eq!(recipe.title(), "BM25 +csqe llama 3 answers=0");
        assert_eq!("keqe@n=3".parse::<crate::expand::Expand>().unwrap().to_string(), "keqe@n=3");
        let error = "hyde".parse::<crate::expand::Expand>().unwrap_err().to_string();
        assert!(error.contains("choose perspectives"), "{error}");
    }

    #[test]
    fn an_engine_elsewhere_is_a_lane_with_the_switches_that_it_can_serve() {
        let place = "os:http://localhost:9200/args";
        for recipe in
            ["", "+mmr@0.5", "@by=vectors+pap@2", "@by=vectors+csqe+add-plus@1+pm2@0.5", "+perspectives"]
        {
            let text = format!("{place}{recipe}");
            let read: Recipe = text.parse().unwrap();
            assert_eq!(read.to_string(), text);
            assert!(read.is_slow() && read.model().is_none());
            assert_eq!(read.needs_vectors(), recipe.contains("mmr"));
        }
        for (recipe, expected) in [
            ("+pap@1", "compares terms"),
            ("@by=vectors+pap-plus@1", "try pap"),
            ("@by=vectors+rm3", "a server has its own"),
            ("+rm3", "a server has its own"),
            ("@k1=1", "by=vectors"),
        ] {
            let error = format!("{place}{recipe}").parse::<Recipe>().unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        for text in
            ["os:https://me:hush@host/a", " os:me:hu+sh@host/a", "os:https://me:hush@host/a@by=vectors+mmr"]
        {
            let error = text.parse::<Recipe>().unwrap_err().to_string();
            assert!(error.contains("`os:…`") && !error.contains("hu"), "{error}");
        }
        let escaped: Recipe = "os:h/a%2Bb/args".parse().unwrap();
        assert_eq!(escaped.to_string(), "os:https://h/a%2Bb/args");
    }

    #[test]
    fn a_run_may_have_a_recipe_as_its_name() {
        let read = |text: &str| text.parse::<Recipe>().unwrap();
        let path = |text: &str| read(text).run().unwrap().path.display().to_string();
        for name in ["bm25@k1=0.9,b=0.4.run", "out/bm25@k1=0.9,b=0.4+mmr@0.75.run", "minilm+pap-plus@2.trec"]
        {
            assert_eq!(path(&format!("run:{name}")), name);
            assert_eq!(path(&format!("run:{name}@ties=trec-eval")), name);
            let switched = read(&format!("run:{name}+mmr@.5"));
            assert_eq!(
                (switched.run().unwrap().path.display().to_string(), switched.switches.rerank.is_some()),
                (name.into(), true)
            );
            assert_eq!(read(&switched.to_string()), switched);
        }
        assert!("run:a.run+mmmr".parse::<Recipe>().is_err() && "run:a@x".parse::<Recipe>().is_err());
    }
}
