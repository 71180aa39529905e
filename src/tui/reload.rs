//! Reading the workload's file again: by hand, or because it has changed.

use std::{path::PathBuf, sync::Arc};

use super::{
    compare::alike,
    errand::Errand,
    model::{Model, Tone},
    update::{Effect, Effects},
};
use crate::{
    cluster::{Limits, Overrides},
    workload::{BUILTIN, LoadError, Workload},
};

impl Model {
    /// The file of the workload on the screen; `None` for the built-in one and one from standard input.
    pub(super) fn workload_file(&self) -> Option<PathBuf> {
        let source = self.workload.source.as_str();
        (!matches!(source, BUILTIN | "-")).then(|| PathBuf::from(source))
    }

    /// The file to watch, if files are watched.
    pub(super) fn watched(&self) -> Option<PathBuf> {
        self.workload_file().filter(|_| self.watch)
    }

    /// Reads the file again.
    pub(super) fn reload(&mut self) -> Effects {
        match self.workload_file() {
            Some(path) => vec![Effect::Aside(Errand::Reload { path })],
            None => {
                let why = format!("{} is no file that could be read again", self.workload.name);
                self.message = Some((Tone::Refused, why));
                vec![]
            }
        }
    }

    /// Plans what stands in the file now. Limits that were changed stay; the old plan stays until the new one is there,
    /// and for good if the file is broken.
    pub(super) fn take_reloaded(&mut self, read: Result<Arc<Workload>, LoadError>) -> Effects {
        let workload = match read {
            Ok(workload) if workload.source == self.workload.source => workload,
            // Another one was opened in the meantime.
            Ok(_) => return vec![],
            Err(error) => {
                self.message = Some((Tone::Refused, format!("not read again, the old one stays: {error}")));
                return vec![];
            }
        };
        let kept = self.session().limits(&Overrides::default());
        let unstated = self.defaults.unstated_by(&workload.limits);
        let limits = match Limits::resolve(&workload, &kept.or(&unstated)) {
            Ok(limits) => limits,
            Err(missing) => {
                self.message = Some((Tone::Refused, format!("not read again: the file {missing}")));
                return vec![];
            }
        };
        self.first_limits = Limits::resolve(&workload, &unstated).unwrap_or(limits);
        self.limits = limits;
        if std::mem::discriminant(&workload.profile) != std::mem::discriminant(&self.workload.profile) {
            self.forget_results();
        }
        // Edits speak of nodes by their places, and of edges that must not go backwards.
        if !alike(&self.workload, &workload) || self.workload.dag.edges() != workload.dag.edges() {
            self.forget_edits();
        }
        self.compare_outdated();
        self.compare.forget_answers();
        let told = format!("read {} again", workload.name);
        self.set_workload(workload);
        let mut effects = self.measure_edited();
        let stays = if self.edited() { "; the edited plan stays, measured anew" } else { "" };
        self.message = Some((Tone::Done, told + stays));
        effects.append(&mut self.replan());
        effects.append(&mut self.compare_again());
        effects
    }
}
