//! The signals of the system, the exit codes that stand for them, and its memory. What differs between systems lies here. May use: nothing
//! of this crate.
//!
//! Without signals (Windows), Ctrl-C is a key in the explorer, and ends a command as the system does.

use std::io;

/// The number of SIGHUP. A terminal that is gone counts as this signal, whether the system sends it or not.
pub const HANG_UP: i32 = 1;

/// The exit code of a program that a signal ended, as in shells.
pub fn exit_code(signal: i32) -> u8 {
    u8::try_from(128 + signal).unwrap_or(u8::MAX)
}

/// Lets the program keep some freed memory for what comes next: the detector's largest tensors have some 3 MB. By default much of it goes back to
/// the system after every inference, and taking it again costs the detector a twentieth of its time. To be called before there are threads.
pub fn keep_freed_memory() {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    // SAFETY: sets two numbers of the allocator.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 16 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
    }
}

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    /// The program is to end, by the signal of this number.
    End(i32),
    /// The process is to stop until it is continued.
    Stop,
    /// The process goes on after a stop.
    Continue,
    /// The terminal has another size.
    Resize,
}

/// Which signals to listen to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Which {
    /// SIGINT, SIGTERM and SIGHUP: those that ask a command to end. SIGHUP is left out if it was ignored at the start, as under nohup.
    Requests,
    /// All that would end or stop the process, and those about the terminal, except those that a fault of the program raises.
    All,
}

/// Calls `each` with every signal, on a thread of its own. If `each` returns false, the signal does what it does by default.
///
/// # Errors
/// The system refuses a handler or a thread.
#[cfg(unix)]
pub fn listen(which: Which, mut each: impl FnMut(Signal) -> bool + Send + 'static) -> io::Result<()> {
    use signal_hook::consts::{SIGCONT, SIGHUP, SIGTSTP, SIGWINCH};
    use signal_hook::low_level::emulate_default_handler;
    let numbers: Vec<i32> = match which {
        Which::Requests => {
            unix::REQUESTS.iter().copied().filter(|one| *one != SIGHUP || !unix::is_ignored(*one)).collect()
        }
        Which::All => unix::all(),
    };
    let mut signals = signal_hook::iterator::Signals::new(numbers)?;
    let listening = move || {
        for number in signals.forever() {
            let signal = match number {
                SIGTSTP => Signal::Stop,
                SIGCONT => Signal::Continue,
                SIGWINCH => Signal::Resize,
                number => Signal::End(number),
            };
            if each(signal) {
                continue;
            }
            // A signal that the crate does not know ends the process too.
            if emulate_default_handler(number).is_err() {
                std::process::exit(i32::from(exit_code(number)));
            }
        }
    };
    std::thread::Builder::new().name("signals".into()).spawn(listening).map(drop)
}

/// Listens to nothing: this system has no signals.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn listen(_: Which, _: impl FnMut(Signal) -> bool + Send + 'static) -> io::Result<()> {
    Ok(())
}

/// Stops the process as Ctrl-Z does, and returns when it goes on.
///
/// # Errors
/// The system does not stop it.
#[cfg(unix)]
pub fn stop_process() -> io::Result<()> {
    signal_hook::low_level::emulate_default_handler(signal_hook::consts::SIGTSTP)
}

/// Does nothing: this system stops no process.
///
/// # Errors
/// None.
#[cfg(not(unix))]
pub fn stop_process() -> io::Result<()> {
    Ok(())
}

#[cfg(unix)]
mod unix {
    use signal_hook::consts::*;

    pub const REQUESTS: [i32; 3] = [SIGINT, SIGTERM, SIGHUP];

    /// All signals but those that cannot be caught and those that a fault raises: a handler that returns from a fault would meet it again.
    pub fn all() -> Vec<i32> {
        let mut all = vec![
            SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGALRM, SIGUSR1, SIGUSR2, SIGXCPU, SIGXFSZ, SIGVTALRM,
            SIGPROF, SIGTSTP, SIGCONT, SIGWINCH,
        ];
        // Elsewhere SIGIO is ignored by default, and there are no real-time signals or other numbers.
        #[cfg(target_os = "linux")]
        all.extend([SIGIO, 16, 30].into_iter().chain(35..=64));
        all
    }

    /// Whether the program was started with a signal ignored. This can be found out only on Linux.
    pub fn is_ignored(signal: i32) -> bool {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
        mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
            .is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exit_codes_are_128_and_the_number_of_the_signal() {
        assert_eq!([1, 2, 15, 31, 64].map(exit_code), [129, 130, 143, 159, 192]);
    }
}
