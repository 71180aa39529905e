//! Slow work beside planning: loading a workload, writing an export.
//!
//! Each side job runs on its own short-lived thread, so that it neither waits for a planner nor replaces a job.

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

/// Side job.
pub(super) enum SideJob {
    /// Loads a workload; the built-in one without a path.
    Load {
        /// Its file.
        path: Option<PathBuf>,
    },
    /// Loads a file by its contents: a plan to compare with, or another workload.
    Open {
        /// The file.
        path: PathBuf,
        /// Requirements on a plan.
        terms: Box<PinTerms>,
    },
    /// Reloads the workload on the screen.
    Reload {
        /// Its file.
        path: PathBuf,
        /// Number of the reload; the latest one counts.
        number: u64,
    },
    /// Writes an export.
    Export {
        /// Plan to export.
        source: Source,
        /// Format of the file.
        format: ExportFormat,
        /// Path of the file.
        path: PathBuf,
        /// True if an existing file may be replaced.
        overwrite: bool,
    },
    /// Computes the size of an export.
    Measure {
        /// Plan to export.
        source: Source,
        /// Format of the file.
        format: ExportFormat,
    },
}

/// Result of an export.
pub(super) enum Exported {
    /// The file was written.
    Written(PathBuf),
    /// A file of that name exists: ask the user.
    Exists,
    /// The reason, one sentence.
    Failed(String),
}

/// Runs a side job on the caller's thread. Side jobs report as job 0.
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
