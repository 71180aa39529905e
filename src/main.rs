//! The `plantui` program: everything it does is in the library's [`plantui::cli`].

use std::process::ExitCode;

fn main() -> ExitCode {
    // Expected errors never come this way: this makes the report of a bug readable.
    if let Err(error) = color_eyre::install() {
        eprintln!("error: {error}");
    }
    plantui::cli::main()
}
