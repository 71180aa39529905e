//! Help by task: what people come for, and the key that does it.

use crate::tui::{action::Action, model::Model, views::list::View};

/// Task of the help.
struct Task {
    action: Action,
    /// Goal, in words that follow "I want to".
    told: &'static str,
    /// True for models to be trained alone, false for other workloads alone.
    trained: Option<bool>,
}

const fn task(action: Action, told: &'static str) -> Task {
    Task { action, told, trained: None }
}

const fn of_model(action: Action, told: &'static str) -> Task {
    Task { action, told, trained: Some(true) }
}

/// All tasks, in the order in which people need them.
const TASKS: &[Task] = &[
    task(Action::NextPanel, "change a limit or the planner: then ◂ ▸"),
    of_model(Action::PreviousPanel, "pin TP, PP or another axis: then ◂ ▸"),
    task(Action::Palette, "type it: devices 128, memory 40GiB"),
    task(Action::WouldHelp, "see what would make it faster"),
    task(Action::Ask, "ask for the least devices or memory"),
    of_model(Action::Show(View::Frontier), "choose another layout"),
    Task { action: Action::Show(View::Compare), told: "compare planners", trained: Some(false) },
    of_model(Action::Show(View::Hardware), "compare hardware and prices"),
    of_model(Action::FailMachine, "lose a machine, and go on"),
    task(Action::Show(View::Sweep), "see how it scales"),
    task(Action::Show(View::Timeline), "look at every pass and transfer"),
    task(Action::Pin, "keep this plan to compare"),
    task(Action::Show(View::History), "return to an earlier try"),
    task(Action::Export, "take it to an engine, or as JSON"),
    task(Action::SaveSlide, "make a slide of it"),
    task(Action::Open, "open another workload"),
];

/// Keys and words of the tasks that suit the workload.
pub(super) fn of(model: &Model) -> Vec<(String, &'static str)> {
    let trained = model.session.workload.training().is_some();
    let suits = |task: &&Task| task.trained.is_none_or(|wanted| wanted == trained);
    TASKS
        .iter()
        .filter(suits)
        .filter_map(|task| Some((model.appearance.keymap.of_action(task.action)?, task.told)))
        .collect()
}
