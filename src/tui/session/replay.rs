//! A session that is being played: which act comes next and when. It is told how much time has passed and never asks.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use super::{Act, Session};
use crate::tui::Size;
use crate::tui::app::App;
use crate::tui::config::{self, Layout};
use crate::tui::keymap::Keymap;
use crate::tui::script::Step;

/// The slowest and the fastest pace.
const PACES: (f64, f64) = (0.125, 64.0);

/// Where a replay stands.
#[derive(Clone, Debug)]
pub struct Replay {
    acts: Arc<[(Duration, Act)]>,
    /// How many acts are done.
    pub done: usize,
    /// How much of the pause before the next one has passed.
    waited: Duration,
    /// The words beside what is seen; empty for none.
    pub caption: String,
    /// All that will be said, so that there is room for it from the beginning.
    pub captions: Arc<[String]>,
    /// Whether it stands still.
    pub paused: bool,
    /// How much faster than it was.
    pub pace: f64,
    /// Nobody watches who could press a key, and the frame may be of any size.
    pub filmed: bool,
    /// The size of the terminal in which it was recorded.
    pub size: Size,
    /// The keys of the session; once it is played those of whoever watches, which hold again at the end.
    pub keys: Arc<Keymap>,
    /// Likewise, how much room there is for what.
    pub layout: Layout,
    /// How wide its lanes were, where their borders were dragged.
    widths: Vec<u32>,
}

impl Replay {
    /// From the beginning.
    pub fn begin(session: &Session, pace: f64) -> Self {
        let its = session.head.config.as_deref().map(|text| config::read(text).0).unwrap_or_default();
        let says = |(_, act): &(Duration, Act)| match act {
            Act::Say(words) => Some(words.clone()),
            _ => None,
        };
        Replay {
            acts: session.acts.clone().into(),
            done: 0,
            waited: Duration::ZERO,
            caption: String::new(),
            captions: session.acts.iter().filter_map(says).collect(),
            paused: false,
            pace: pace.clamp(PACES.0, PACES.1),
            filmed: false,
            size: session.head.size,
            keys: its.keys,
            layout: its.layout,
            widths: session.head.widths.clone(),
        }
    }

    /// The same, without anybody who watches.
    pub fn filmed(session: &Session) -> Self {
        Replay { filmed: true, ..Replay::begin(session, 1.0) }
    }

    /// Plays it there: with its own keys, and with its own room for everything.
    pub fn onto(mut self, app: &mut App) {
        self.exchange(app);
        for (lane, width) in app.lanes.iter_mut().zip(&self.widths) {
            lane.width = *width;
        }
        app.replay = Some(self);
    }

    /// The keys and the layout that held before hold again.
    pub fn exchange(&mut self, app: &mut App) {
        mem::swap(&mut self.keys, &mut app.keys);
        mem::swap(&mut self.layout, &mut app.layout);
    }

    /// How many acts there are.
    pub fn count(&self) -> usize {
        self.acts.len()
    }

    /// Twice as fast, or half as fast.
    pub fn hurry(&mut self, faster: bool) {
        let pace = if faster { self.pace * 2.0 } else { self.pace / 2.0 };
        self.pace = pace.clamp(PACES.0, PACES.1);
    }

    /// Time has passed.
    pub fn pass(&mut self, time: Duration) {
        if !self.paused {
            self.waited = self.waited.saturating_add(time.mul_f64(self.pace));
        }
    }

    /// How long until the next act; none where that is not a matter of time.
    pub fn left(&self, settled: bool) -> Option<Duration> {
        let left = self.acts.get(self.done).map_or(Duration::ZERO, |(after, _)| {
            // Rounded up to the next millisecond: a wait that ends just before its time would be waited for again and again.
            let left = after.saturating_sub(self.waited).div_f64(self.pace);
            if left.is_zero() { left } else { left + Duration::from_millis(1) }
        });
        let waits = left.is_zero() && !settled && self.at_a_wait();
        (!self.paused && !waits).then_some(left)
    }

    /// Whether the next act is to wait for what was asked.
    pub fn at_a_wait(&self) -> bool {
        matches!(self.acts.get(self.done), Some((_, Act::Step(Step::Wait))))
    }

    /// The next act, if its time has come.
    pub fn due(&mut self, settled: bool) -> Option<Act> {
        let (after, act) = self.acts.get(self.done)?;
        if self.waited < *after || (self.at_a_wait() && !settled) {
            return None;
        }
        // What follows a wait counts from where the wait ended; the time that is over belongs to what follows anything else.
        self.waited = if self.at_a_wait() { Duration::ZERO } else { self.waited - *after };
        self.done += 1;
        Some(act.clone())
    }

    /// Lets the time of the next act come at once.
    pub fn skip(&mut self) {
        if let Some((after, _)) = self.acts.get(self.done) {
            self.waited = self.waited.max(*after);
        }
    }

    /// Whether nothing is left to do.
    pub fn ended(&self) -> bool {
        self.done >= self.acts.len()
    }
}
