//! Progress bar on standard error: only on a terminal, only for long searches.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};

use crate::{
    plan::Measure,
    planner::Search,
    streams::{self, Progress},
};

/// Shorter searches show no bar.
const PATIENCE: Duration = Duration::from_millis(500);
const STEPS: u64 = 1000;

/// Reports progress to the caller of `plantui serve`; false if there is none.
fn report(title: &str, fraction: f64, message: &str) -> bool {
    streams::progress(|| Progress { title: title.into(), fraction, message: message.into() })
}

/// Progress bar of a search that appears after a delay.
pub(super) struct SearchBar {
    title: &'static str,
    measure: Measure,
    bar: Option<ProgressBar>,
}

impl SearchBar {
    /// Bar with the planner's name; its incumbents have this measure.
    pub(super) fn new(title: &'static str, measure: Measure) -> Self {
        SearchBar { title, measure, bar: None }
    }

    /// Shows the progress of the search; `stopping` after it was cancelled.
    pub(super) fn update(&mut self, search: &Search, stopping: bool) {
        if search.elapsed() < PATIENCE {
            return;
        }
        let progress = search.progress();
        let mut message = progress.best.map(|best| format!("best {}", self.measure.show(best))).unwrap_or_default();
        if let Some(bound) = progress.bound {
            message += &format!(" bound {}", self.measure.show(bound));
        }
        if report(self.title, progress.fraction, &message) {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{prefix} [{bar:30}] {percent:>3}% {elapsed} {msg}")
                .expect("the template is a constant");
            // indicatif draws to standard error, and nothing if that is not a terminal.
            ProgressBar::new(STEPS).with_style(style.progress_chars("=> ")).with_prefix(self.title)
        });
        bar.set_position((progress.fraction * STEPS as f64) as u64);
        if stopping {
            message += " stopping, Ctrl-C again to give up";
        }
        bar.set_message(message);
    }
}

/// Progress bar for work in equal pieces.
pub(super) struct CountBar {
    title: &'static str,
    total: usize,
    done: usize,
    began: Instant,
    bar: Option<ProgressBar>,
}

impl CountBar {
    /// Bar over `total` pieces that appears after a delay.
    pub(super) fn new(title: &'static str, total: usize) -> Self {
        CountBar { title, total, done: 0, began: Instant::now(), bar: None }
    }

    /// Counts one more piece as done.
    pub(super) fn step(&mut self) {
        self.done += 1;
    }

    /// Shows the progress of the work; `stopping` after it was cancelled.
    pub(super) fn update(&mut self, stopping: bool) {
        if self.began.elapsed() < PATIENCE {
            return;
        }
        if report(self.title, self.done as f64 / self.total.max(1) as f64, "") {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{prefix} [{bar:30}] {pos} of {len} {elapsed} {msg}")
                .expect("the template is a constant");
            ProgressBar::new(self.total as u64).with_style(style.progress_chars("=> ")).with_prefix(self.title)
        });
        bar.set_position(self.done as u64);
        if stopping {
            bar.set_message("stopping, Ctrl-C again to give up");
        }
        bar.tick();
    }
}

/// Clock for work whose progress is unknown.
pub(super) struct Timer {
    title: &'static str,
    began: Instant,
    bar: Option<ProgressBar>,
}

impl Timer {
    /// Clock that appears after a delay.
    pub(super) fn new(title: &'static str) -> Self {
        Timer { title, began: Instant::now(), bar: None }
    }

    /// Shows the elapsed time.
    pub(super) fn update(&mut self) {
        if self.began.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let style = ProgressStyle::with_template("{prefix} {elapsed}").expect("the template is a constant");
            ProgressBar::new_spinner().with_style(style).with_prefix(self.title).with_elapsed(self.began.elapsed())
        });
        bar.tick();
    }
}

impl Drop for Timer {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for CountBar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

impl Drop for SearchBar {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
