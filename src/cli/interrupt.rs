//! Ctrl-C in a long command: it stops between two steps, and what was finished is kept.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::work::Stop;

/// The exit code of an interrupted command.
pub const INTERRUPTED: u8 = 130;

/// Set when the user presses Ctrl-C; a second press ends the program at once.
///
/// # Errors
/// The system takes no signal handler.
pub fn stop_on_interrupt() -> io::Result<Stop> {
    let pressed = Arc::new(AtomicU64::new(0));
    let stop = Stop::when_past(&pressed, 0);
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGINT, SIGTERM};
        let mut signals = signal_hook::iterator::Signals::new([SIGINT, SIGTERM])?;
        std::thread::spawn(move || {
            for _ in signals.forever() {
                if pressed.fetch_add(1, Ordering::Relaxed) > 0 {
                    std::process::exit(i32::from(INTERRUPTED));
                }
            }
        });
    }
    #[cfg(not(unix))]
    drop::<(Arc<AtomicU64>, Ordering)>((pressed, Ordering::Relaxed));
    Ok(stop)
}
