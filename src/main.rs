//! The `parallax` binary: see the library for everything.

use std::process::ExitCode;

fn main() -> ExitCode {
    #[cfg(all(target_os = "linux", target_env = "gnu"))]
    keep_freed_memory();
    parallax::cli::main()
}

/// Some freed memory is kept for what comes next: the detector's largest tensors have some 3 MB. By default much of it goes back to the system
/// after every inference, and taking it again costs the detector a twentieth of its time.
#[cfg(all(target_os = "linux", target_env = "gnu"))]
fn keep_freed_memory() {
    // SAFETY: sets two numbers of the allocator, before there are other threads.
    unsafe {
        libc::mallopt(libc::M_TRIM_THRESHOLD, 16 << 20);
        libc::mallopt(libc::M_MMAP_THRESHOLD, 4 << 20);
    }
}
