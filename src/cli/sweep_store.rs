//! Table of a sweep on disk: read to resume, and written while the sweep runs.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{Failure, input, output::Destination};
use crate::{
    export::sweep_csv::{self, SweepTable},
    notice,
    study::sweep::{PointResult, Sweep},
    workload::formats::file,
};

/// Interval between two writes while the sweep runs.
const CHECKPOINT: Duration = Duration::from_secs(2);
/// Most bytes of a sweep's table: the largest sweep needs a tenth of it.
const MOST_BYTES: u64 = 256 << 20;

/// Table of points on disk.
pub(super) struct Store {
    /// Table before this run.
    pub(super) before: SweepTable,
    destination: Option<Destination>,
    written: Instant,
}

impl Store {
    /// Opens the table for `--output` or `--resume` without writing. A single resumed table is kept up to date unless
    /// there is an output; several are only read.
    ///
    /// # Errors
    /// [`Failure`] if the output exists and may not be replaced, or a resumed file is not a sweep's table.
    pub(super) fn open(output: Option<&Path>, force: bool, resume: &[PathBuf]) -> Result<Self, Failure> {
        let mut store = Store { before: SweepTable::default(), destination: None, written: Instant::now() };
        if let Some(path) = output {
            if path.is_file() && !force {
                let (shown, hint) = (input::shown(path), "continues it, --force replaces it");
                return Err(Failure::refused(format!("{shown} exists already"), format!("--resume {shown} {hint}")));
            }
            let destination = Destination::new(Some(path), force);
            destination.check()?;
            store.destination = Some(destination);
        }
        for path in resume {
            store.before.join(read(path)?);
            if resume.len() > 1 && !path.exists() {
                notice::note(&format!("{} does not exist; missing points are computed", input::shown(path)));
            }
        }
        if let ([path], None) = (resume, output) {
            store.destination = Some(Destination::new(Some(path), true));
        }
        Ok(store)
    }

    /// True if the table on disk is due for a write.
    pub(super) fn is_due(&self) -> bool {
        self.written.elapsed() >= CHECKPOINT
    }

    /// Writes the table. Afterwards it belongs to this sweep and may be replaced by a longer one.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be written.
    pub(super) fn write(
        &mut self,
        sweep: &Sweep,
        run: &sweep_csv::SweepContext,
        answers: &[Option<PointResult>],
    ) -> Result<(), Failure> {
        if let Some(destination) = &mut self.destination {
            destination.write(&sweep_csv::to_csv(sweep, run, answers, &self.before))?;
            if let Destination::File { force, .. } = destination {
                *force = true;
            }
        }
        self.written = Instant::now();
        Ok(())
    }
}

/// Table of a resumed sweep; empty if the file does not exist yet.
fn read(path: &Path) -> Result<SweepTable, Failure> {
    if !path.try_exists().unwrap_or(true) {
        return Ok(SweepTable::default());
    }
    let refused = |wrong: &str| {
        let hint = "name a table of `plantui sweep`, or a new file";
        Failure::refused(format!("{}{wrong}", input::shown(path)), hint)
    };
    let bytes = file::read_at_most(path, MOST_BYTES)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| refused(" is no text"))?;
    sweep_csv::read(text).map_err(|wrong| refused(&format!(": {wrong}")))
}
