//! A web page to its title and main text, by Mozilla's Readability rules.
//!
//! A page that holds no article by those rules gives all the text that it shows. Nothing is fetched and no script is run.

use dom_smoothie::{Config, Readability, ReadabilityError, TextMode};

use crate::caught::caught;

/// Tags that a page may have. What has more is no page of text, and parsing costs the square of how deep they are nested.
const TAGS: usize = 60_000;

/// What a page says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// Its title, if it has one.
    pub title: Option<String>,
    /// Its main text, a line a block.
    pub text: String,
}

/// A page that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HtmlError {
    /// It has too many tags.
    #[error(
        "{0} tags, which is more than a page of text has; take it out of the folder, or save it as plain text"
    )]
    Tags(usize),
    /// The rules could not be applied.
    #[error("this page cannot be read ({0}); take it out of the folder, or save it as plain text")]
    Rules(#[from] ReadabilityError),
    /// The parser stumbled over it.
    #[error("this page cannot be read; take it out of the folder, or save it as plain text")]
    Stumbled,
}

/// The title and main text of a page.
///
/// # Errors
/// It has more tags than a page of text can have.
pub fn main_text(html: &str) -> Result<Page, HtmlError> {
    let tags = html.matches('<').count();
    if tags > TAGS {
        return Err(HtmlError::Tags(tags));
    }
    // Anybody can write a page, and a fault that it meets in the parser must not end a whole job.
    caught(|| read(html)).unwrap_or(Err(HtmlError::Stumbled))
}

fn read(html: &str) -> Result<Page, HtmlError> {
    let config = Config { text_mode: TextMode::Formatted, ..Config::default() };
    match Readability::new(html, None, Some(config.clone()))?.parse() {
        Ok(article) => {
            Ok(Page { title: title(&article.title), text: article.text_content.trim().to_owned() })
        }
        Err(ReadabilityError::GrabFailed) => {
            let page = Readability::new(html, None, Some(config))?;
            page.doc.select("head, script, style, noscript, template").remove();
            let text = page.doc.formatted_text().trim().to_owned();
            // The title was removed with the head.
            let whole = Readability::new(html, None, None)?;
            Ok(Page { title: title(&whole.get_article_title()), text })
        }
        Err(error) => Err(error.into()),
    }
}

fn title(text: &str) -> Option<String> {
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    Some(text).filter(|text| !text.is_empty())
}
