//! The address of a collection in a recipe (`milvus:URL/COLLECTION` or `os:URL/INDEX`, with the option `@by=bm25` or `@by=vectors`), the
//! trait of every server with its inputs and outputs, and the error messages that all servers share.

use std::collections::HashMap;
use std::fmt;

use crate::input::tame;
use crate::net::NetError;
use crate::work::{Stop, Stopped};

/// An engine's protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Milvus, over gRPC.
    Milvus,
    /// OpenSearch or Elasticsearch, over HTTP.
    OpenSearch,
}

/// What a search compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum By {
    /// Terms, as the server analyses them.
    Terms,
    /// Vectors of the built-in encoder.
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

/// Why a text is not a valid place: what was expected, and what is wrong. It never contains a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{expected}")]
pub struct PlaceError {
    /// What was expected.
    pub expected: String,
}

/// A place and what a search there compares: everything that a lane needs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Remote {
    /// The collection or index.
    pub place: Place,
    /// What is compared.
    pub by: By,
}

impl Kind {
    /// All of them.
    const ALL: [Kind; 2] = [Kind::Milvus, Kind::OpenSearch];

    /// The beginning of a recipe for this engine.
    pub fn prefix(self) -> &'static str {
        match self {
            Kind::Milvus => "milvus:",
            Kind::OpenSearch => "os:",
        }
    }

    /// What is compared by default.
    fn default_by(self) -> By {
        match self {
            Kind::Milvus => By::Vectors,
            Kind::OpenSearch => By::Terms,
        }
    }

    /// Its name for display.
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

    fn accepts(self, name: &str) -> bool {
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
    /// The engine named by the prefix of a text, if any.
    pub fn kind_of(text: &str) -> Option<Kind> {
        Kind::ALL.into_iter().find(|kind| text.starts_with(kind.prefix()))
    }

    /// Reads `milvus:URL/COLLECTION` or `os:URL/INDEX`. The default scheme is `https://`.
    ///
    /// # Errors
    /// The text has another form.
    pub fn parse(text: &str) -> Result<Self, PlaceError> {
        Self::read(text, cfg!(feature = "milvus"))
    }

    fn read(text: &str, milvus: bool) -> Result<Self, PlaceError> {
        let both = || PlaceError { expected: Kind::ALL.map(Kind::expected).join("; or ") };
        let kind = Place::kind_of(text).ok_or_else(both)?;
        if kind == Kind::Milvus && !milvus {
            return Err(PlaceError {
                expected: "another lane: this program was built without Milvus (cargo feature `milvus`)"
                    .into(),
            });
        }
        let wrong = |why: &str| PlaceError { expected: format!("{}; {why}", kind.expected()) };
        let rest = &text[kind.prefix().len()..];
        let (scheme, rest) = match rest.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
            Some(_) => return Err(wrong("the address begins with neither https:// nor http://")),
            None => ("https", rest),
        };
        // The text probably contains a secret, so the message does not repeat it.
        if rest.contains(['@', '?', '#']) {
            return Err(wrong(
                "the address holds a user, @, ? or #; secrets are read from the environment, and after the name a lane takes @by=vectors or @by=bm25 alone",
            ));
        }
        let (host, name) = rest.rsplit_once('/').ok_or_else(|| wrong("no name stands after the address"))?;
        if !kind.accepts(name) {
            let letters = match kind {
                Kind::Milvus => "letters, digits and _, no digit first",
                Kind::OpenSearch => "lower-case letters, digits and _-., a letter or digit first",
            };
            return Err(wrong(&format!(
                "{} is not a valid name there ({letters})",
                crate::input::excerpt(name)
            )));
        }
        if kind == Kind::Milvus && host.contains('/') {
            return Err(wrong("one name stands after the address, no path"));
        }
        let url = format!("{scheme}://{host}");
        if host.is_empty() || host.contains(|c: char| c.is_whitespace() || c.is_control()) {
            return Err(wrong("no server is named"));
        }
        crate::net::at(&url, "").map_err(|error| wrong(&error.to_string()))?;
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

    /// Whether a secret may be sent there: over TLS, to this machine, or to a host that the user named.
    pub fn keeps_secrets(&self) -> bool {
        crate::net::keeps_secrets(&self.url)
    }
}

impl Remote {
    /// Reads a place and the option after its `@`, which may be empty.
    ///
    /// # Errors
    /// Either has another form.
    pub fn parse(place: &str, options: &str) -> Result<Self, PlaceError> {
        let place = Place::parse(place)?;
        let by = match options {
            "" => place.kind.default_by(),
            "by=bm25" => By::Terms,
            "by=vectors" => By::Vectors,
            other => {
                let expected = format!("by=bm25 or by=vectors after the @, found `{other}`");
                return Err(PlaceError { expected });
            }
        };
        Ok(Remote { place, by })
    }

    /// The title of its column.
    pub fn title(&self) -> String {
        let by = match (self.by == self.place.kind.default_by(), self.by) {
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
        let by = match (self.by == self.place.kind.default_by(), self.by) {
            (true, _) => "",
            (_, By::Terms) => "@by=bm25",
            (_, By::Vectors) => "@by=vectors",
        };
        write!(f, "{}{by}", self.place)
    }
}

/// A passage as a server ranks it.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The passage's id.
    pub id: String,
    /// The server's score, greater is better.
    pub score: f32,
}

/// A passage as a server stores it.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// Its id.
    pub id: String,
    /// Its title; may be empty.
    pub title: String,
    /// Its text.
    pub text: String,
    /// Changes when the passage or the encoder of its vector changes.
    pub hash: String,
    /// Its vector.
    pub vector: Vec<f32>,
}

/// Why a request to a server failed.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum RemoteError {
    /// It could not be reached, cut the connection, or took too long.
    #[error("{0}")]
    Unreached(String),
    /// It refused; holds its message.
    #[error("{0}")]
    Refused(String),
    /// There is no such collection, or it has another schema.
    #[error("{0}")]
    Schema(String),
    /// The request has more bytes than the server accepts.
    #[error("{0}")]
    TooLarge(String),
    /// Its answer breaks the protocol.
    #[error("{0}")]
    Nonsense(String),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// A collection on a server. A call blocks until the answer is whole or `stop` is set.
pub trait Engine: Send + Sync {
    /// The best `depth` passages for a text, best first.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn by_text(&self, text: &str, depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError>;

    /// The `depth` passages whose vectors have the greatest cosine with this one, with that cosine.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn by_vector(&self, vector: &[f32], depth: usize, stop: &Stop) -> Result<Vec<Scored>, RemoteError>;

    /// Creates the collection if it does not exist, and returns whether it did. An existing one must have the right schema.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn prepare(&self, dimensions: usize, stop: &Stop) -> Result<bool, RemoteError>;

    /// The stored hashes of the passages with these ids; passages that the server lacks are left out.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn stored_hashes(&self, ids: &[String], stop: &Stop) -> Result<HashMap<String, String>, RemoteError>;

    /// The bytes of a row in a request.
    fn size(&self, row: &Row) -> usize;

    /// Writes rows, replacing those with the same ids.
    ///
    /// # Errors
    /// See [`RemoteError`]; if they were too large together, none was written.
    fn put(&self, rows: &[Row], stop: &Stop) -> Result<(), RemoteError>;

    /// Makes written rows visible to searches, and returns the number of passages on the server.
    ///
    /// # Errors
    /// See [`RemoteError`].
    fn finish(&self, stop: &Stop) -> Result<u64, RemoteError>;
}

/// An environment variable, unless it is empty.
pub(super) fn variable(name: &str) -> Option<String> {
    trim_secret(&std::env::var(name).ok()?)
}

/// Removes line breaks at the end of a secret: they come from the file it was read from. Spaces stay, because a password may begin or end
/// with one.
pub(super) fn trim_secret(value: &str) -> Option<String> {
    let value = value.trim_end_matches(['\r', '\n']);
    (!value.is_empty()).then(|| value.to_owned())
}

/// Checks that secrets are sent only over TLS or to this machine.
pub(super) fn check_secrecy(place: &Place, variables: &str) -> Result<(), RemoteError> {
    if place.keeps_secrets() {
        return Ok(());
    }
    Err(RemoteError::Refused(crate::net::in_clear(&place.url, &format!("the secret in {variables}"))))
}

/// The error for a server that could not be reached.
pub(super) fn unreached(place: &Place, error: NetError) -> RemoteError {
    match error {
        NetError::Stopped(stopped) => stopped.into(),
        error => RemoteError::Unreached(format!(
            "{} at {} could not be reached ({}); start the server or check the address",
            place.kind.name(),
            place.url,
            tame(&error.to_string())
        )),
    }
}

/// The error for a collection that does not exist.
pub(super) fn absent(place: &Place) -> RemoteError {
    RemoteError::Schema(format!(
        "there is no `{}` at {}; load the corpus there with: parallax corpus push {place}",
        place.name, place.url
    ))
}

/// The error for a collection with another schema.
pub(super) fn other_schema(place: &Place, problems: &[String]) -> RemoteError {
    RemoteError::Schema(format!(
        "`{}` at {} has another schema: {}; name another one, which `parallax corpus push` makes if it is not there",
        place.name,
        place.url,
        problems.join("; ")
    ))
}

/// Checks the scores and returns the first `depth` hits, each id once.
pub(super) fn first_hits(
    place: &Place,
    hits: impl IntoIterator<Item = Scored>,
    depth: usize,
) -> Result<Vec<Scored>, RemoteError> {
    let mut seen = std::collections::HashSet::new();
    let mut list = Vec::new();
    for scored in hits {
        if !scored.score.is_finite() {
            let (name, url) = (place.kind.name(), &place.url);
            return Err(RemoteError::Nonsense(format!(
                "{name} at {url} sent a score that is not a finite number"
            )));
        }
        if list.len() < depth && seen.insert(scored.id.clone()) {
            list.push(scored);
        }
    }
    Ok(list)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Remote, String> {
        let (place, options) = text.split_once('@').unwrap_or((text, ""));
        Remote::parse(place, options).map_err(|error| error.to_string())
    }

    #[test]
    fn a_written_place_is_read_back_and_tls_is_the_default() {
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
    fn an_invalid_address_is_refused_and_no_secret_is_repeated() {
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
            let error = read(bad).unwrap_err();
            assert!(error.contains("os:URL/INDEX"), "{bad}: {error}");
        }
        let error = Place::parse("os:https://me:hush@host/a").unwrap_err().to_string();
        assert!(error.contains("environment") && !error.contains("hush"), "{error}");
        assert!(read("os:h/a@by=luck").unwrap_err().contains("by=vectors"));
    }

    #[cfg(feature = "milvus")]
    #[test]
    fn milvus_compares_vectors_by_default() {
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
        assert!(
            Place::read("milvus:http://h:19530/a", false)
                .unwrap_err()
                .to_string()
                .contains("feature `milvus`")
        );
    }

    #[test]
    fn a_password_keeps_its_spaces_and_loses_a_line_break_at_its_end() {
        assert_eq!(trim_secret(" a b \r\n").as_deref(), Some(" a b "));
        assert_eq!(trim_secret("\n"), None);
    }

    #[test]
    fn a_secret_is_not_sent_in_the_clear_to_another_machine() {
        let check = |text: &str| check_secrecy(&Place::parse(text).unwrap(), "KEY");
        for good in ["os:https://search.example.org/a", "os:http://localhost:9200/a", "os:http://[::1]/a"] {
            assert_eq!(check(good), Ok(()), "{good}");
        }
        let Err(RemoteError::Refused(message)) = check("os:http://search.example.org/a") else { panic!() };
        assert!(message.contains("https://") && message.contains("KEY"), "{message}");
    }
}
