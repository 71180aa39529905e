//! The `plantui` program: everything it does is in the library's [`plantui::cli`]; here is how a bug is reported.

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
    /// Detects a closed standard output before `main`: the standard library then opens `/dev/null` in its place, and a result
    /// would be lost in silence.
    #[ctor(unsafe)]
    fn see_whether_standard_output_is_closed() {
        if rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err() {
            plantui::cli::standard_output_is_closed();
        }
    }
}

/// Makes the report of a panic readable. Expected errors never come this way.
pub(crate) fn report_bugs() {
    let coloured = plantui::cli::takes_colours(&io::stderr());
    let report = |theme| HookBuilder::default().theme(theme).into_hooks().0;
    let (plain, colours) = (report(Theme::new()), coloured.then(|| report(Theme::dark())));
    panic::set_hook(Box::new(move |info| {
        let text = plain.panic_report(info).to_string();
        // A bug's words may quote a file's: what a terminal would obey in them is shown, and then without colours.
        let shown = match (visible(&text), &colours) {
            (Cow::Borrowed(_), Some(colours)) => colours.panic_report(info).to_string(),
            (shown, _) => shown.into_owned(),
        };
        // color-eyre's own hook panics, and so aborts, where standard error is gone.
        drop(writeln!(io::stderr(), "{shown}"));
    }));
}
