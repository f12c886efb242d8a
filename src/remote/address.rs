//! Where a collection lies, as a recipe names it: `milvus:URL/COLLECTION`, `os:URL/INDEX`, perhaps `@by=bm25` or `@by=vectors`.

use std::fmt;

/// An engine's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Milvus, over gRPC.
    Milvus,
    /// OpenSearch or Elasticsearch, over HTTP.
    OpenSearch,
}

/// What is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Terms, as the server analyses them.
    Terms,
    /// Vectors of the carried encoder.
    Vectors,
}

/// A collection or index on a server.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Place {
    /// Which protocol is spoken there.
    pub kind: Kind,
    /// The server's address, with its scheme and without a slash at its end.
    pub url: String,
    /// The collection or index.
    pub name: String,
}

/// A place and what is compared there: what a lane needs to know.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remote {
    /// Where.
    pub place: Place,
    /// What.
    pub by: By,
}

impl Kind {
    /// All of them.
    const ALL: [Kind; 2] = [Kind::Milvus, Kind::OpenSearch];

    /// What a recipe begins with.
    pub fn prefix(self) -> &'static str {
        match self {
            Kind::Milvus => "milvus:",
            Kind::OpenSearch => "os:",
        }
    }

    /// What is compared if nothing else is said.
    fn habit(self) -> By {
        match self {
            Kind::Milvus => By::Vectors,
            Kind::OpenSearch => By::Terms,
        }
    }

    /// Its name for people.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Milvus => "Milvus",
            Kind::OpenSearch => "OpenSearch",
        }
    }

    fn expected(self) -> &'static str {
        match self {
            Kind::Milvus => "milvus:URL/COLLECTION, such as milvus:http://localhost:19530/arguments",
            Kind::OpenSearch => "os:URL/INDEX, such as os:https://search.example.org:9200/arguments",
        }
    }

    fn takes(self, name: &str) -> bool {
        let mut bytes = name.bytes();
        match self {
            Kind::Milvus => {
                bytes.next().is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
                    && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
            }
            Kind::OpenSearch => {
                let plain = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
                bytes.next().is_some_and(plain) && bytes.all(|b| plain(b) || b"_-.".contains(&b))
            }
        }
    }
}

impl Place {
    /// Which engine a text is meant to name a place of, if any.
    pub fn meant(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()))
    }

    /// Reads `milvus:URL/COLLECTION` or `os:URL/INDEX`. Without a scheme it is `https://`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(text: &str) -> Result<Self, String> {
        Self::read(text, cfg!(feature = "milvus"))
    }

    fn read(text: &str, milvus: bool) -> Result<Self, String> {
        let both = || Kind::ALL.map(Kind::expected).join("; or ");
        let kind = Place::meant(text).ok_or_else(both)?;
        if kind == Kind::Milvus && !milvus {
            return Err("another lane: this program was built without Milvus (cargo feature `milvus`)".into());
        }
        let wrong = |why: &str| format!("{}; {why}", kind.expected());
        let rest = &text[kind.prefix().len()..];
        let (scheme, rest) = match rest.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
            Some(_) => return Err(wrong("the address begins with neither https:// nor http://")),
            None => ("https", rest),
        };
        // What stands there is a secret more often than not, so it is not repeated.
        if rest.contains(['@', '?', '#']) {
            return Err(wrong(
                "the address holds a user, @, ? or #; secrets are read from the environment, and after the name a lane takes @by=vectors or @by=bm25 alone",
            ));
        }
        let (host, name) = rest.rsplit_once('/').ok_or_else(|| wrong("no name stands after the address"))?;
        if !kind.takes(name) {
            let letters = match kind {
                Kind::Milvus => "letters, digits and _, no digit first",
                Kind::OpenSearch => "lower-case letters, digits and _-., a letter or digit first",
            };
            return Err(wrong(&format!("{} is no name there ({letters})", crate::input::excerpt(name))));
        }
        if kind == Kind::Milvus && host.contains('/') {
            return Err(wrong("one name stands after the address, no path"));
        }
        let url = format!("{scheme}://{host}");
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(wrong("no server is named"));
        }
        crate::net::at(&url, "").map_err(|why| wrong(&why))?;
        Ok(Place { kind, url, name: name.to_owned() })
    }

    /// The server without its scheme.
    pub fn host(&self) -> &str {
        self.url.split_once("://").map_or(self.url.as_str(), |(_, host)| host)
    }

    /// Whether TLS is spoken.
    pub fn is_safe(&self) -> bool {
        self.url.starts_with("https://")
    }

    /// Whether a secret may go there: over TLS, or to this machine.
    pub fn keeps_secrets(&self) -> bool {
        self.is_safe() || crate::net::leads_here(&self.url)
    }
}

impl Remote {
    /// A place, and the option that may stand after its `@`.
    ///
    /// # Errors
    /// What was expected.
    pub fn parse(place: &str, options: &str) -> Result<Self, String> {
        let place = Place::parse(place)?;
        let by = match options {
            "" => place.kind.habit(),
            "by=bm25" => By::Terms,
            "by=vectors" => By::Vectors,
            other => return Err(format!("by=bm25 or by=vectors after the @, found `{other}`")),
        };
        Ok(Remote { place, by })
    }

    /// The head of its column.
    pub fn title(&self) -> String {
        let by = match (self.by == self.place.kind.habit(), self.by) {
            (true, _) => "",
            (_, By::Terms) => " BM25",
            (_, By::Vectors) => " kNN",
        };
        format!("{}{by} {}", self.place.kind.name(), self.place.name)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}/{}", self.kind.prefix(), self.url, self.name)
    }
}

impl fmt::Display for Remote {
    /// `milvus:http://localhost:19530/arguments@by=bm25`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let by = match (self.by == self.place.kind.habit(), self.by) {
            (true, _) => "",
            (_, By::Terms) => "@by=bm25",
            (_, By::Vectors) => "@by=vectors",
        };
        write!(f, "{}{by}", self.place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Remote, String> {
        let (place, options) = text.split_once('@').unwrap_or((text, ""));
        Remote::parse(place, options)
    }

    #[test]
    fn what_is_written_is_read_again_and_tls_is_the_habit() {
        let remote = read("os:search.example.org:9200/es/args-2").unwrap();
        assert_eq!((remote.place.url.as_str(), remote.by), ("https://search.example.org:9200/es", By::Terms));
        assert!(remote.place.is_safe());
        for text in ["os:http://[::1]:9200/a", "os:https://host/a@by=vectors"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        assert_eq!(read("os:https://host/a@by=vectors").unwrap().title(), "OpenSearch kNN a");
        assert_eq!(read("os:https://host/a@by=bm25").unwrap().to_string(), "os:https://host/a");
    }

    #[test]
    fn an_address_that_cannot_be_right_is_refused_and_no_secret_is_repeated() {
        for bad in [
            "os:",
            "os:host",
            "os:https:///a",
            "os:ftp://h/a",
            "os:http://h/",
            "os:h/Upper",
            "os:h/_all",
            "os:h/*",
            "os:h h/a",
            "os:http://h:x/a",
        ] {
            let told = read(bad).unwrap_err();
            assert!(told.contains("os:URL/INDEX"), "{bad}: {told}");
        }
        let told = Place::parse("os:https://me:hush@host/a").unwrap_err();
        assert!(told.contains("environment") && !told.contains("hush"), "{told}");
        assert!(read("os:h/a@by=luck").unwrap_err().contains("by=vectors"));
    }

    #[cfg(feature = "milvus")]
    #[test]
    fn milvus_compares_vectors_unless_terms_are_asked_for() {
        let text = "milvus:http://127.0.0.1:19530/arguments@by=bm25";
        let remote = read(text).unwrap();
        assert_eq!(
            (remote.by, remote.place.host(), remote.place.is_safe()),
            (By::Terms, "127.0.0.1:19530", false)
        );
        assert_eq!((remote.to_string().as_str(), remote.title().as_str()), (text, "Milvus BM25 arguments"));
        assert_eq!(read("milvus:https://h/c").unwrap().by, By::Vectors);
        for bad in ["milvus:h/a-b", "milvus:h/db/c", "milvus:h/1a"] {
            assert!(read(bad).unwrap_err().contains("milvus:URL/COLLECTION"), "{bad}");
        }
    }

    #[test]
    fn a_build_without_milvus_says_so() {
        assert!(Place::read("milvus:http://h:19530/a", false).unwrap_err().contains("feature `milvus`"));
    }
}
