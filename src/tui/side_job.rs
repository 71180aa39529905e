//! Work beside planning that may take long enough to be felt: loading a workload, writing an export.
//!
//! Each runs on a short-lived thread of its own, so that it neither waits for a planner nor pushes a plan aside.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::Arc,
};

use super::{
    export_form::{ExportFormat, Source},
    files::{self, SaveError},
    worker::{News, Report},
};
use crate::{
    planner::panic_message,
    tui::views::compare::pins::{self, PinTerms},
    workload,
};

/// One piece of such work.
pub(super) enum SideJob {
    /// Load a workload; the built-in one without a path.
    Load {
        /// Its file.
        path: Option<PathBuf>,
    },
    /// Load a file as what it is: a plan to compare with, or another workload.
    Open {
        /// The file.
        path: PathBuf,
        /// What a plan must belong to.
        terms: Box<PinTerms>,
    },
    /// Load the workload on the screen again.
    Reload {
        /// Its file.
        path: PathBuf,
        /// Which reading this is: of two, the later one counts.
        number: u64,
    },
    /// Write an export.
    Export {
        /// What.
        source: Source,
        /// How.
        format: ExportFormat,
        /// Where.
        path: PathBuf,
        /// Whether a file that is there may be replaced.
        overwrite: bool,
    },
    /// Count how long an export will be.
    Measure {
        /// Of what.
        source: Source,
        /// In which format.
        format: ExportFormat,
    },
}

/// How an export ended.
pub(super) enum Exported {
    /// It is there.
    Written(PathBuf),
    /// A file of that name is there: ask.
    Exists,
    /// One sentence.
    Failed(String),
}

/// Runs a side job on the caller's thread. Side jobs belong to no job: they report as job 0.
pub(super) fn perform(side_job: SideJob) -> Report {
    let news = catch_unwind(AssertUnwindSafe(|| match side_job {
        SideJob::Open { path, terms } => match pins::read(&path, &terms) {
            Some(loaded) => News::PlanLoaded(Box::new(loaded)),
            None => News::Loaded(workload::load(&path).map(Arc::new)),
        },
        SideJob::Load { path: Some(path) } => News::Loaded(workload::load(&path).map(Arc::new)),
        SideJob::Load { path: None } => News::Loaded(Ok(Arc::new(workload::builtin()))),
        SideJob::Reload { path, number } => News::Reloaded { number, read: workload::load(&path).map(Arc::new) },
        SideJob::Measure { source, format } => {
            let bytes = source.size(format);
            News::Measured { source, format, bytes }
        }
        SideJob::Export { source, format, path, overwrite } => {
            News::Exported(match files::save(&path, overwrite, |out| source.write(format, out)) {
                Ok(()) => Exported::Written(path),
                Err(SaveError::Exists) => Exported::Exists,
                Err(SaveError::Refused(why)) => Exported::Failed(why),
            })
        }
    }));
    let news = news.unwrap_or_else(|payload| News::ErrandCrashed(panic_message(payload.as_ref())));
    Report { job: 0, news }
}
