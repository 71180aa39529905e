//! Input and output of files: exports, other workloads, the clipboard, pictures.

use std::{path::Path, sync::Arc};

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::backend::crossterm::EventHandler;

use super::{carried::origin, input::key_in_list};
use crate::{
    cluster::{GivenLimits, LimitKind},
    family::{self, dial},
    source::error::printable,
    tui::{
        effect::{Effect, Effects},
        export_form::{ExportForm, ExportFormat, Source},
        files::{self, SaveError},
        model::{Model, Tone},
        open_form::OpenForm,
        overlay::Overlay,
        panel_rows::PanelRow,
        picture,
        side_job::{Exported, SideJob},
        stored_session::Asked,
    },
    units,
    workload::Workload,
};

impl Model {
    /// Plan on the screen, for export.
    fn source(&self) -> Option<Source> {
        let shown = self.planning.shown.clone().filter(|shown| shown.plan().is_some())?;
        let simulated = self.simulation.simulated.clone().filter(|simulated| Arc::ptr_eq(&simulated.shown, &shown));
        Some(Source { shown, simulated })
    }

    /// Opens the export form, on a given format if any.
    pub(in crate::tui) fn open_export(&mut self, format: Option<ExportFormat>) -> Effects {
        let Some(source) = self.source() else {
            self.message = Some((Tone::Refused, "there is no plan to export".into()));
            return vec![];
        };
        let mut form = Box::new(ExportForm::new(source));
        if let Some(format) = format {
            form.choose(format);
        }
        let effects = measured(&form);
        self.overlay = Some(Overlay::Export(form));
        effects
    }

    pub(in crate::tui) fn copy_plan(&mut self) -> Effects {
        let Some(text) = self.source().and_then(|source| source.plan_json()) else {
            self.message = Some((Tone::Refused, "there is no plan to copy".into()));
            return vec![];
        };
        let size = units::bytes(text.len() as f64);
        self.message = Some((Tone::Done, format!("plan JSON ({size}) sent to the terminal's clipboard")));
        vec![Effect::Clipboard(text)]
    }

    pub(in crate::tui) fn save_screen(&mut self) {
        let svg = picture::of(self);
        let view = self.view.title().to_lowercase();
        self.save_picture("this screen", &format!("plantui-{view}"), &svg);
    }

    /// Writes the plan as a slide into the current folder.
    pub(in crate::tui) fn save_slide(&mut self) {
        if self.planning.shown.as_ref().is_none_or(|shown| shown.plan().is_none()) {
            self.message = Some((Tone::Refused, "there is no plan for a slide".into()));
            return;
        }
        let svg = picture::slide(self);
        self.save_picture("a slide of this plan", "plantui-slide", &svg);
    }

    fn save_picture(&mut self, what: &str, stem: &str, svg: &str) {
        let path = files::free_name(Path::new("."), stem, "svg");
        self.message = Some(match files::save(&path, false, |out| out.write_all(svg.as_bytes())) {
            Ok(()) => (Tone::Done, format!("{what} is in {}", path.display())),
            Err(SaveError::Exists) => (Tone::Refused, format!("{} exists already", path.display())),
            Err(SaveError::Refused(why)) => (Tone::Refused, why),
        });
    }

    pub(in crate::tui) fn key_in_export(&mut self, mut form: Box<ExportForm>, key: &KeyEvent) -> Effects {
        let mut effects = vec![];
        match key.code {
            KeyCode::Enter => {
                if form.path.value().trim().is_empty() {
                    form.error = Some("name a file".into());
                } else {
                    effects.push(Effect::Aside(SideJob::Export {
                        source: form.source.clone(),
                        format: form.format,
                        path: form.target(),
                        overwrite: form.overwrite,
                    }));
                }
            }
            KeyCode::PageUp => form.scroll(-10),
            KeyCode::PageDown => form.scroll(10),
            KeyCode::Up | KeyCode::BackTab | KeyCode::Down | KeyCode::Tab => {
                form.step(matches!(key.code, KeyCode::Down | KeyCode::Tab));
                effects = measured(&form);
            }
            _ => {
                if form.path.handle_event(&Event::Key(*key)).is_some_and(|change| change.value) {
                    form.typed();
                }
            }
        }
        self.overlay = Some(Overlay::Export(form));
        effects
    }

    pub(in crate::tui) fn take_export(&mut self, exported: Exported) {
        match (exported, &mut self.overlay) {
            (Exported::Written(path), overlay) => {
                if matches!(overlay, Some(Overlay::Export(_))) {
                    *overlay = None;
                }
                self.message = Some((Tone::Done, format!("written to {}", printable(&path.display().to_string()))));
            }
            (Exported::Exists, Some(Overlay::Export(form))) => form.overwrite = true,
            (Exported::Failed(why), Some(Overlay::Export(form))) => form.error = Some(why),
            (Exported::Exists, _) => self.message = Some((Tone::Refused, "not written: the file exists".into())),
            (Exported::Failed(why), _) => self.message = Some((Tone::Refused, why)),
        }
    }

    pub(in crate::tui) fn key_in_open(&mut self, mut form: OpenForm, key: &KeyEvent) -> Effects {
        let candidates = form.candidates();
        let mut effects = vec![];
        if key.code == KeyCode::Tab {
            form.complete();
            form.error = None;
        } else if key.code == KeyCode::Enter {
            if let Some(candidate) = candidates.get(form.filter.cursor)
                && !form.enter_folder(candidate)
            {
                form.loading = true;
                form.error = None;
                effects.push(Effect::Aside(match form.path(candidate) {
                    Some(path) => SideJob::Open { path, terms: Box::new(self.pin_terms()) },
                    None => SideJob::Load { path: None },
                }));
            }
        } else {
            key_in_list(&mut form.filter, key, candidates.len());
            form.error = None;
        }
        self.overlay = Some(Overlay::Open(form));
        effects
    }

    pub(in crate::tui) fn not_loaded(&mut self, why: String) {
        match &mut self.overlay {
            Some(Overlay::Open(form)) => {
                form.loading = false;
                form.error = Some(why);
            }
            _ => self.message = Some((Tone::Refused, why)),
        }
    }

    /// Switches to another workload. Its own limits apply; limits it does not state keep their values.
    pub(in crate::tui) fn take_workload(&mut self, workload: Arc<Workload>) -> Effects {
        if matches!(self.overlay, Some(Overlay::Open(_))) {
            self.overlay = None;
        }
        // Save the current session, so that it returns when its file is opened again.
        let unkept = self.keep_session().err();
        let session = self.session.recent.session(&workload).unwrap_or_default().filter(|_| !self.session.fresh);
        let first_dials = dial::dials(&workload);
        let as_asked = (Arc::clone(&workload), Arc::clone(&workload));
        let workload = match &session {
            Some(session) => session.turn(workload, &[]),
            None => workload,
        };
        let carried = match self.session.carried(&workload) {
            Ok(carried) => carried,
            Err(missing) => {
                self.not_loaded(format!("{} {missing}", workload.name));
                return vec![];
            }
        };
        let stated = carried.stated;
        let assumed = family::assumed(&workload, &stated);
        let kept = session.as_ref().map(|session| session.limits(&GivenLimits::default())).unwrap_or_default();
        match family::resolve(&workload, &kept.or(&stated)) {
            Ok(limits) => {
                self.session.limits = limits.clone();
                self.session.first_limits = family::resolve(&workload, &stated).unwrap_or(limits);
            }
            Err(missing) => {
                self.not_loaded(format!("{} {missing}", workload.name));
                return vec![];
            }
        }
        let origin = match &session {
            Some(_) => "limits of its last session".to_string(),
            None => {
                origin(&workload, &self.session.limits, &carried.kept)
                    + &assumed.iter().map(|a| format!("; {a}")).collect::<String>()
            }
        };
        self.message = Some((Tone::Done, format!("loaded {}; {origin}", workload.name)));
        self.forget_results();
        self.set_workload(workload);
        (self.session.first_dials, self.session.dials_asked, self.session.asked) = (first_dials, vec![], as_asked);
        self.session.last_for.clear();
        // A planner of another kind of workload would plan a converted one.
        self.choose_native();
        if let Some(session) = session {
            self.restore(&session, &Asked::default());
            self.select_panel_row(PanelRow::Limit(LimitKind::Devices));
        }
        if let Some(why) = unkept {
            self.message = Some((Tone::Refused, why));
        }
        let mut effects = self.replan();
        effects.extend(self.compare_again());
        effects
    }
}

/// Requests the size of an export that is longer than its preview.
fn measured(form: &ExportForm) -> Effects {
    let unknown = form.bytes.is_none() && form.error.is_none();
    let side_job = || SideJob::Measure { source: form.source.clone(), format: form.format };
    unknown.then(|| Effect::Aside(side_job())).into_iter().collect()
}
