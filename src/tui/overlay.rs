//! Overlays over the screen, with their state.

use tui_input::Input;

use super::{
    action::{Action, Scope, TABLE},
    ask_form::AskForm,
    export_form::ExportForm,
    keymap::Keymap,
    model::Model,
    open_form::OpenForm,
    schedule_editor::ScheduleEditor,
    schedule_list::ScheduleList,
    views::list::View,
    widget::filter::Filter,
};

/// Open overlay.
#[derive(Debug, Clone)]
pub(super) enum Overlay {
    /// List of all keys.
    Help(Filter),
    /// List of actions by name.
    Palette(Filter),
    /// Form to write the plan to a file.
    Export(Box<ExportForm>),
    /// Form to load another workload.
    Open(OpenForm),
    /// Search text for a tree.
    Find(Input),
    /// Values to sweep over.
    Range(Input),
    /// Form for the least value of a limit that reaches a goal.
    Ask(Box<AskForm>),
    /// Number of a pin, and its new name.
    Rename(u64, Input),
    /// All schedules of the shown plan.
    Schedules(Box<ScheduleList>),
    /// Editor of a schedule.
    EditSchedule(Box<ScheduleEditor>),
    /// The editor, and the file to write its schedule to.
    SaveSchedule(Box<ScheduleEditor>, Input),
}

/// Entries of the action table for the help, by index. Without a search text those of the current context come first.
/// Views without a tab, and keys for models to be trained on other workloads, are left out.
pub(super) fn help_order(filter: &Filter, model: &Model) -> Vec<usize> {
    let mut matches = filter.matches(&table_texts(&model.appearance.keymap));
    let trained = model.session.workload.training().is_some();
    let tabs = View::tabs(trained, model.view);
    matches.retain(|&i| match (TABLE[i].action, TABLE[i].scope) {
        (Action::Show(view), _) | (_, Scope::Of(view)) => tabs.contains(&view),
        (_, Scope::Trained) => trained,
        _ => true,
    });
    if filter.input.value().trim().is_empty() {
        // Scopes in force first, each with its keys together.
        let in_force = model.scopes();
        matches.sort_by_key(|&i| (!in_force.contains(&TABLE[i].scope), TABLE[i].scope.place()));
    }
    matches
}

/// Search texts of help and palette, one per entry of the action table.
pub(super) fn table_texts(keymap: &Keymap) -> Vec<String> {
    let text = |(i, e): (usize, &super::action::Entry)| {
        format!("{} {} {} {}", e.title, e.scope.title(), e.help, keymap.all_shown(i))
    };
    TABLE.iter().enumerate().map(text).collect()
}
