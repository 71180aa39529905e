//! Pinning, unpinning and renaming.

use std::sync::Arc;

use ratatui::crossterm::event::{Event, KeyCode, KeyEvent};
use tui_input::{Input, backend::crossterm::EventHandler};

use super::{
    compared::Compared,
    pins::{LoadedPin, MOST, Pin, PinTerms, limits_in_words, shortened},
    state::{Key, Row, alike},
};
use crate::{
    source::{LoadError, error::printable},
    tui::{
        effect::Effects,
        model::{Model, Tone, View},
        overlay::Overlay,
    },
    workload::Workload,
};

impl Model {
    /// Pins of this workload.
    pub(in crate::tui) fn pins_here(&self) -> impl Iterator<Item = &Pin> {
        let here = |of: &Arc<Workload>| Arc::ptr_eq(of, &self.session.workload) || alike(of, &self.session.workload);
        self.views.compare.pins.list.iter().filter(move |pin| here(&pin.compared.shown.workload))
    }

    /// Pins the shown plan. In Compare, pins the selected plan, or unpins it.
    pub(in crate::tui) fn pin(&mut self) {
        if self.view == View::Compare {
            let rows = self.compare_rows();
            match rows.get(self.compare_cursor(&rows)) {
                Some(Row::Plan(Key::Pin(id))) => return self.unpin(*id),
                Some(Row::Plan(key)) => {
                    let compared = self.compared(*key).cloned();
                    return self.pin_compared(compared);
                }
                _ => {}
            }
        }
        let shown = self.planning.shown.clone().filter(|shown| shown.plan().is_some());
        let known = shown.as_ref().and_then(|shown| {
            let simulated =
                self.simulation.simulated.as_ref().filter(|simulated| Arc::ptr_eq(&simulated.shown, shown))?;
            Some(Compared::of(simulated))
        });
        if shown.is_some() && known.is_none() {
            self.message = Some((Tone::Refused, "the plan is still being simulated: pin it afterwards".into()));
            return;
        }
        self.pin_compared(known);
    }

    fn pin_compared(&mut self, compared: Option<Compared>) {
        let Some(compared) = compared.filter(|compared| compared.shown.plan().is_some()) else {
            self.message = Some((Tone::Refused, "there is no plan to pin".into()));
            return;
        };
        let same = |pin: &&Pin| Arc::ptr_eq(&pin.compared.shown, &compared.shown);
        if let Some(pin) = self.views.compare.pins.list.iter().find(same) {
            self.message = Some((Tone::Done, format!("already pinned as `{}`", pin.name)));
            return;
        }
        let shown = &compared.shown;
        let limits = limits_in_words(&shown.workload, &shown.limits, 2);
        let on = shown.workload.training().map_or(String::new(), |profile| format!(", {}", profile.accelerator.id));
        let name = format!("{}: {limits}{on}", compared.entry.name);
        self.take_pin(&shortened(&name), compared);
    }

    fn take_pin(&mut self, name: &str, compared: Compared) {
        let Some(id) = self.views.compare.pins.add(name, compared) else {
            let told = format!("there are {MOST} pins, the maximum: unpin one in Compare");
            self.message = Some((Tone::Refused, told));
            return;
        };
        let name = self.compared_name(Key::Pin(id));
        self.message = Some((Tone::Done, format!("pinned as `{name}`")));
        if self.view == View::Compare {
            self.views.compare.cursor = Some(Row::Plan(Key::Pin(id)));
        }
    }

    fn unpin(&mut self, id: u64) {
        let rows = self.compare_rows();
        let at = self.compare_cursor(&rows);
        let pins = &mut self.views.compare.pins.list;
        if let Some(place) = pins.iter().position(|pin| pin.id == id) {
            let pin = pins.remove(place);
            self.message = Some((Tone::Done, format!("`{}` is no longer pinned", pin.name)));
        }
        self.views.compare.marked.retain(|key| *key != Key::Pin(id));
        let rows = self.compare_rows();
        self.views.compare.cursor = rows.get(at.min(rows.len().saturating_sub(1))).copied();
    }

    /// Requirements on a plan's file at this moment.
    pub(in crate::tui) fn pin_terms(&self) -> PinTerms {
        PinTerms {
            workload: self.session.workload.clone(),
            limits: self.session.limits.clone(),
            setup: self.simulation.setup,
        }
    }

    /// Pins a plan from a file, or reports why it is no plan of this workload.
    pub(in crate::tui) fn take_loaded_plan(&mut self, loaded: Result<LoadedPin, LoadError>) {
        match loaded {
            Ok(LoadedPin { name, compared }) => {
                if matches!(self.overlay, Some(Overlay::Open(_))) {
                    self.overlay = None;
                }
                self.view = View::Compare;
                self.take_pin(&name, compared);
            }
            Err(error) => self.not_loaded(error.to_string()),
        }
    }

    /// Opens the line for a pin's name.
    pub(in crate::tui) fn begin_renaming(&mut self, id: u64) {
        if let Some(pin) = self.views.compare.pins.get(id) {
            self.overlay = Some(Overlay::Rename(id, Input::new(pin.name.clone())));
        }
    }

    /// Handles a key while a name is typed.
    pub(in crate::tui) fn key_in_rename(&mut self, id: u64, mut input: Input, key: &KeyEvent) -> Effects {
        if key.code != KeyCode::Enter {
            input.handle_event(&Event::Key(*key));
            self.overlay = Some(Overlay::Rename(id, input));
            return vec![];
        }
        let name = shortened(printable(input.value()).trim());
        if name.is_empty() {
            self.message = Some((Tone::Refused, "a pin needs a name: the old name stays".into()));
        } else if let Some(pin) = self.views.compare.pins.list.iter_mut().find(|pin| pin.id == id) {
            pin.name = name;
        }
        vec![]
    }
}
