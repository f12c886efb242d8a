//! The bytes of a page as text: what its first bytes, its header or its own head say of the charset, in that order.

use encoding_rs::{Encoding, UTF_8, WINDOWS_1252};

/// How far a page is searched for its charset, as browsers do.
const HEAD: usize = 1024;

/// The text. Bytes that the charset does not have become U+FFFD.
pub fn decoded(bytes: &[u8], header: &str) -> String {
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(HEAD)]);
    let encoding = named(header).or_else(|| named(&head)).unwrap_or_else(|| {
        // Most pages that say nothing are UTF-8; the others are what browsers took them for when they were written.
        if std::str::from_utf8(bytes).is_ok() { UTF_8 } else { WINDOWS_1252 }
    });
    // A byte order mark goes before all that is said.
    encoding.decode(bytes).0.into_owned()
}

/// The encoding that follows `charset=`.
fn named(text: &str) -> Option<&'static Encoding> {
    let lower = text.to_ascii_lowercase();
    let (_, rest) = lower.split_once("charset")?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start().trim_start_matches(['"', '\'']);
    let label: &str = rest.split(|c: char| c.is_whitespace() || "\"';>/".contains(c)).next()?;
    let encoding = Encoding::for_label(label.as_bytes())?;
    // A head that could be read as ASCII is not UTF-16, whatever it says.
    Some(if encoding == encoding_rs::UTF_16LE || encoding == encoding_rs::UTF_16BE {
        UTF_8
    } else {
        encoding
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_goes_before_the_page_and_a_byte_order_mark_before_both() {
        let latin = b"<meta charset=\"utf-8\"><p>caf\xe9";
        assert!(decoded(latin, "text/html; charset=ISO-8859-1").ends_with("café"));
        let meta = b"<meta http-equiv=Content-Type content='text/html; charset=iso-8859-1'><p>caf\xe9";
        assert!(decoded(meta, "text/html").ends_with("café"));
        assert_eq!(decoded("\u{feff}café".as_bytes(), "text/html; charset=iso-8859-1"), "café");
        assert_eq!(decoded(b"\xff\xfec\0a\0f\0\xe9\0", "text/plain"), "café");
    }

    #[test]
    fn a_page_that_says_nothing_or_nonsense_is_utf8_where_it_can_be() {
        assert_eq!(decoded("café".as_bytes(), "text/html"), "café");
        assert_eq!(decoded(b"caf\xe9", "text/html; charset=nonsense"), "café");
        assert_eq!(decoded(b"caf\xe9", "text/html; charset=utf-8"), "caf\u{fffd}");
        assert_eq!(decoded(b"", ""), "");
    }
}
