//! Rows of the table, and the plans in them.

use std::sync::Arc;

use super::{
    compared::Compared,
    state::{Answer, Key, Row, Terms},
};
use crate::{
    study::{columns, compare::ComparedPlan},
    tui::{model::Model, studies::StudyKind},
};

impl Model {
    /// Rows of the table, from the top.
    pub(in crate::tui) fn compare_rows(&self) -> Vec<Row> {
        let state = &self.views.compare;
        let mut plans: Vec<(Key, &ComparedPlan)> = vec![];
        let (mut failed, mut refused) = (vec![], vec![]);
        for (planner, answer) in &state.answers {
            match answer {
                Answer::Plan(compared) => plans.push((Key::Planner(*planner), &compared.entry)),
                Answer::Failed(_) => failed.push(Row::Failed(*planner)),
                Answer::Refused(_) => refused.push(*planner),
            }
        }
        plans.extend(self.other_compared().map(|compared| (Key::Other, &compared.entry)));
        plans.extend(self.pins_here().map(|pin| (Key::Pin(pin.id), &pin.compared.entry)));
        columns::sort(&mut plans, |(_, entry)| entry, Some(state.sort), state.reversed);
        let mut rows: Vec<Row> = plans.into_iter().map(|(key, _)| Row::Plan(key)).collect();
        rows.extend(failed);
        if self.planning.studying(StudyKind::Compare) {
            let waiting = state.queue.iter().filter(|&&planner| state.answer(planner).is_none());
            rows.extend(waiting.map(|&planner| Row::Waiting(planner)));
        }
        refused.extend((0..self.session.planners.len()).filter(|&planner| self.session.refusals[planner].is_some()));
        if !refused.is_empty() {
            rows.push(Row::Folded);
            if state.unfolded {
                rows.extend(refused.into_iter().map(Row::Refused));
            }
        }
        rows
    }

    /// Number of planners that cannot plan this workload.
    pub(in crate::tui) fn compare_refused(&self) -> usize {
        let unset = self.views.compare.answers.iter().filter(|(_, answer)| matches!(answer, Answer::Refused(_)));
        unset.count() + self.session.refusals.iter().flatten().count()
    }

    /// Index of the selected row.
    pub(in crate::tui) fn compare_cursor(&self, rows: &[Row]) -> usize {
        self.views.compare.cursor.and_then(|row| rows.iter().position(|other| *other == row)).unwrap_or(0)
    }

    /// Plan of the table.
    pub(in crate::tui) fn compared(&self, key: Key) -> Option<&Compared> {
        match key {
            Key::Planner(planner) => match self.views.compare.answer(planner)? {
                Answer::Plan(compared) => Some(compared),
                _ => None,
            },
            Key::Other => self.other_compared(),
            Key::Pin(id) => self.views.compare.pins.get(id).map(|pin| &pin.compared),
        }
    }

    /// Name of a plan of the table.
    pub(in crate::tui) fn compared_name(&self, key: Key) -> &str {
        match key {
            Key::Planner(planner) => self.session.planners[planner].info().name,
            Key::Other => self.views.compare.other.as_ref().map_or("", |compared| &compared.entry.name),
            Key::Pin(id) => self.views.compare.pins.get(id).map_or("", |pin| &pin.name),
        }
    }

    /// The shown plan, if no other row holds it.
    fn other_compared(&self) -> Option<&Compared> {
        let shown = self.planning.shown.as_ref()?;
        self.views.compare.other.as_ref().filter(|other| other.is_of(shown))
    }

    /// Relation of a plan's figures to the inputs at the left.
    pub(in crate::tui) fn terms(&self, key: Key) -> Terms {
        let Some(compared) = self.compared(key) else { return Terms::Old };
        // The file was reloaded since.
        if !Arc::ptr_eq(&compared.shown.workload, &self.session.workload) {
            return Terms::Old;
        }
        let same_limits = compared.shown.limits == self.session.limits && compared.setup == self.simulation.setup;
        match key {
            Key::Planner(planner) if same_limits && compared.shown.options == self.session.options[planner] => {
                Terms::Current
            }
            Key::Planner(_) => Terms::Old,
            _ if same_limits => Terms::Current,
            Key::Pin(_) if compared.setup == self.simulation.setup => Terms::OtherLimits,
            _ => Terms::Old,
        }
    }

    /// Fastest simulated plans under the limits in force: one among plans simulated as iterations, one among those
    /// simulated as a single sample. A class with one plan has no fastest, and plans that exceed the memory do not
    /// count.
    pub(in crate::tui) fn fastest(&self, rows: &[Row]) -> Vec<Key> {
        let mut fastest = vec![];
        for alone in [true, false] {
            let mut plans = vec![];
            for row in rows {
                let Row::Plan(key) = *row else { continue };
                let compared = self.compared(key).filter(|compared| !compared.overflows());
                // A plan that violates a limit has figures, but cannot run.
                let compared = compared.filter(|compared| compared.entry.value().is_some());
                let simulated = compared.and_then(|compared| compared.entry.simulated.as_ref());
                if let Some(simulated) = simulated
                    && self.terms(key) == Terms::Current
                    && compared.is_some_and(|compared| compared.entry.runs_alone() == alone)
                {
                    plans.push((key, simulated.samples_per_s));
                }
            }
            if plans.len() > 1 {
                let best = plans.into_iter().reduce(|best, next| if next.1 > best.1 { next } else { best });
                fastest.extend(best.map(|(key, _)| key));
            }
        }
        fastest
    }
}
