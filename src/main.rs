//! The `plantui` program: everything it does is in the library's [`plantui::cli`]; here is how a bug is reported.

use std::{
    env,
    io::{self, IsTerminal, Write},
    panic,
    process::ExitCode,
};

use color_eyre::config::{HookBuilder, Theme};

fn main() -> ExitCode {
    report_bugs();
    plantui::cli::main()
}

/// Makes the report of a panic readable. Expected errors never come this way.
pub(crate) fn report_bugs() {
    let coloured = io::stderr().is_terminal() && env::var_os("NO_COLOR").is_none_or(|value| value.is_empty());
    let theme = if coloured { Theme::dark() } else { Theme::new() };
    let (report, _) = HookBuilder::default().theme(theme).into_hooks();
    panic::set_hook(Box::new(move |info| {
        // color-eyre's own hook panics, and so aborts, where standard error is gone.
        drop(writeln!(io::stderr(), "{}", report.panic_report(info)));
    }));
}
