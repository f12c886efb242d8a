//! TREC topics: `<top>` with tags that are left open, and the XML that later tracks (Touché) write.
//!
//! A topic's number and title are taken; the title is the question. Descriptions and narratives are for assessors.

/// What a line may belong to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Field {
    Number,
    Title,
    Other,
}

/// Reads topics line by line.
#[derive(Default)]
pub struct Topics {
    /// The line on which the open topic began.
    pub open: Option<usize>,
    field: Option<Field>,
    number: String,
    title: String,
}

/// Whether a file whose first line is this one holds topics.
pub fn begins(line: &str) -> bool {
    let line = line.trim_start();
    ["<top", "<?xml", "<!DOCTYPE"].iter().any(|start| line.starts_with(start))
}

impl Topics {
    /// Takes a line in. Gives every topic that it closes to `found`, as number and title.
    ///
    /// # Errors
    /// A topic begins in another, or has no number or title; what was expected is told.
    pub fn line(
        &mut self,
        number: usize,
        line: &str,
        found: &mut dyn FnMut(String, String) -> Result<(), String>,
    ) -> Result<(), String> {
        let mut rest = line;
        while let Some((text, tag, after)) = cut(rest) {
            self.text(text);
            rest = after;
            let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            match name.to_ascii_lowercase().as_str() {
                "top" | "topic" => {
                    if let Some(began) = self.open.replace(number) {
                        return Err(format!(
                            "`</top>` before the next topic; the one of line {began} is open"
                        ));
                    }
                    let own = attributes.split_once("number=\"").and_then(|(_, rest)| rest.split_once('"'));
                    self.number = own.map(|(own, _)| own.to_owned()).unwrap_or_default();
                    self.title.clear();
                    self.field = None;
                }
                "/top" | "/topic" => {
                    self.open = None;
                    let (number, title) = (self.number.trim(), self.title.trim());
                    let number = number.strip_prefix("Number:").unwrap_or(number).trim();
                    if number.is_empty() || title.is_empty() {
                        return Err("a topic with a number (`<num>`) and a `<title>`".into());
                    }
                    found(decoded(number), decoded(title))?;
                }
                "num" | "number" => self.field = Some(Field::Number),
                "title" | "query" => self.field = Some(Field::Title),
                "desc" | "description" | "narr" | "narrative" => self.field = Some(Field::Other),
                closing if closing.starts_with('/') => self.field = None,
                _ => {}
            }
        }
        self.text(rest);
        Ok(())
    }

    fn text(&mut self, text: &str) {
        let into = match self.field {
            Some(Field::Number) => &mut self.number,
            Some(Field::Title) => &mut self.title,
            _ => return,
        };
        if !into.is_empty() && !text.trim().is_empty() {
            into.push(' ');
        }
        into.push_str(text.trim());
    }
}

/// What stands before the first tag, the tag, and what stands behind it.
fn cut(line: &str) -> Option<(&str, &str, &str)> {
    let (text, rest) = line.split_once('<')?;
    let (tag, after) = rest.split_once('>')?;
    Some((text, tag, after))
}

fn decoded(text: &str) -> String {
    let named =
        [("&lt;", "<"), ("&gt;", ">"), ("&quot;", "\""), ("&apos;", "'"), ("&#39;", "'"), ("&amp;", "&")];
    named.iter().fold(text.to_owned(), |text, (name, meant)| text.replace(name, meant))
}
