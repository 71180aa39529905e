//! Everything a user can do, in one table: keys, help and palette are all made from it.

use super::model::View;

/// Something a user can ask for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "each has its title and help in TABLE")]
pub enum Action {
    Quit,
    Suspend,
    Back,
    Show(View),
    NextPanel,
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
    NextSchedule,
    HowSimulated,
    /// Mark the critical path.
    MarkPath,
    CompareAll,
    Pin,
    RenamePin,
    Mark,
    SideBySide,
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
    NextTheme,
}

impl Action {
    /// What a configuration file calls it: its own name in small letters, as in `next-event` and `show-stages`. The
    /// enum is the one place where actions are named, so a renamed one would break users' files: a test holds the list.
    pub fn id(self) -> String {
        hyphenated(&format!("{self:?}"))
    }
}

/// `NextEvent` as `next-event`, `Show(Stages)` as `show-stages`.
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

/// Where an action's keys are heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// In the panel at the left.
    Panel,
    /// In Overview.
    Overview,
    /// In Stages and Overview: what changes the plan.
    Stages,
    /// In the trees: Stages and the nodes of Workload.
    Tree,
    /// Among the suggestions below the stages.
    Suggestions,
    /// In Devices.
    Devices,
    /// In Timeline.
    Timeline,
    /// In Compare.
    Compare,
    /// In Sweep.
    Sweep,
    /// In Workload.
    Workload,
    /// In any list.
    Lists,
    /// Everywhere.
    Everywhere,
}

impl Scope {
    /// As the help names it.
    pub fn title(self) -> &'static str {
        match self {
            Scope::Panel => "Left panel",
            Scope::Overview => "Overview",
            Scope::Stages => "Editing the plan",
            Scope::Tree => "Stages and nodes",
            Scope::Suggestions => "What would help",
            Scope::Devices => "Devices",
            Scope::Timeline => "Timeline",
            Scope::Compare => "Compare",
            Scope::Sweep => "Sweep",
            Scope::Workload => "Workload",
            Scope::Lists => "Lists",
            Scope::Everywhere => "Everywhere",
        }
    }

    /// What a configuration file calls it: `tree`, `everywhere`.
    pub fn id(self) -> String {
        hyphenated(&format!("{self:?}"))
    }
}

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    /// What is done.
    pub action: Action,
    /// Where its keys are heard.
    pub scope: Scope,
    /// Its keys, as [`super::keymap`] reads them; the first is the one that is shown.
    pub keys: &'static [&'static str],
    /// What the palette calls it.
    pub title: &'static str,
    /// One line of help.
    pub help: &'static str,
    /// The word in the bottom line, for the few that are shown there.
    pub hint: &'static str,
}

const fn entry(
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

/// All actions. Of two entries with one key, the first whose scope is in force wins.
pub(crate) static TABLE: &[Entry] = &[
    entry(S::Panel, A::Decrease, &["left", "h"], "Decrease", "one step down, or the choice before", "change"),
    entry(S::Panel, A::Increase, &["right", "l"], "Increase", "one step up, or the next choice", ""),
    entry(S::Panel, A::DecreaseLarge, &["shift-left", "H"], "Decrease much", "a large step down: half the devices", ""),
    entry(
        S::Panel,
        A::IncreaseLarge,
        &["shift-right", "L"],
        "Increase much",
        "a large step up: twice the devices",
        "double",
    ),
    entry(S::Panel, A::Edit, &["enter"], "Edit", "type a value with its unit, or take the choice", "edit"),
    entry(S::Panel, A::Reset, &["backspace", "delete"], "Reset", "back to the value it started with", "reset"),
    entry(S::Suggestions, A::Edit, &["enter"], "Take it", "set the limit or option as suggested", "take"),
    entry(S::Suggestions, A::Decrease, &["left", "h"], "Before", "the suggestion before", ""),
    entry(S::Suggestions, A::Increase, &["right", "l"], "Next", "the next suggestion", "choose"),
    entry(S::Overview, A::PlayBatch, &["space"], "Play", "play the simulated batch, or hold it; Esc leaves it", "play"),
    entry(
        S::Overview,
        A::PreviousEvent,
        &[","],
        "Event before",
        "hold the batch at the event before, of any stage",
        "event",
    ),
    entry(S::Overview, A::NextEvent, &["."], "Next event", "hold the batch at the next event of any stage", ""),
    entry(S::Overview, A::Slower, &["<"], "Slower", "play half as fast", "speed"),
    entry(S::Overview, A::Faster, &[">"], "Faster", "play twice as fast", ""),
    entry(S::Overview, A::CursorLeft, &["left", "h"], "Device before", "the device to the left on the map", "walk"),
    entry(S::Overview, A::CursorRight, &["right", "l"], "Next device", "the device to the right on the map", ""),
    entry(
        S::Stages,
        A::BoundaryBack,
        &["["],
        "Boundary back",
        "the stage's boundary one node back; a selected node to the stage before",
        "move a boundary",
    ),
    entry(
        S::Stages,
        A::BoundaryForward,
        &["]"],
        "Boundary on",
        "the stage's boundary one node on; a selected node to the next stage",
        "",
    ),
    entry(S::Stages, A::MoreReplicas, &["d"], "More replicas", "the next data-parallel degree of the stage", ""),
    entry(S::Stages, A::FewerReplicas, &["D"], "Fewer replicas", "the data-parallel degree before", ""),
    entry(S::Stages, A::LargerTensor, &["t"], "Larger tensor degree", "the next degree that its nodes offer", ""),
    entry(S::Stages, A::SmallerTensor, &["T"], "Smaller tensor degree", "the degree before", ""),
    entry(
        S::Stages,
        A::NextMode,
        &["r"],
        "Recompute",
        "the next mode of a node or of the whole stage; of an operator the next split",
        "",
    ),
    entry(S::Stages, A::PreviousMode, &["R"], "Recompute, back", "the mode or split before", ""),
    entry(S::Stages, A::Merge, &["M"], "Merge", "the stage and the one behind it become one", ""),
    entry(S::Stages, A::Split, &["s"], "Split", "the stage becomes two, at the selected node or in the middle", ""),
    entry(S::Stages, A::Undo, &["u"], "Undo", "the plan before the last edit", ""),
    entry(S::Stages, A::Redo, &["U"], "Redo", "the edit that was undone", ""),
    entry(S::Stages, A::PlannersPlan, &["0"], "Planner's plan", "away from the edited plan; u brings it back", ""),
    entry(S::Tree, A::Unfold, &["right", "l"], "Unfold", "show what is inside", ""),
    entry(S::Tree, A::Fold, &["left", "h"], "Fold", "hide what is inside, or go to the parent", ""),
    entry(S::Tree, A::Toggle, &["enter", "space"], "Fold or unfold", "turn what is inside on or off", "unfold"),
    entry(S::Tree, A::UnfoldAll, &["*"], "Unfold all", "show everything", ""),
    entry(S::Tree, A::FoldAll, &["-"], "Fold all", "show only the top", ""),
    entry(S::Tree, A::Find, &["/"], "Find", "go to the next row with a text in it", "find"),
    entry(S::Tree, A::FindNext, &["n"], "Find next", "the next row with the text", ""),
    entry(S::Tree, A::FindPrevious, &["N"], "Find previous", "the row before with the text", ""),
    entry(S::Devices, A::Toggle, &["enter", "space"], "Unfold replicas", "one row for each device", "unfold"),
    entry(S::Timeline, A::CursorLeft, &["left", "h"], "Cursor left", "move the cursor back in time", "cursor"),
    entry(S::Timeline, A::CursorRight, &["right", "l"], "Cursor right", "move the cursor on in time", ""),
    entry(S::Timeline, A::ZoomIn, &["+"], "Zoom in", "half as much time, around the cursor", "zoom"),
    entry(S::Timeline, A::ZoomOut, &["-", "_"], "Zoom out", "twice as much time, around the cursor", ""),
    entry(S::Timeline, A::ZoomWhole, &["0"], "Whole batch", "from the first event to the last", "whole"),
    entry(S::Timeline, A::PanLeft, &["shift-left", "H"], "Pan left", "half a screen back", ""),
    entry(S::Timeline, A::PanRight, &["shift-right", "L"], "Pan right", "half a screen on", ""),
    entry(S::Timeline, A::NextEvent, &["n", "."], "Next event", "cursor to the next event of the row", "event"),
    entry(S::Timeline, A::PreviousEvent, &["N", ","], "Previous event", "cursor to the event before", ""),
    entry(S::Timeline, A::PlayBatch, &["space"], "Play", "let the cursor run through the batch, or hold it", "play"),
    entry(S::Timeline, A::Slower, &["<"], "Slower", "play half as fast", ""),
    entry(S::Timeline, A::Faster, &[">"], "Faster", "play twice as fast", ""),
    entry(S::Timeline, A::Toggle, &["enter"], "Show replicas", "one row for each replica of the stage", "replicas"),
    entry(S::Timeline, A::NextSchedule, &["s"], "Next schedule", "simulate the plan with another schedule", "schedule"),
    entry(
        S::Timeline,
        A::MarkPath,
        &["x"],
        "Critical path",
        "mark the chain of events that sets the time of the batch",
        "path",
    ),
    entry(
        S::Compare,
        A::CompareAll,
        &["a"],
        "Ask all planners",
        "plan with every planner that can, side by side",
        "all",
    ),
    entry(S::Compare, A::Preview, &["enter"], "Show this plan", "show it in the other views; Esc goes back", "show"),
    entry(S::Compare, A::Mark, &["space"], "Mark", "mark a plan; side by side: the other way round", "mark"),
    entry(S::Compare, A::SideBySide, &["v"], "Side by side", "two marked plans, stage by stage", "side by side"),
    entry(S::Compare, A::SortNext, &[">"], "Sort by next", "sort by the column to the right", ""),
    entry(S::Compare, A::SortPrevious, &["<"], "Sort by previous", "sort by the column to the left", "sort"),
    entry(S::Compare, A::SortReverse, &["r"], "Reverse order", "the worst first, or the best", ""),
    entry(S::Compare, A::NextSchedule, &["s"], "Next schedule", "simulate all plans with another schedule", "schedule"),
    entry(S::Compare, A::RenamePin, &["n"], "Name pin", "give the selected pin another name", ""),
    entry(S::Sweep, A::CursorLeft, &["left", "h"], "Read to the left", "the point with less of the limit", "read"),
    entry(S::Sweep, A::CursorRight, &["right", "l"], "Read to the right", "the point with more of the limit", ""),
    entry(S::Sweep, A::TakePoint, &["enter"], "Take this value", "set the limit to the point and plan", "take it"),
    entry(S::Sweep, A::SweepAxis, &["x"], "Next limit", "sweep the next limit of the planner", "limit"),
    entry(S::Sweep, A::SweepFiner, &["+"], "Finer steps", "values closer to the one that is set", "steps"),
    entry(S::Sweep, A::SweepWider, &["-", "_"], "Wider steps", "values further from the one that is set", ""),
    entry(
        S::Sweep,
        A::SweepLines,
        &["s"],
        "Next lines",
        "this planner, every planner, or settings of one option",
        "lines",
    ),
    entry(S::Sweep, A::SweepRange, &["t"], "Type a range", "values of the limit, such as 8..512:x2", "range"),
    entry(S::Sweep, A::SweepSecond, &["y"], "Second limit", "a map over two limits, or one again", "second limit"),
    entry(S::Sweep, A::SweepScales, &["L"], "Linear or logarithmic", "which axes count in factors", ""),
    entry(
        S::Sweep,
        A::SweepFigure,
        &["v"],
        "Next figure",
        "draw the objective, time of a batch, throughput, bubble, memory, devices or planning time",
        "figure",
    ),
    entry(S::Sweep, A::SweepAgain, &["r"], "Sweep again", "around what is set now", "again"),
    entry(S::Workload, A::NextSection, &["s"], "Next section", "nodes, edges, findings, about", "section"),
    entry(S::Lists, A::Up, &["up", "k"], "Up", "one row up", ""),
    entry(S::Lists, A::Down, &["down", "j"], "Down", "one row down", ""),
    entry(S::Lists, A::PageUp, &["pageup"], "Page up", "ten rows up", ""),
    entry(S::Lists, A::PageDown, &["pagedown"], "Page down", "ten rows down", ""),
    entry(S::Lists, A::First, &["home"], "First", "to the first row", ""),
    entry(S::Lists, A::Last, &["end", "G"], "Last", "to the last row", ""),
    entry(
        S::Everywhere,
        A::Show(View::Overview),
        &["1"],
        "Overview",
        "the plan as a picture: devices and the batch",
        "",
    ),
    entry(S::Everywhere, A::Show(View::Stages), &["2"], "Stages", "which nodes form a stage, on how many devices", ""),
    entry(S::Everywhere, A::Show(View::Devices), &["3"], "Devices", "how busy and how full each device is", ""),
    entry(
        S::Everywhere,
        A::Show(View::Timeline),
        &["4"],
        "Timeline",
        "one batch through the pipeline, event by event",
        "",
    ),
    entry(S::Everywhere, A::Show(View::Compare), &["5"], "Compare", "plans side by side in one simulator", ""),
    entry(S::Everywhere, A::Show(View::Sweep), &["6"], "Sweep", "the objective over a limit", ""),
    entry(S::Everywhere, A::Show(View::Workload), &["7"], "Workload", "the network: nodes, edges, findings", ""),
    entry(
        S::Everywhere,
        A::NextPanel,
        &["tab", "backtab"],
        "Other panel",
        "from the left panel to the view, and back",
        "panel",
    ),
    entry(S::Everywhere, A::FoldPanel, &["f1"], "Fold left panel", "hide or show the left panel", ""),
    entry(
        S::Everywhere,
        A::FitMemory,
        &["m"],
        "Smallest memory",
        "where there is no plan: set memory to the least that allows one",
        "",
    ),
    entry(S::Everywhere, A::FitDevices, &["f"], "Fewest devices", "set devices to the fewest that allow a plan", ""),
    entry(
        S::Everywhere,
        A::NextObjective,
        &["O"],
        "Other objective",
        "throughput or latency: the planner last used for the other",
        "",
    ),
    entry(
        S::Everywhere,
        A::Convergence,
        &["b"],
        "Best and bound",
        "how the last search went: best value and proven bound over time",
        "",
    ),
    entry(
        S::Everywhere,
        A::WouldHelp,
        &["w"],
        "What would help",
        "re-plans with one limit or option moved: ask, go there, or leave",
        "what helps",
    ),
    entry(S::Everywhere, A::ShowWouldHelp, &["W"], "Fold what would help", "hide or show it below the stages", ""),
    entry(
        S::Everywhere,
        A::Ask,
        &["g"],
        "Ask",
        "the least devices, memory, bandwidth or microbatches for a goal",
        "ask",
    ),
    entry(S::Everywhere, A::HowSimulated, &["P"], "Simulator", "how plans are simulated, set at the left", ""),
    entry(
        S::Everywhere,
        A::Baseline,
        &["="],
        "Compare with this",
        "tell every change against the plan that is shown; again: against the plan before",
        "",
    ),
    entry(S::Everywhere, A::Pin, &["p"], "Pin", "put the plan aside to compare with; in Compare: unpin", "pin"),
    entry(S::Everywhere, A::Export, &["e"], "Export", "write the plan to a file", "export"),
    entry(S::Everywhere, A::Open, &["o"], "Open", "load another workload, or a plan to compare with", "open"),
    entry(S::Everywhere, A::Reload, &["f5"], "Read again", "load the workload's file anew; changed limits stay", ""),
    entry(S::Everywhere, A::Copy, &["c"], "Copy plan", "the plan's JSON to the clipboard (OSC 52)", ""),
    entry(S::Everywhere, A::SaveScreen, &["S"], "Save screen", "this screen as an SVG picture", ""),
    entry(S::Everywhere, A::NextTheme, &["ctrl-t"], "Next theme", "change the colours", ""),
    entry(S::Everywhere, A::Palette, &[":"], "Command", "find an action by its name", "command"),
    entry(S::Everywhere, A::Help, &["?"], "Help", "every key, searchable", "help"),
    entry(S::Everywhere, A::Back, &["esc"], "Back", "stop planning and keep the best, or leave what is open", ""),
    entry(S::Everywhere, A::Suspend, &["ctrl-z"], "Suspend", "back to the shell; `fg` returns", ""),
    entry(S::Everywhere, A::Quit, &["q", "ctrl-c"], "Quit", "leave plantui", "quit"),
];
