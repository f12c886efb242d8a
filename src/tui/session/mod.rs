//! Sessions: recordings of what a user did in the explorer, with the pause before each act. Uses neither a clock nor a terminal.
//!
//! A session is a file with one JSON object per line. The first line says what to open. Every other line is one act after a pause: keys
//! as in scripts, pasted text, or a caption to show.
//!
//! ```text
//! {"parallax-session":1,"size":"140x40","label-source":"gold","lanes":["bm25","minilm"],"k":5}
//! {"after":2000,"say":"Two retrievers answer the same question."}
//! {"after":80,"keys":"Should zoos be banned?<Enter><Wait>"}
//! ```
//!
//! `after` is the pause in milliseconds, before each key if there are several. `<Wait>` waits until all lanes and verdicts have
//! arrived; the next pause begins there.
//!
//! May use: script, config, theme, the wrapping of text; the recorder also the state of the interface.
//!
//! This file plays a session: it decides which act comes next, and when. The caller passes the time in.

use std::sync::Arc;
use std::time::Duration;

use super::config;
use super::config::Layout;
use super::keymap::Keymap;
use super::script::{Size, Step};
use super::widgets::text::{columns_of, wrap};
use crate::report::safe;

mod file;
pub mod record;

pub use file::{Act, Head, Session, read, tour};
pub use record::{Recorder, unrecorded_options};

/// The slowest and the fastest pace; 1 is the pace of the recording.
const PACES: (f64, f64) = (0.125, 64.0);

/// The most rows of a caption.
pub const CAPTION_ROWS: usize = 3;

/// The least width at which every text fits into so many rows; 0 without texts.
fn least_width(texts: &[String], rows: usize) -> usize {
    let least = |text: &String| {
        // A wider row never makes more rows.
        let widths: Vec<usize> = (1..=columns_of(text).clamp(1, usize::from(u16::MAX))).collect();
        1 + widths.partition_point(|width| wrap(text, *width, rows + 1).len() > rows)
    };
    texts.iter().map(least).max().unwrap_or(0)
}

/// The state of a replay.
#[derive(Clone, Debug)]
pub struct Replay {
    acts: Arc<[(Duration, Act)]>,
    /// The number of finished acts.
    pub done: usize,
    /// The part of the next pause that has passed.
    waited: Duration,
    /// The current caption; empty if there is none.
    pub caption: String,
    /// The least width at which every caption fits into one row, two rows, …: the screen reserves the rows of the longest caption from the
    /// beginning.
    caption_widths: [usize; CAPTION_ROWS - 1],
    /// Whether the replay is paused.
    pub paused: bool,
    /// The pace: 2 is twice as fast as the recording.
    pub pace: f64,
    /// Whether it becomes a film: then no keys are pressed, and frames can have any size.
    pub filmed: bool,
    /// The terminal size of the recording.
    pub size: Size,
    /// The keys of the session. During the replay, the user's own keys, which are restored at its end.
    pub keys: Arc<Keymap>,
    /// The layout of the session. During the replay, the user's own layout.
    pub layout: Layout,
    /// The widths of the lanes if a border was dragged.
    pub widths: Vec<u32>,
}

impl Replay {
    /// A replay from the beginning.
    pub fn begin(session: &Session, pace: f64) -> Self {
        let config = session.head.config.as_deref().map(|text| config::read(text).0).unwrap_or_default();
        let says = |(_, act): &'_ (Duration, Act)| match act {
            Act::Say(words) => Some(safe::line(words)),
            _ => None,
        };
        let captions = session.acts.iter().filter_map(says).filter(|text| !text.is_empty());
        let captions: Vec<String> = captions.collect();
        Replay {
            acts: session.acts.clone().into(),
            done: 0,
            waited: Duration::ZERO,
            caption: String::new(),
            caption_widths: std::array::from_fn(|rows| least_width(&captions, rows + 1)),
            paused: false,
            pace: pace.clamp(PACES.0, PACES.1),
            filmed: false,
            size: session.head.size,
            keys: config.keys,
            layout: config.layout,
            widths: session.head.widths.clone(),
        }
    }

    /// A replay to be filmed.
    pub fn filmed(session: &Session) -> Self {
        Replay { filmed: true, ..Replay::begin(session, 1.0) }
    }

    /// Returns the rows of the longest caption at a width in columns, at most [`CAPTION_ROWS`]; 0 without captions.
    pub fn caption_rows(&self, width: usize) -> usize {
        let has_captions = self.caption_widths[0] > 0;
        usize::from(has_captions) + self.caption_widths.iter().filter(|least| width.max(1) < **least).count()
    }

    /// Returns the number of acts.
    pub fn count(&self) -> usize {
        self.acts.len()
    }

    /// Doubles or halves the pace.
    pub fn hurry(&mut self, faster: bool) {
        let pace = if faster { self.pace * 2.0 } else { self.pace / 2.0 };
        self.pace = pace.clamp(PACES.0, PACES.1);
    }

    /// Adds the time that has passed.
    pub fn pass(&mut self, time: Duration) {
        if !self.paused {
            self.waited = self.waited.saturating_add(time.mul_f64(self.pace));
        }
    }

    /// Returns the time until the next act; `None` while the replay is paused or waits for results.
    pub fn left(&self, settled: bool) -> Option<Duration> {
        let left = self.acts.get(self.done).map_or(Duration::ZERO, |(after, _)| {
            // Rounded up to a millisecond: a timer that ended slightly early would be set again and again.
            let left = after.saturating_sub(self.waited).div_f64(self.pace);
            if left.is_zero() { left } else { left + Duration::from_millis(1) }
        });
        let waits = left.is_zero() && !settled && self.at_a_wait();
        (!self.paused && !waits).then_some(left)
    }

    /// Whether the next act waits for results.
    pub fn at_a_wait(&self) -> bool {
        matches!(self.acts.get(self.done), Some((_, Act::Step(Step::Wait))))
    }

    /// Returns the next act if it is due.
    pub fn due(&mut self, settled: bool) -> Option<Act> {
        let (after, act) = self.acts.get(self.done)?;
        if self.waited < *after || (self.at_a_wait() && !settled) {
            return None;
        }
        // A pause after a wait begins when the wait ends; otherwise surplus time counts towards the next pause.
        self.waited = if self.at_a_wait() { Duration::ZERO } else { self.waited - *after };
        self.done += 1;
        Some(act.clone())
    }

    /// Makes the next act due now.
    pub fn skip(&mut self) {
        if let Some((after, _)) = self.acts.get(self.done) {
            self.waited = self.waited.max(*after);
        }
    }

    /// Whether all acts are done.
    pub fn ended(&self) -> bool {
        self.done >= self.acts.len()
    }
}

#[cfg(test)]
mod tests {
    use super::file::{read, tour};
    use super::*;

    #[test]
    fn the_captions_of_the_builtin_tour_fit_a_small_terminal() {
        let tour = tour().unwrap();
        let replay = Replay::begin(&tour, 1.0);
        let says = |(_, act): &'_ (Duration, Act)| match act {
            Act::Say(words) => Some(words.clone()),
            _ => None,
        };
        let captions: Vec<String> = tour.acts.iter().filter_map(says).collect();
        assert!(captions.len() > 20);
        for words in &captions {
            assert!(wrap(words, 38, 9).len() <= CAPTION_ROWS, "{words}");
        }
        for width in 0..300 {
            let rows = captions.iter().map(|words| wrap(words, width, CAPTION_ROWS).len()).max();
            assert_eq!(Some(replay.caption_rows(width)), rows, "at {width} columns");
        }
        let whole: Duration = tour.acts.iter().map(|(after, _)| *after).sum();
        assert!((90..180).contains(&whole.as_secs()), "{whole:?}");
    }

    #[test]
    fn pauses_follow_the_pace_and_a_wait_ends_when_all_results_have_arrived() {
        let ms = Duration::from_millis;
        let head = r#"{"parallax-session":1,"size":"100x30","label-source":"gold","lanes":["bm25"],"k":5}"#;
        let text = format!(
            "{head}\n{{\"after\":100,\"keys\":\"a\"}}\n{{\"after\":50,\"keys\":\"<Wait>\"}}\n{{\"after\":80,\"keys\":\"b\"}}"
        );
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a.session.jsonl");
        std::fs::write(&file, text).unwrap();
        let session = read(&file).unwrap();
        let mut replay = Replay::begin(&session, 2.0);
        assert_eq!(replay.due(true), None);
        replay.pass(ms(49));
        assert_eq!(replay.due(true), None);
        assert_eq!(replay.left(true), Some(ms(2)));
        replay.pass(ms(2));
        assert!(matches!(replay.due(true), Some(Act::Step(Step::Key(_)))));
        replay.pass(ms(500));
        assert_eq!((replay.left(false), replay.due(false)), (None, None));
        assert_eq!(replay.due(true), Some(Act::Step(Step::Wait)));
        assert_eq!(replay.due(true), None, "a pause after a wait begins at its end");
        replay.paused = true;
        replay.pass(ms(500));
        assert_eq!((replay.left(true), replay.due(true)), (None, None));
        replay.skip();
        assert!(replay.due(true).is_some() && replay.ended());
    }
}
