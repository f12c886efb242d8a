//! A place for one order: the newest wins, and whoever waits is woken.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

enum State<T> {
    Empty,
    Holds(T),
    Closed,
}

/// Holds at most one order.
pub struct Slot<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Default for Slot<T> {
    fn default() -> Self {
        Slot { state: Mutex::new(State::Empty), changed: Condvar::new() }
    }
}

impl<T> Slot<T> {
    /// Replaces whatever lies there. A closed slot takes nothing.
    pub fn put(&self, order: T) {
        let mut state = self.lock();
        if !matches!(*state, State::Closed) {
            *state = State::Holds(order);
            self.changed.notify_one();
        }
    }

    /// Waits for an order; none once the slot is closed.
    pub fn take(&self) -> Option<T> {
        let mut state = self.lock();
        loop {
            match std::mem::replace(&mut *state, State::Empty) {
                State::Holds(order) => return Some(order),
                State::Closed => {
                    *state = State::Closed;
                    return None;
                }
                State::Empty => state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        }
    }

    /// Ends all waiting.
    pub fn close(&self) {
        *self.lock() = State::Closed;
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_order_wins_and_a_closed_slot_gives_none() {
        let slot = Slot::default();
        slot.put(1);
        slot.put(2);
        assert_eq!(slot.take(), Some(2));
        slot.close();
        slot.put(3);
        assert_eq!(slot.take(), None);
    }
}
