//! The `plantui` program: [`plantui::cli`] of the library does everything except the report of bugs, which is here.

use std::{
    borrow::Cow,
    io::{self, Write},
    panic,
    process::ExitCode,
};

use color_eyre::config::{HookBuilder, Theme};
use plantui::text::visible;

fn main() -> ExitCode {
    report_bugs();
    plantui::cli::main()
}

#[cfg(unix)]
ctor::declarative::ctor! {
    /// Detects a closed standard output before `main`: the standard library would replace it by `/dev/null` and
    /// silently lose the result.
    #[ctor(unsafe)]
    fn see_whether_standard_output_is_closed() {
        if rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err() {
            plantui::cli::standard_output_is_closed();
        }
    }
}

/// Installs a readable panic report. Expected errors do not use it.
pub(crate) fn report_bugs() {
    let coloured = plantui::cli::takes_colours(&io::stderr());
    let report = |theme| HookBuilder::default().theme(theme).into_hooks().0;
    let (plain, colours) = (report(Theme::new()), coloured.then(|| report(Theme::dark())));
    panic::set_hook(Box::new(move |info| {
        let text = plain.panic_report(info).to_string();
        // A bug's message may quote a file: terminal control characters are made visible, and colours are dropped then.
        let shown = match (visible(&text), &colours) {
            (Cow::Borrowed(_), Some(colours)) => colours.panic_report(info).to_string(),
            (shown, _) => shown.into_owned(),
        };
        // color-eyre's own hook panics, and so aborts, if standard error is closed.
        drop(writeln!(io::stderr(), "{shown}"));
    }));
}
