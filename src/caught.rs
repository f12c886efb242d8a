//! Panics of code that is not ours, in files that anybody can bring: caught where they were asked for, and told as errors.
//!
//! What is caught is not printed, and does not give the terminal back: nobody else is to hear of it. It must not be put around code of
//! this program, whose panics are faults to be mended.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe, catch_unwind};
use std::sync::Once;

thread_local! {
    static CATCHING: Cell<bool> = const { Cell::new(false) };
}

/// What came of it; none if it panicked.
pub fn caught<T>(run: impl FnOnce() -> T) -> Option<T> {
    static QUIET: Once = Once::new();
    QUIET.call_once(|| {
        let hook = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !is_caught() {
                hook(panic);
            }
        }));
    });
    let before = CATCHING.replace(true);
    let came = catch_unwind(AssertUnwindSafe(run));
    CATCHING.set(before);
    came.ok()
}

/// Whether a panic of this thread would be caught.
pub fn is_caught() -> bool {
    CATCHING.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_none_and_the_thread_goes_on_as_before() {
        assert_eq!(caught(|| caught(|| panic!("not told")).map(|()| 1).unwrap_or(2)), Some(2));
        assert!(!is_caught());
        assert_eq!(caught(|| 3), Some(3));
        assert_eq!(caught(is_caught), Some(true));
    }
}
