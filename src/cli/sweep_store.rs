//! The table of a sweep on disk: taken up again from it, and written to it while the sweep goes on.

use std::{
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use super::{Failure, input, output::Destination};
use crate::{
    export::sweep_csv::{self, Table},
    notice,
    study::sweep::{Answer, Sweep},
    workload::formats::file,
};

/// How often the table is written while the sweep goes on.
const CHECKPOINT: Duration = Duration::from_secs(2);
/// A larger file is no sweep's table: the most points of a sweep have a tenth of it.
const MOST_BYTES: u64 = 256 << 20;

/// The table of points on disk.
pub(super) struct Store {
    /// What was there before.
    pub(super) before: Table,
    destination: Option<Destination>,
    written: Instant,
}

impl Store {
    /// The table for `--output` or `--resume`; nothing is written yet. One table that is resumed is kept up to date,
    /// unless there is an output; several are only read.
    ///
    /// # Errors
    /// [`Failure`] if the output exists and may not be replaced, or what is to be resumed is no table of a sweep.
    pub(super) fn open(output: Option<&Path>, force: bool, resume: &[PathBuf]) -> Result<Self, Failure> {
        let mut store = Store { before: Table::default(), destination: None, written: Instant::now() };
        if let Some(path) = output {
            if path.is_file() && !force {
                let (shown, hint) = (input::shown(path), "takes it up again, --force replaces it");
                return Err(Failure::refused(format!("{shown} exists already"), format!("--resume {shown} {hint}")));
            }
            let destination = Destination::new(Some(path), force);
            destination.check()?;
            store.destination = Some(destination);
        }
        for path in resume {
            store.before.join(read(path)?);
            if resume.len() > 1 && !path.exists() {
                notice::note(&format!("{} is not there; what no other file has is computed", input::shown(path)));
            }
        }
        if let ([path], None) = (resume, output) {
            store.destination = Some(Destination::new(Some(path), true));
        }
        Ok(store)
    }

    /// Whether the table on disk is older than it should be.
    pub(super) fn is_due(&self) -> bool {
        self.written.elapsed() >= CHECKPOINT
    }

    /// Writes the table; once it is there, it is this sweep's and may be replaced by a longer one.
    ///
    /// # Errors
    /// [`Failure`] if it cannot be written.
    pub(super) fn write(
        &mut self,
        sweep: &Sweep,
        run: &sweep_csv::Run,
        answers: &[Option<Answer>],
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

/// The table of a sweep that goes on; empty where there is no such file yet.
fn read(path: &Path) -> Result<Table, Failure> {
    if !path.try_exists().unwrap_or(true) {
        return Ok(Table::default());
    }
    let refused = |wrong: &str| {
        let hint = "name a file that `plantui sweep` wrote, or a new one";
        Failure::refused(format!("{}{wrong}", input::shown(path)), hint)
    };
    let bytes = file::read_at_most(path, MOST_BYTES)?;
    let text = std::str::from_utf8(&bytes).map_err(|_| refused(" is no text"))?;
    sweep_csv::read(text).map_err(|wrong| refused(&format!(": {wrong}")))
}
