//! Data of the tour: actions, order and captions.
//!
//! [`super::demo`] plays it on the screen, [`super::picture`] takes the README's pictures from it. Steps name actions,
//! not keys, so that any key configuration works; `{export}` in a caption is the key of that action.

use ratatui::crossterm::event::KeyCode;

use super::{action::Action, place::Focus, tour_of_model, views::list::View};
use crate::workload::Workload;

/// Action of a step.
#[derive(Debug, Clone, Copy)]
pub(super) enum Does {
    /// An action of the table.
    Act(Action),
    /// Moves the focus to the left panel or the view.
    Focus(Focus),
    /// A key for the open overlay.
    Press(KeyCode),
}

/// Actions, then a caption while the result is shown.
#[derive(Debug, Clone, Copy)]
pub(super) struct Step {
    /// At most two sentences.
    pub(super) caption: &'static str,
    /// Actions in order.
    pub(super) does: &'static [Does],
    /// Duration, seconds.
    pub(super) seconds: f32,
    /// Name of the README's picture of it, if any.
    pub(super) picture: Option<&'static str>,
    /// Number of frames in the animated picture; more than one for motion.
    pub(super) film: u32,
}

use Action as A;
use Does::{Act, Focus as Hears, Press};

const DOWN: Does = Act(A::Down);

/// Tour of a workload: that of a model to be trained, or that of the built-in one.
pub(super) fn of(workload: &Workload) -> &'static [Step] {
    if workload.training().is_some() { tour_of_model::TOUR } else { TOUR }
}

/// The tour of the built-in workload.
pub(super) static TOUR: &[Step] = &[
    Step {
        caption: "BERT-32 on 64 devices of 8 GiB. A cell is a device: its hue is its stage, its height its memory.",
        does: &[Hears(Focus::View), Act(A::Show(View::Overview))],
        seconds: 4.0,
        picture: Some("overview"),
        film: 1,
    },
    Step {
        caption: "{play-batch} plays the iteration: cells light up with what their devices do, half a second a \
            microbatch, the middle in fast forward.",
        does: &[Act(A::ZoomWhole), Act(A::PlayBatch)],
        seconds: 10.0,
        picture: None,
        film: 20,
    },
    Step {
        caption: "Limits are at the left. Every change is planned at once, here twice the devices; the header shows \
            the difference.",
        does: &[Act(A::PlayBatch), Act(A::Back), Hears(Focus::Panel), Act(A::IncreaseLarge)],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Less memory: more layers recompute, or stages shrink, and the time per sample rises.",
        does: &[DOWN, Act(A::Decrease), Act(A::Decrease)],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "One key resets a limit to its start value.",
        does: &[Act(A::Reset), Act(A::Up), Act(A::Reset), Hears(Focus::View)],
        seconds: 3.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "A row is a stage: replicas, layers, time, memory. ◂ marks the slowest stage, which limits the rest.",
        does: &[Act(A::Show(View::Stages)), DOWN, DOWN, DOWN, DOWN, DOWN],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Unfolded: the cost of every layer, and the layers that recompute their activations.",
        does: &[Act(A::Unfold), DOWN, Act(A::Unfold)],
        seconds: 4.0,
        picture: Some("stages"),
        film: 1,
    },
    Step {
        caption: "What would help: a re-plan for each limit and option changed alone, the best first ({would-help}).",
        does: &[Act(A::First), Act(A::FoldAll), Act(A::WouldHelp)],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "A plan can be edited by hand: {boundary-forward} moved a boundary. The edited plan is scored at \
            once, against the planner's.",
        does: &[Act(A::Back), Act(A::BoundaryForward)],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "{undo} undoes. After an edit that breaks a limit, the screen shows which one, and by how much.",
        does: &[Act(A::Undo)],
        seconds: 3.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Devices: load and memory of each one. Equal replicas share a row.",
        does: &[Act(A::Show(View::Devices))],
        seconds: 4.0,
        picture: Some("devices"),
        film: 1,
    },
    Step {
        caption: "Timeline: one simulated iteration with the forward and backward pass of every microbatch, \
            transfers and idle time.",
        does: &[
            Act(A::Show(View::Timeline)),
            Act(A::ZoomIn),
            DOWN,
            DOWN,
            Act(A::NextEvent),
            Act(A::NextEvent),
            Act(A::NextEvent),
        ],
        seconds: 5.0,
        picture: Some("timeline"),
        film: 1,
    },
    Step {
        caption: "The same plan under another schedule ({next-schedule}): throughput, idle time and memory change.",
        does: &[Act(A::NextSchedule), Act(A::ZoomWhole)],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Compare: all planners in one simulator, with each planner's own figure beside the simulated one.",
        does: &[Act(A::Show(View::Compare)), Act(A::CompareAll)],
        seconds: 5.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Sweep: the objective over one limit, point by point. Without a feasible plan the line has a gap.",
        does: &[Act(A::Show(View::Sweep)), Act(A::CursorRight), Act(A::CursorRight)],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Workload: the network, node by node, and findings in the profile that may mislead a planner.",
        does: &[Act(A::Show(View::Workload))],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "A plan leaves ({export}) as JSON, a trace, a table, or the flags of a training engine.",
        does: &[
            Act(A::Show(View::Stages)),
            Act(A::Export),
            Press(KeyCode::Down),
            Press(KeyCode::Down),
            Press(KeyCode::Down),
            Press(KeyCode::Down),
            Press(KeyCode::Down),
        ],
        seconds: 5.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "{help} lists every key; {palette} finds an action by its name.",
        does: &[Press(KeyCode::Esc), Act(A::Help)],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "That was the tour. The screen is yours: {open} opens a workload of your own.",
        does: &[Press(KeyCode::Esc), Act(A::Show(View::Overview))],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
];
