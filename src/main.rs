//! The `parallax` binary: see the library for everything.

use std::process::ExitCode;

fn main() -> ExitCode {
    parallax::cli::main()
}
