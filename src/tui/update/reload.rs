//! Reload of the workload's file: by hand, or after it changed.

use std::sync::Arc;

use crate::{
    cluster::{GivenLimits, LimitError},
    family::{self, dial},
    source::{LoadError, error::printable},
    tui::{
        effect::{Effect, Effects},
        model::{Model, Tone},
        side_job::SideJob,
        turned,
        views::compare::state::alike,
    },
    workload::Workload,
};

impl Model {
    /// Reports that the watched file is gone.
    pub(in crate::tui) fn file_is_gone(&mut self) {
        let name = printable(&self.session.workload.source);
        let told = format!("{name} is gone: the loaded content stays, and the file is read again when it returns");
        self.message = Some((Tone::Refused, told));
    }

    /// Requests a reload of the file.
    pub(in crate::tui) fn reload(&mut self) -> Effects {
        match self.session.workload_file() {
            Some(path) => {
                self.session.readings.0 += 1;
                vec![Effect::Aside(SideJob::Reload { path, number: self.session.readings.0 })]
            }
            None => {
                let why = format!("{} is not a file that could be read again", self.session.workload.name);
                self.message = Some((Tone::Refused, why));
                vec![]
            }
        }
    }

    /// Plans the reloaded file. Changed limits are kept. The old plan stays until the new one arrives, or for good if
    /// the file is broken. Results of older reloads than the last accepted one are ignored.
    pub(in crate::tui) fn take_reloaded(&mut self, number: u64, read: Result<Arc<Workload>, LoadError>) -> Effects {
        if number < self.session.readings.1 {
            return vec![];
        }
        self.session.readings.1 = number;
        let workload = match read {
            Ok(workload) if workload.source == self.session.workload.source => workload,
            // Another workload was opened in the meantime.
            Ok(_) => return vec![],
            Err(error) => {
                self.message = Some((Tone::Refused, format!("not read again, the loaded workload stays: {error}")));
                return vec![];
            }
        };
        let told = format!("read {} again", workload.name);
        // Like limits, dials keep the values of the command line and the user, and so do changes without a dial.
        let over = turned::over(Arc::clone(&workload), &self.session.asked);
        let asked = turned::again(over, &turned::values(&self.session.first_dials, &self.session.dials_asked));
        let first_dials = dial::dials(&asked);
        let as_asked = (workload, Arc::clone(&asked));
        let workload = turned::again(asked, &turned::since(&self.session.first_dials, &self.session.dials));
        match self.adopt(workload, &told) {
            Ok(effects) => {
                (self.session.first_dials, self.session.asked) = (first_dials, as_asked);
                effects
            }
            Err(missing) => {
                self.message = Some((Tone::Refused, format!("not read again: the file {missing}")));
                vec![]
            }
        }
    }

    /// Plans the workload with a changed dial. Limits set by hand are kept.
    pub(in crate::tui) fn take_turned(&mut self, workload: Workload) -> Effects {
        self.adopt(Arc::new(workload), "").unwrap_or_else(|missing| {
            self.message = Some((Tone::Refused, format!("{} {missing}", self.session.workload.name)));
            vec![]
        })
    }

    /// Switches to another version of the workload: changed limits are kept, the others are its own.
    ///
    /// # Errors
    /// [`LimitError`] if it no longer states a required limit; then nothing changes.
    fn adopt(&mut self, workload: Arc<Workload>, told: &str) -> Result<Effects, LimitError> {
        let kept = self.session().limits(&GivenLimits::default());
        let unstated = self.session.defaults.unstated_by(&workload.limits);
        let limits = family::resolve(&workload, &kept.or(&unstated))?;
        self.session.first_limits = family::resolve(&workload, &unstated).unwrap_or_else(|_| limits.clone());
        self.session.limits = limits;
        if std::mem::discriminant(&workload.profile) != std::mem::discriminant(&self.session.workload.profile) {
            self.forget_results();
        }
        // Edits refer to nodes by index, and depend on edges.
        if !alike(&self.session.workload, &workload) || self.session.workload.dag.edges() != workload.dag.edges() {
            self.planning.forget_edits();
        }
        self.compare_outdated();
        self.views.compare.forget_answers();
        let before = self.pins_here().count();
        self.set_workload(workload);
        let mut effects = self.measure_edited();
        let stays = if self.edited() { "; the edited plan stays, scored again" } else { "" };
        let hidden = match before.saturating_sub(self.pins_here().count()) {
            0 => String::new(),
            1 => "; 1 pin has other nodes and is hidden until they return".into(),
            count => format!("; {count} pins have other nodes and are hidden until they return"),
        };
        if !told.is_empty() {
            self.message = Some((Tone::Done, format!("{told}{stays}{hidden}")));
        }
        effects.append(&mut self.replan());
        effects.append(&mut self.compare_again());
        Ok(effects)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::{
        tui::{Action, Focus, Offscreen, ScreenRequest, panel_rows::PanelRow, side_job},
        workload::{
            self, Profile, Workload, WorkloadFormat,
            convert::text,
            training::{TrainingProfile, hardware, published},
        },
    };

    #[test]
    fn of_two_readings_the_later_one_stays_whichever_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let text = include_str!("../../../inputs/tiny-branch.json");
        fs::write(&path, text).unwrap();
        let request = ScreenRequest::new(Arc::new(workload::load(&path).unwrap()));
        let mut screen = Offscreen::new(request, 80, 24).unwrap();
        let mut read = |text: &str| {
            fs::write(&path, text).unwrap();
            let effect = screen.model.reload().pop();
            let Some(Effect::Aside(side_job)) = effect else { panic!("it is a file") };
            side_job::perform(side_job)
        };
        let older = read("{");
        let newer = read(text);
        assert!(!screen.model.on_report(newer).is_empty(), "it is planned anew");
        let told = screen.model.message.clone();
        assert!(screen.model.on_report(older).is_empty());
        assert_eq!(screen.model.message, told);
        assert!(matches!(told, Some((Tone::Done, text)) if text.contains("again")));
    }

    #[test]
    fn what_was_put_over_a_model_stays_when_its_file_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let write = |layers: &str| {
            let profile = TrainingProfile::new(published::find(layers).unwrap(), hardware::find("h100").unwrap());
            fs::write(&path, text(&profile.into_workload("a", "a", WorkloadFormat::Training, Some(8)))).unwrap();
        };
        write("gpt2");
        let as_read = Arc::new(workload::load(&path).unwrap());
        let mut asked = Workload::clone(&as_read);
        let Profile::Training(profile) = &mut asked.profile else { panic!("it is a model") };
        profile.constants.gemm_16 *= 0.5;
        profile.accelerator.outer_link *= 0.25;
        profile.settings.tp_overlap = !profile.settings.tp_overlap;
        profile.remarks.push("calibrated".into());
        let expected = profile.clone();
        let mut screen =
            Offscreen::new(ScreenRequest { as_read, ..ScreenRequest::new(Arc::new(asked)) }, 80, 24).unwrap();
        for model in ["gpt2-xl", "gpt2"] {
            write(model);
            let Some(Effect::Aside(side_job)) = screen.model.reload().pop() else { panic!("it is a file") };
            screen.model.on_report(side_job::perform(side_job));
            let now = screen.model.session.workload.training().unwrap().clone();
            assert_eq!(now.model, published::find(model).unwrap());
            assert_eq!(TrainingProfile { model: expected.model.clone(), ..now }, *expected);
        }
    }

    /// A typed value is dropped with its row.
    #[test]
    fn another_kind_of_workload_ends_typing_into_rows_that_it_lacks() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        let profile = TrainingProfile::new(published::find("gpt2").unwrap(), hardware::find("h100").unwrap());
        let model = profile.into_workload("gpt2", "gpt2", WorkloadFormat::Training, Some(8));
        fs::write(&path, text(&model)).unwrap();
        let request = ScreenRequest::new(Arc::new(workload::load(&path).unwrap()));
        let mut screen = Offscreen::new(request, 80, 24).unwrap();
        screen.model.focus = Focus::Panel;
        screen.model.select_panel_row(PanelRow::Dial(1));
        screen.act(Action::Edit);
        assert!(screen.model.panel.editing.is_some());
        fs::write(&path, include_str!("../../../inputs/tiny-branch.json")).unwrap();
        let Some(Effect::Aside(side_job)) = screen.model.reload().pop() else { panic!("it is a file") };
        screen.model.on_report(side_job::perform(side_job));
        assert!(screen.model.panel.editing.is_none() && screen.model.session.dials.is_empty());
        screen.keys("9");
        screen.draw();
    }
}
