//! Inputs that are almost right: seeds with a few things changed, so that they come past the first checks of a parser.
//!
//! Owns the changes and the words that formats are made of. It must not know any target. The same seed of the generator gives the
//! same inputs.

use parallax::measure::seeded::SplitMix64;

/// No input grows beyond this.
const LONGEST: usize = 1 << 18;

/// What parsers look for, and what they trip over.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    "\"",
    ":",
    ",",
    "null",
    "true",
    "false",
    "{}",
    "[]",
    "\"\"",
    "0",
    "-1",
    "1e309",
    "NaN",
    "Infinity",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775808",
    "-9223372036854775809",
    "4294967296",
    "2147483648",
    "1000000000",
    "0.0000001",
    "\n",
    "\r\n",
    "\r",
    "\t",
    "\0",
    " ",
    "\u{feff}",
    "\u{202e}",
    "\u{2066}",
    "\u{200b}",
    "\u{200d}",
    "\u{1b}[31m",
    "\u{1b}]52;c;AAAA\u{7}",
    "\u{1b}]8;;http://x\u{1b}\\",
    "\u{1b}P",
    "\u{9b}",
    "\u{2028}",
    "é",
    "e\u{301}",
    "動物園",
    "👩\u{200d}🚀",
    "🇫🇷",
    "\u{10ffff}",
    "\u{fffd}",
    "\\u0000",
    "\\ud800",
    "\\udc00",
    "\\",
    "//",
    "<",
    ">",
    "</",
    "<!--",
    "]]>",
    "&#0;",
    "&lt;",
    "<script>",
    "<C-",
    "<Resize:65535x65535>",
    "<Click:65535,65535>",
    "<Enter>",
    "<Wait>",
    "..",
    "../",
    "/",
    "%00",
    "%",
    "data: ",
    "data: [DONE]\n\n",
    "event:",
    "id",
    "text",
    "title",
    "_id",
    "question",
    "perspectives",
    "label",
    "Q0",
    "F32",
    "I64",
    "BOOL",
    "\"shape\":[4294967295,4294967295]",
    "\"data_offsets\":[0,18446744073709551615]",
    "'descr'",
    "'<f4'",
    "'fortran_order': True",
    "GGUF",
    "PK\u{3}\u{4}",
    "PK\u{5}\u{6}",
    "(((((((((",
    "{{{{{{{{{",
    "(a+)+$",
    "(?=(x*)*)y",
    "[[",
    "]]",
    "=",
    "'''",
    "\"\"\"",
    "#",
    "*",
    "?",
    "Should",
    "Is",
    "or",
    "not",
    "Allow",
    "Disallow: /",
    "User-agent: *",
    "Crawl-delay: 1e38",
    "HTTP/1.1 ",
    "Content-Length: ",
    "Transfer-Encoding: chunked",
    "Content-Encoding: gzip",
    "Location: ",
    "FFFFFFFFFFFFFFFF\r\n",
];

const NUMBERS: &[u64] = &[
    0,
    1,
    2,
    0x7f,
    0x80,
    0xff,
    0x7fff,
    0xffff,
    1 << 31,
    u32::MAX as u64,
    1 << 32,
    1 << 62,
    1 << 63,
    u64::MAX,
];

/// A few changes of one of the seeds.
pub fn mutated(rng: &mut SplitMix64, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[rng.below(seeds.len())].clone();
    for _ in 0..1 + rng.below(6) {
        let other = &seeds[rng.below(seeds.len())];
        change(rng, &mut bytes, other);
    }
    bytes.truncate(LONGEST);
    bytes
}

/// A place; mostly near the beginning, where heads are.
fn place(rng: &mut SplitMix64, length: usize) -> usize {
    match rng.below(4) {
        0 => rng.below(length.min(64) + 1),
        1 | 2 => rng.below(length.min(2_048) + 1),
        _ => rng.below(length + 1),
    }
}

fn range(rng: &mut SplitMix64, length: usize) -> std::ops::Range<usize> {
    let start = place(rng, length);
    let most = if rng.coin() { 16 } else { length };
    start..(start + rng.below(most + 1)).min(length)
}

fn change(rng: &mut SplitMix64, bytes: &mut Vec<u8>, other: &[u8]) {
    let at = place(rng, bytes.len());
    match rng.below(14) {
        0 if at < bytes.len() => bytes[at] ^= 1 << rng.below(8),
        1 if at < bytes.len() => bytes[at] = rng.next_u64() as u8,
        2 => drop(bytes.drain(range(rng, bytes.len()))),
        3 => bytes.truncate(at),
        4 => {
            let again = bytes[range(rng, bytes.len())].to_vec();
            insert(bytes, at, &again);
        }
        5 => {
            let part = &other[range(rng, other.len())];
            insert(bytes, at, part);
        }
        6 => {
            bytes.truncate(at);
            bytes.extend_from_slice(&other[place(rng, other.len())..]);
        }
        7 => {
            // The same piece very often: nesting, floods, long lines.
            let word = WORDS[rng.below(WORDS.len())].as_bytes();
            let often = [10, 100, 1_000, 20_000][rng.below(4)];
            insert(bytes, at, &word.repeat(often.min(LONGEST / word.len())));
        }
        8 => digits(rng, bytes, at),
        9 => {
            let number = NUMBERS[rng.below(NUMBERS.len())].to_le_bytes();
            let width = [1, 2, 4, 8][rng.below(4)];
            for (to, from) in bytes.iter_mut().skip(at).zip(&number[..width]) {
                *to = *from;
            }
        }
        10 => lines(rng, bytes),
        _ => insert(bytes, at, WORDS[rng.below(WORDS.len())].as_bytes()),
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, piece: &[u8]) {
    let at = at.min(bytes.len());
    let room = LONGEST.saturating_sub(bytes.len());
    bytes.splice(at..at, piece.iter().take(room).copied());
}

/// Writes another number in the place of one that stands there.
fn digits(rng: &mut SplitMix64, bytes: &mut Vec<u8>, from: usize) {
    let Some(start) = (from..bytes.len()).find(|at| bytes[*at].is_ascii_digit()) else { return };
    let end = (start..bytes.len()).find(|at| !bytes[*at].is_ascii_digit()).unwrap_or(bytes.len());
    let number = match rng.below(3) {
        0 => rng.below(10).to_string(),
        _ => NUMBERS[rng.below(NUMBERS.len())].to_string(),
    };
    bytes.splice(start..end, number.bytes());
}

/// Doubles a line, drops one, or puts them in another order.
fn lines(rng: &mut SplitMix64, bytes: &mut Vec<u8>) {
    let mut all: Vec<Vec<u8>> = bytes.split_inclusive(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    if all.is_empty() {
        return;
    }
    let at = rng.below(all.len());
    match rng.below(3) {
        0 => drop(all.remove(at)),
        1 => all.insert(at, all[at].clone()),
        _ => rng.shuffle(&mut all),
    }
    *bytes = all.concat();
}

#[test]
fn the_same_seed_makes_the_same_inputs_and_another_makes_others() {
    let seeds = [b"{\"id\": 17}\nand more\n".to_vec(), b"other".to_vec()];
    let made = |seed| {
        let mut rng = SplitMix64::new(seed);
        (0..500).map(|_| mutated(&mut rng, &seeds)).collect::<Vec<_>>()
    };
    assert_eq!(made(3), made(3));
    assert_ne!(made(3), made(4));
    assert!(made(3).iter().all(|input| input.len() <= LONGEST));
    assert!(made(3).iter().filter(|input| !seeds.contains(input)).count() > 400);
}
