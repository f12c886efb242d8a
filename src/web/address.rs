//! Which addresses may be asked: the public ones. A page that points into a private network must not make this program knock there.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use url::{Host, Url};

use crate::net::Allow;

/// Any address, for intranets.
///
/// # Errors
/// None.
pub fn anywhere(_: IpAddr) -> Result<(), String> {
    Ok(())
}

/// Public addresses alone.
///
/// # Errors
/// What kind of address it is instead.
pub fn public(address: IpAddr) -> Result<(), String> {
    let kind = match address {
        IpAddr::V4(address) => kind_of_4(address),
        IpAddr::V6(address) => kind_of_6(address),
    };
    match kind {
        Some(kind) => Err(format!("{address}, {kind}")),
        None => Ok(()),
    }
}

fn kind_of_4(address: Ipv4Addr) -> Option<&'static str> {
    let [a, b, c, _] = address.octets();
    Some(match (a, b, c) {
        (127, ..) => "this machine",
        (0, ..) => "no address of a server",
        (10, ..) | (172, 16..=31, _) | (192, 168, _) => "an address of a private network",
        (169, 254, _) => "a link-local address",
        (100, 64..=127, _) => "an address behind a carrier's NAT",
        (224..=239, ..) => "a multicast address",
        (192, 0, 0 | 2) | (192, 88, 99) | (198, 18..=19, _) | (198, 51, 100) | (203, 0, 113) => {
            "a reserved address"
        }
        (240..=255, ..) => "a reserved address",
        _ => return None,
    })
}

fn kind_of_6(address: Ipv6Addr) -> Option<&'static str> {
    let s = address.segments();
    let four = |high: u16, low: u16| Ipv4Addr::from(u32::from(high) << 16 | u32::from(low));
    match s {
        [0, 0, 0, 0, 0, 0, 0, 0] => Some("no address of a server"),
        [0, 0, 0, 0, 0, 0, 0, 1] => Some("this machine"),
        // Mapped, and translated by NAT64: what counts is the address inside.
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            kind_of_4(four(high, low))
        }
        // 6to4.
        [0x2002, high, low, ..] => kind_of_4(four(high, low)),
        [0xfc00..=0xfdff, ..] => Some("a unique-local address"),
        [0xfe80..=0xfebf, ..] => Some("a link-local address"),
        [0xff00..=0xffff, ..] => Some("a multicast address"),
        [0x2001, 0xdb8, ..] | [0x2001, 0, ..] => Some("a reserved address"),
        // Everything that is given out to the public lies in 2000::/3.
        [first, ..] if first & 0xe000 != 0x2000 => Some("a reserved address"),
        _ => None,
    }
}

/// A page's address in full, without its fragment.
///
/// # Errors
/// What was expected instead.
pub fn parse(text: &str) -> Result<Url, String> {
    let mut url =
        Url::parse(text.trim()).map_err(|error| format!("an address such as https://… ({error})"))?;
    if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
        return Err("an address that begins with http:// or https://".into());
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("an address without a user's name and password".into());
    }
    url.set_fragment(None);
    Ok(url)
}

/// Whether a page may be asked for, as far as its address alone tells. Names are checked again when they are looked up.
///
/// # Errors
/// Why it may not.
pub fn check(url: &Url, allow: Allow) -> Result<(), String> {
    match url.host() {
        Some(Host::Ipv4(address)) => allow(address.into()),
        Some(Host::Ipv6(address)) => allow(address.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_that_are_not_public_are_refused_with_their_kind() {
        for (address, kind) in [
            ("127.0.0.1", "this machine"),
            ("127.8.9.1", "this machine"),
            ("::1", "this machine"),
            ("::ffff:127.0.0.1", "this machine"),
            ("::", "no address"),
            ("0.0.0.0", "no address"),
            ("10.1.2.3", "private"),
            ("172.16.0.1", "private"),
            ("172.31.255.255", "private"),
            ("192.168.0.1", "private"),
            ("::ffff:192.168.0.1", "private"),
            ("64:ff9b::a00:1", "private"),
            ("2002:a00:1::1", "private"),
            ("169.254.169.254", "link-local"),
            ("fe80::1", "link-local"),
            ("100.64.0.1", "carrier"),
            ("fd00::1", "unique-local"),
            ("224.0.0.1", "multicast"),
            ("ff02::1", "multicast"),
            ("255.255.255.255", "reserved"),
            ("198.18.0.1", "reserved"),
            ("2001:db8::1", "reserved"),
            ("::7f00:1", "reserved"),
        ] {
            let told = public(address.parse().unwrap()).unwrap_err();
            assert!(told.contains(kind), "{address}: {told}");
        }
        for address in ["8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "::ffff:8.8.8.8"] {
            assert_eq!(public(address.parse().unwrap()), Ok(()), "{address}");
        }
    }

    #[test]
    fn the_many_ways_of_writing_an_address_are_one() {
        for url in ["http://2130706433/", "http://0x7f.1/", "http://127.1/", "http://[::ffff:7f00:1]:80/"] {
            let told = check(&parse(url).unwrap(), public).unwrap_err();
            assert!(told.contains("this machine"), "{url}: {told}");
        }
    }

    #[test]
    fn what_is_no_address_of_a_page_is_told() {
        for (text, expected) in [
            ("zoos", "https://"),
            ("ftp://example.org/", "http://"),
            ("file:///etc/passwd", "http://"),
            ("https://me:secret@example.org/", "password"),
        ] {
            assert!(parse(text).unwrap_err().contains(expected), "{text}");
        }
        assert_eq!(parse(" https://Example.org/a?b=1#c ").unwrap().as_str(), "https://example.org/a?b=1");
    }
}
