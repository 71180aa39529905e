//! Table of all user actions. Keys, help and palette are made from it.

use super::views::list::{self, View};

/// User action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each has its title and help in TABLE")]
pub enum Action {
    Quit,
    Suspend,
    Back,
    Show(View),
    NextPanel,
    PreviousPanel,
    FoldPanel,
    Up,
    Down,
    PageUp,
    PageDown,
    First,
    Last,
    Decrease,
    Increase,
    DecreaseLarge,
    IncreaseLarge,
    Edit,
    Reset,
    FitMemory,
    FitDevices,
    NextObjective,
    Convergence,
    Unfold,
    Fold,
    Toggle,
    UnfoldAll,
    FoldAll,
    Find,
    FindNext,
    FindPrevious,
    WouldHelp,
    ShowWouldHelp,
    NextSection,
    /// Lists all schedules with time and memory.
    Schedules,
    /// Edits the order of the passes.
    EditSchedule,
    NextSchedule,
    /// Plans again for a schedule that the plan cannot run.
    PlanForSchedule,
    HowSimulated,
    /// Marks the critical path.
    MarkPath,
    CompareAll,
    Pin,
    RenamePin,
    Mark,
    SideBySide,
    FilterAxis,
    Groups,
    FailMachine,
    Preview,
    SortNext,
    SortPrevious,
    SortReverse,
    SweepAxis,
    SweepFiner,
    SweepWider,
    SweepLines,
    SweepAgain,
    SweepSecond,
    SweepScales,
    SweepFigure,
    SweepRange,
    Ask,
    TakePoint,
    CursorLeft,
    CursorRight,
    PanLeft,
    PanRight,
    NextEvent,
    PreviousEvent,
    ZoomIn,
    ZoomOut,
    ZoomWhole,
    PlayBatch,
    Slower,
    Faster,
    Baseline,
    BoundaryBack,
    BoundaryForward,
    MoreReplicas,
    FewerReplicas,
    LargerTensor,
    SmallerTensor,
    NextMode,
    PreviousMode,
    Merge,
    Split,
    Undo,
    Redo,
    PlannersPlan,
    Help,
    Palette,
    Export,
    Open,
    Reload,
    Copy,
    SaveScreen,
    SaveSlide,
    NextTheme,
}

impl Action {
    /// Name in configuration files: the variant in lower case with hyphens, as in `next-event` and `show-stages`. A
    /// renamed variant would break users' files, so a test holds the list.
    pub fn id(self) -> String {
        hyphenated(&format!("{self:?}"))
    }
}

/// Converts `NextEvent` to `next-event`, `Show(Stages)` to `show-stages`.
fn hyphenated(name: &str) -> String {
    let mut id = String::new();
    for c in name.chars().filter(char::is_ascii_alphanumeric) {
        if c.is_ascii_uppercase() && !id.is_empty() {
            id.push('-');
        }
        id.push(c.to_ascii_lowercase());
    }
    id
}

/// Part of the screen in which an action's keys apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// Left panel.
    Panel,
    /// Knobs of the layout.
    Layout,
    /// One view.
    Of(View),
    /// Stages and Overview: actions that change the plan.
    Stages,
    /// Trees: Stages and the nodes of Workload.
    Tree,
    /// Suggestions below the stages.
    Suggestions,
    /// Remedies where nothing fits.
    Remedies,
    /// All views of a model to be trained.
    Trained,
    /// Any list.
    Lists,
    /// Everywhere.
    Everywhere,
}

impl Scope {
    /// Title in the help.
    pub fn title(self) -> &'static str {
        match self {
            Scope::Panel => "Left panel",
            Scope::Layout => "Layout",
            Scope::Of(view) => view.title(),
            Scope::Stages => "Editing the plan",
            Scope::Tree => "Stages and layers",
            Scope::Remedies => "What would do",
            Scope::Suggestions => "What would help",
            Scope::Trained => "Models to be trained",
            Scope::Lists => "Lists",
            Scope::Everywhere => "Everywhere",
        }
    }

    /// Name in configuration files: `tree`, `everywhere`.
    pub fn id(self) -> String {
        match self {
            Scope::Of(view) => view.id(),
            other => hyphenated(&format!("{other:?}")),
        }
    }

    /// Sort key of scopes in lists: left panel, then each view, then the scopes of several views.
    pub(crate) fn place(self) -> (usize, usize) {
        let views = View::ALL.len();
        match self {
            Scope::Panel => (0, 0),
            Scope::Layout => (0, 1),
            Scope::Of(view) => (1 + view as usize, 0),
            // Listed after Stages, which they belong to.
            Scope::Stages => (1 + list::WITH_PLAN as usize, 1),
            Scope::Tree => (1 + list::WITH_PLAN as usize, 2),
            Scope::Suggestions => (1 + list::WITH_PLAN as usize, 3),
            Scope::Remedies => (1 + list::WITH_PLAN as usize, 4),
            Scope::Lists => (1 + views, 0),
            Scope::Trained => (1 + views, 1),
            Scope::Everywhere => (1 + views, 2),
        }
    }
}

/// Row of the table of actions.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// The action.
    pub action: Action,
    /// Scope of its keys.
    pub scope: Scope,
    /// Keys, as [`super::keymap`] reads them. The first is the one shown.
    pub keys: &'static [&'static str],
    /// Title in the palette.
    pub title: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// Word in the bottom line; empty for the actions not shown there.
    pub hint: &'static str,
}

pub(crate) const fn entry(
    scope: Scope,
    action: Action,
    keys: &'static [&'static str],
    title: &'static str,
    help: &'static str,
    hint: &'static str,
) -> Entry {
    Entry { action, scope, keys, title, help, hint }
}

use Action as A;
use Scope as S;

/// Actions of the left panel.
const PANEL: &[Entry] = &[
    entry(S::Panel, A::Decrease, &["left"], "Decrease", "one step down, or the previous choice", "change"),
    entry(S::Panel, A::Increase, &["right"], "Increase", "one step up, or the next choice", ""),
    entry(
        S::Panel,
        A::DecreaseLarge,
        &["shift-left", "H"],
        "Decrease much",
        "a large step down: half the devices; of a model, one device",
        "",
    ),
    entry(
        S::Panel,
        A::IncreaseLarge,
        &["shift-right", "L"],
        "Increase much",
        "a large step up: twice the devices; of a model, one device",
        "double",
    ),
    entry(S::Panel, A::Edit, &["enter"], "Edit", "type a value with its unit, or take the choice", "edit"),
    entry(S::Panel, A::Reset, &["backspace", "delete"], "Reset", "back to its start value", "reset"),
];

/// Actions of the knobs.
const LAYOUT: &[Entry] = &[
    entry(S::Layout, A::Decrease, &["left"], "Smaller", "pin the axis to its next smaller value", "turn"),
    entry(S::Layout, A::Increase, &["right"], "Larger", "pin the axis to its next larger value", ""),
    entry(S::Layout, A::Up, &["up", "k"], "Axis before", "the axis to the left", "axis"),
    entry(S::Layout, A::Down, &["down", "j"], "Next axis", "the axis to the right", ""),
    entry(S::Layout, A::Reset, &["backspace", "delete"], "Free", "let the planner choose the axis", "free"),
];

/// Actions of the suggestions.
const SUGGESTIONS: &[Entry] = &[
    entry(S::Suggestions, A::Edit, &["enter"], "Take it", "set the limit or option as suggested", "take"),
    entry(S::Suggestions, A::Decrease, &["left"], "Before", "the previous suggestion", ""),
    entry(S::Suggestions, A::Increase, &["right"], "Next", "the next suggestion", "choose"),
];

/// Actions of the remedies.
const REMEDIES: &[Entry] =
    &[entry(S::Remedies, A::Edit, &["enter"], "Take it", "change this input, under which a layout fits", "take it")];

/// Actions for a model to be trained, in all views.
const TRAINED: &[Entry] = &[
    entry(S::Trained, A::Groups, &["c"], "Groups", "the devices by their groups, one map an axis", "groups"),
    entry(
        S::Trained,
        A::FailMachine,
        &["X"],
        "A machine fails",
        "ways on without the selected machine, and their cost",
        "machine fails",
    ),
];

/// Actions of every list.
const LISTS: &[Entry] = &[
    entry(S::Lists, A::Up, &["up", "k"], "Up", "one row up", ""),
    entry(S::Lists, A::Down, &["down", "j"], "Down", "one row down", ""),
    entry(S::Lists, A::PageUp, &["pageup"], "Page up", "ten rows up", ""),
    entry(S::Lists, A::PageDown, &["pagedown"], "Page down", "ten rows down", ""),
    entry(S::Lists, A::First, &["home"], "First", "to the first row", ""),
    entry(S::Lists, A::Last, &["end", "G"], "Last", "to the last row", ""),
];

/// Actions available everywhere.
const EVERYWHERE: &[Entry] = &[
    entry(
        S::Everywhere,
        A::NextPanel,
        &["tab"],
        "Next part",
        "from the view to the left panel, then to the layout",
        "panel",
    ),
    entry(S::Everywhere, A::PreviousPanel, &["backtab"], "Part before", "from the view to the layout, then back", ""),
    entry(S::Everywhere, A::FoldPanel, &["f1"], "Fold left panel", "hide or show the left panel", ""),
    entry(
        S::Everywhere,
        A::FitMemory,
        &["m"],
        "Smallest memory",
        "if there is no plan: set memory to the least value that allows one",
        "",
    ),
    entry(
        S::Everywhere,
        A::FitDevices,
        &["f"],
        "Fewest devices",
        "if there is no plan: set devices to the least \
        number that allows one",
        "",
    ),
    entry(
        S::Everywhere,
        A::NextObjective,
        &["O"],
        "Other objective",
        "throughput or latency: the last planner used for the other",
        "",
    ),
    entry(
        S::Everywhere,
        A::Convergence,
        &["b"],
        "Best and bound",
        "the last search: incumbent and lower bound over time",
        "",
    ),
    entry(
        S::Everywhere,
        A::WouldHelp,
        &["w"],
        "What would help",
        "re-plans with one limit or option changed: run them, go there, or leave",
        "what helps",
    ),
    entry(
        S::Everywhere,
        A::ShowWouldHelp,
        &["W"],
        "Fold what would help",
        "hide or show the list below the stages",
        "",
    ),
    entry(
        S::Everywhere,
        A::Ask,
        &["g"],
        "Ask",
        "the least devices, memory, bandwidth or microbatches that reach a goal",
        "ask",
    ),
    entry(S::Everywhere, A::HowSimulated, &["P"], "Simulator", "settings of the simulator, at the left", ""),
    entry(
        S::Everywhere,
        A::Baseline,
        &["="],
        "Compare with this",
        "measure changes against the shown plan; again: against the previous plan",
        "",
    ),
    entry(S::Everywhere, A::Pin, &["p"], "Pin", "keep the plan for comparison; in Compare: unpin", "pin"),
    entry(S::Everywhere, A::Export, &["e"], "Export", "write the plan to a file", "export"),
    entry(S::Everywhere, A::Open, &["o"], "Open", "load another workload, or a plan to compare with", "open"),
    entry(S::Everywhere, A::Reload, &["f5"], "Read again", "load the workload's file again; changed limits stay", ""),
    entry(S::Everywhere, A::Copy, &["C"], "Copy plan", "the plan's JSON to the clipboard (OSC 52)", ""),
    entry(S::Everywhere, A::SaveSlide, &["S"], "Save a slide", "the plan as a 16:9 SVG picture for a talk", ""),
    entry(S::Everywhere, A::SaveScreen, &["ctrl-s"], "Save screen", "this screen as an SVG picture", ""),
    entry(S::Everywhere, A::NextTheme, &["ctrl-t"], "Next theme", "change the colours", ""),
    entry(S::Everywhere, A::Palette, &[":"], "Command", "find an action by its name", "command"),
    entry(S::Everywhere, A::Help, &["?"], "Help", "every key, searchable", "help"),
    entry(S::Everywhere, A::Back, &["esc"], "Back", "stop planning and keep the best plan, or close what is open", ""),
    entry(S::Everywhere, A::Suspend, &["ctrl-z"], "Suspend", "back to the shell; `fg` returns", ""),
    entry(S::Everywhere, A::Quit, &["q", "ctrl-c"], "Quit", "leave plantui", "quit"),
];

/// Total number of entries of the parts.
const fn count(parts: &[&[Entry]]) -> usize {
    let (mut all, mut part) = (0, 0);
    while part < parts.len() {
        all += parts[part].len();
        part += 1;
    }
    all
}

/// Concatenates the parts.
const fn joined<const N: usize>(parts: &[&[Entry]]) -> [Entry; N] {
    let mut all = [EVERYWHERE[0]; N];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut place = 0;
        while place < parts[part].len() {
            all[at] = parts[part][place];
            at += 1;
            place += 1;
        }
        part += 1;
    }
    all
}

const OF_VIEWS: [Entry; count(&list::KEYS)] = joined(&list::KEYS);

const PARTS: [&[Entry]; 9] =
    [PANEL, LAYOUT, SUGGESTIONS, REMEDIES, &OF_VIEWS, LISTS, &list::SHOWS, TRAINED, EVERYWHERE];

/// All actions. If two entries have the same key, the first whose scope is in force wins.
pub(crate) static TABLE: &[Entry] = &joined::<{ count(&PARTS) }>(&PARTS);
