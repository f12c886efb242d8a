//! Random keys, mouse events, pastes and sizes against the real program: it must not panic or hang, and must give the terminal back.
//!
//! The seed determines everything except the time between keys. Response times are counted and printed, but fail no brief run.

use std::collections::VecDeque;
use std::fs;
use std::time::{Duration, Instant};

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use parallax::measure::seeded::SplitMix64;
use parallax::tui::keymap::TABLE;
use parallax::tui::script::{Step, parse};

use super::memory::held;
use super::pty::{Answer, Screen};
use super::{campaign_file, long, report, seed};

/// Bursts of a brief run.
const BRIEF: usize = 120;
/// A person notices a longer delay.
const STALL: Duration = Duration::from_millis(100);
/// The number of recent sizes that a late frame may still have.
const SIZES: usize = 6;
/// The limit of memory in MB, whatever is pressed.
const MOST: u64 = 500;
/// Events that a failure prints.
const PRINTED: usize = 80;

/// The bytes that a terminal sends for a key.
pub fn bytes_of(key: &str) -> Vec<u8> {
    let steps = parse(key).unwrap();
    steps
        .iter()
        .filter_map(|step| if let Step::Key(key) = step { Some(bytes(key)) } else { None })
        .flatten()
        .collect()
}

fn bytes(key: &KeyEvent) -> Vec<u8> {
    let text = match key.code {
        KeyCode::Char(c) if key.modifiers.contains(KeyModifiers::CONTROL) => return vec![c as u8 & 0x1f],
        KeyCode::Char(c) => return c.to_string().into_bytes(),
        KeyCode::Enter => "\r",
        KeyCode::Tab => "\t",
        KeyCode::BackTab => "\u{1b}[Z",
        KeyCode::Backspace => "\u{7f}",
        KeyCode::Esc => "\u{1b}",
        KeyCode::Up => "\u{1b}[A",
        KeyCode::Down => "\u{1b}[B",
        KeyCode::Right => "\u{1b}[C",
        KeyCode::Left => "\u{1b}[D",
        KeyCode::Home => "\u{1b}[H",
        KeyCode::End => "\u{1b}[F",
        KeyCode::PageUp => "\u{1b}[5~",
        KeyCode::PageDown => "\u{1b}[6~",
        KeyCode::Delete => "\u{1b}[3~",
        other => panic!("no bytes for {other:?}"),
    };
    text.into()
}

const TYPED: &[&str] = &[
    "a",
    "z",
    " ",
    "0",
    "9",
    "é",
    "動",
    "ب",
    "👩\u{200d}🚀",
    "e\u{301}",
    "\u{202e}",
    "Should zoos be banned?",
    "zoos",
    "\u{0}",
    "\u{1}",
    "\u{1b}[",
    "\u{1b}[999;999H",
    "\u{1b}[<0;1",
    "\u{1b}[?1",
    "\u{1b}[M",
    "\u{1b}[200~",
    "\u{1b}OP",
    "\u{1b}[15~",
    "\u{1b}[I",
    "\u{1b}[O",
    "\u{1b}x",
    "+mmr",
    "@",
    "-1",
    "1e9",
];

#[derive(Default)]
struct Counts {
    keys: usize,
    mouse: usize,
    pastes: usize,
    probes: usize,
    starts: usize,
    stalls: Vec<Duration>,
    /// Stalls in which the program waited for a core.
    starved: usize,
    took: Vec<Duration>,
    /// The peak memory of any start, in MB.
    most: u64,
}

struct Monkey {
    rng: SplitMix64,
    table: Vec<Vec<u8>>,
    counts: Counts,
    last: VecDeque<String>,
    /// The last sizes, the newest first.
    sizes: VecDeque<(u16, u16)>,
}

impl Monkey {
    fn new(seed: u64) -> Self {
        let all = TABLE.iter().flat_map(|binding| binding.keys).filter(|key| !["q", "<C-c>"].contains(key));
        let table = all.map(|key| bytes_of(key)).collect();
        let (last, sizes) = (VecDeque::new(), VecDeque::new());
        Monkey { rng: SplitMix64::new(seed), table, counts: Counts::default(), last, sizes }
    }

    fn event(&mut self, (width, height): (u16, u16)) -> Vec<u8> {
        let rng = &mut self.rng;
        match rng.below(40) {
            0..=27 => {
                self.counts.keys += 1;
                self.table[rng.below(self.table.len())].clone()
            }
            28..=32 => {
                self.counts.keys += 1;
                TYPED[rng.below(TYPED.len())].into()
            }
            33 => {
                // Leaving is rare, so that many events come first.
                self.counts.keys += 1;
                match rng.below(12) {
                    0 => vec![3],
                    1 => b"q".to_vec(),
                    _ => b"/".to_vec(),
                }
            }
            34..=37 => {
                self.counts.mouse += 1;
                let (x, y) = (1 + rng.below(usize::from(width) + 3), 1 + rng.below(usize::from(height) + 3));
                let button = [0, 0, 0, 1, 2, 32, 35, 64, 64, 65, 65, 66, 67][rng.below(13)];
                let end = if rng.below(4) == 0 { 'm' } else { 'M' };
                format!("\u{1b}[<{button};{x};{y}{end}").into()
            }
            38 => {
                let long = 1 + [10, 100, 20_000][rng.below(3)];
                let count = rng.below(long);
                let text: String = (0..count).map(|_| TYPED[rng.below(14)]).collect();
                self.counts.pastes += 1;
                format!("\u{1b}[200~{}\u{1b}[201~", text.replace('\u{1b}', "")).into()
            }
            _ => {
                self.counts.keys += 1;
                // Ctrl-C has its own probability; Ctrl-\ would kill a program that has just given the terminal back.
                vec![rng.next_u64() as u8 & 0x7f].into_iter().filter(|byte| ![3, 28].contains(byte)).collect()
            }
        }
    }

    fn size(&mut self, was: (u16, u16)) -> (u16, u16) {
        let size = match self.rng.below(12) {
            0 => (1 + self.rng.below(20), 1 + self.rng.below(8)),
            1 => (1 + self.rng.below(300), 1 + self.rng.below(100)),
            2 => (40, 12),
            3 => (80, 24),
            _ => (100 + self.rng.below(60), 30 + self.rng.below(20)),
        };
        let size = (size.0 as u16, size.1 as u16);
        // A size that a late frame may still have would not be drawn again.
        let recent = |size: &(u16, u16)| *size == was || self.sizes.contains(size);
        let size = (0..).map(|i| (size.0 + i, size.1)).find(|size| !recent(size)).unwrap_or(size);
        self.sizes.push_front(size);
        self.sizes.truncate(SIZES);
        size
    }

    /// Sends a burst of events and a probe. Returns whether the program still runs.
    fn step(&mut self, screen: &mut Screen) -> Result<bool, String> {
        for _ in 0..1 + self.rng.below(6) {
            let event = self.event(screen.size);
            self.last.push_back(
                String::from_utf8_lossy(&event)
                    .chars()
                    .take(60)
                    .collect::<String>()
                    .escape_debug()
                    .to_string(),
            );
            screen.send(&event);
        }
        let size = self.size(screen.size);
        self.last.push_back(format!("{}x{}", size.0, size.1));
        while self.last.len() > PRINTED {
            self.last.pop_front();
        }
        self.counts.probes += 1;
        if self.counts.probes.is_multiple_of(10) {
            match screen.probe_by_key() {
                Answer::After(..) => {}
                Answer::Ended => return Ok(false),
                Answer::Hangs => return Err(format!("it reads no keys: {}", screen.end_of_output())),
            }
        }
        match screen.probe(size) {
            Answer::After(took, waited) => {
                self.counts.took.push(took);
                let own = took.saturating_sub(waited);
                if own > STALL {
                    println!(
                        "{own:.0?} until an answer ({waited:.0?} more for a core), after {:?}",
                        self.leading(12)
                    );
                    self.counts.stalls.push(own);
                } else if took > STALL {
                    self.counts.starved += 1;
                }
                Ok(true)
            }
            Answer::Ended => Ok(false),
            Answer::Hangs => Err(format!("it hangs: {}", screen.end_of_output())),
        }
    }

    fn leading(&self, count: usize) -> Vec<&String> {
        self.last.iter().skip(self.last.len().saturating_sub(count)).collect()
    }

    fn broken(&self, why: &str) -> ! {
        let events =
            Vec::from_iter(&self.last).iter().map(|event| event.as_str()).collect::<Vec<_>>().join("\n");
        fs::write(campaign_file(&format!("keys-{}", seed())), &events).unwrap();
        panic!(
            "PARALLAX_SEED={}: {why}\nafter {} keys, the last events:\n{events}",
            seed(),
            self.counts.keys
        );
    }
}

#[test]
fn random_keys_and_sizes_break_nothing_and_the_terminal_is_given_back() {
    let mut monkey = Monkey::new(seed());
    let (began, end) = (Instant::now(), long().map(Duration::from_secs));
    let mut bursts = 0;
    let more = |bursts: usize| end.map_or(bursts < BRIEF, |end| began.elapsed() < end);
    while more(bursts) {
        monkey.counts.starts += 1;
        // The last is in no set, so that its statements are derived and nothing is judged yet.
        let question = ["Should zoos be banned?", "", "should zoos exist?"][monkey.counts.starts % 3];
        let mut screen = Screen::open(&[question, "--annotator", "anna"]);
        let mut goes_on = true;
        while goes_on && more(bursts) {
            goes_on = monkey.step(&mut screen).unwrap_or_else(|why| monkey.broken(&why));
            bursts += 1;
            let held = held(screen.id(), "VmHWM").unwrap_or(0) / 1_024;
            monkey.counts.most = monkey.counts.most.max(held);
            if held > MOST {
                monkey.broken(&format!("{held} MB after `{question}`"));
            }
        }
        if goes_on {
            screen.send(&[3]);
        }
        if let Some(why) = screen.ended() {
            monkey.broken(&why);
        }
    }
    let Counts { keys, mouse, pastes, probes, starts, mut stalls, starved, mut took, most } = monkey.counts;
    took.sort();
    stalls.sort();
    let at = |share: f64| {
        took.get((took.len() as f64 * share) as usize).or(took.last()).copied().unwrap_or_default()
    };
    report(&format!(
        "keys: {keys} keys, {mouse} mouse events, {pastes} pastes, {probes} sizes, {starts} starts from seed {} in {:.0?}; an answer after \
         {:.1?} (median), {:.1?} (99 %), {:.1?} (most); {} over {STALL:?} of its own, the longest {:.0?}, and {starved} waiting for a core; \
         at most {most} MB",
        seed(),
        began.elapsed(),
        at(0.5),
        at(0.99),
        at(1.0),
        stalls.len(),
        stalls.last().copied().unwrap_or_default(),
    ));
}
