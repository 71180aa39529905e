//! Tour of a model to be trained: layout, axes, other layouts, other hardware, a failure, earlier tries.

use super::{
    action::Action as A,
    place::Focus,
    tour::{
        Does::{Act, Focus as Hears, Press},
        Step,
    },
    views::list::View,
};
use ratatui::crossterm::event::KeyCode;

/// The tour of a model.
pub(super) static TOUR: &[Step] = &[
    Step {
        caption: "The layout is the title: TP, CP, PP, DP, EP, micro-batch, recomputation, sharding. Below it \
            stand time, tokens and memory; the header says how near the plan is to the best.",
        does: &[Hears(Focus::View), Act(A::Show(View::Overview))],
        seconds: 6.0,
        picture: Some("model"),
        film: 1,
    },
    Step {
        caption: "{play-batch} plays the iteration. The map has a column for each stage and a row for each machine.",
        does: &[Act(A::PlayBatch)],
        seconds: 8.0,
        picture: None,
        film: 16,
    },
    Step {
        caption: "One machine more, then another. The plan follows at once; the last change and its worth stand in a \
            line of their own.",
        does: &[Act(A::PlayBatch), Act(A::Back), Hears(Focus::Panel), Act(A::Increase), Act(A::Increase)],
        seconds: 5.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Every axis of the layout is a knob. Turned, it is pinned, the others are planned again, and the \
            price of the pin stands beside it.",
        does: &[Act(A::Reset), Hears(Focus::Layout), Act(A::Increase)],
        seconds: 5.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Freed again ({reset}), the planner chooses.",
        does: &[Act(A::Reset), Hears(Focus::View)],
        seconds: 3.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Frontier: the layouts that fit, time against memory. The arrows walk along them, Enter takes one.",
        does: &[Act(A::Show(View::Frontier)), Act(A::CursorLeft), Act(A::CursorLeft)],
        seconds: 5.0,
        picture: Some("frontier"),
        film: 1,
    },
    Step {
        caption: "Two layouts side by side: parts of time and memory, and what each change is worth.",
        does: &[Act(A::Mark), Act(A::CursorRight), Act(A::CursorRight), Act(A::Mark), Act(A::SideBySide)],
        seconds: 6.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "Hardware: the same training on other accelerators, and on more or fewer of them. Type prices and \
            tokens for cost and days ({palette}price b200 4.50).",
        does: &[Act(A::Back), Act(A::Show(View::Hardware))],
        seconds: 7.0,
        picture: Some("hardware"),
        film: 1,
    },
    Step {
        caption: "Groups: where TP, CP, EP, DP and PP communicate, and which of them leave a machine.",
        does: &[Act(A::Show(View::Devices)), Act(A::Groups)],
        seconds: 5.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "A machine fails: the ways on without it, what each costs, and what moves.",
        does: &[Act(A::Groups), Act(A::FailMachine)],
        seconds: 6.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "What would help ({would-help}): each limit and option changed alone, the best first.",
        does: &[Act(A::Back), Act(A::Show(View::Stages))],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "History keeps the plans of this workload with their inputs. Enter returns to one.",
        does: &[Act(A::Show(View::History))],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "The layout leaves ({export}) as the arguments of a training engine, or as JSON; {save-slide} makes \
            a slide.",
        does: &[Act(A::Show(View::Overview)), Act(A::Export), Press(KeyCode::Down), Press(KeyCode::Down)],
        seconds: 5.0,
        picture: None,
        film: 1,
    },
    Step {
        caption: "That was the tour. The screen is yours: {help} begins with what you may want to do.",
        does: &[Press(KeyCode::Esc), Hears(Focus::Panel)],
        seconds: 4.0,
        picture: None,
        film: 1,
    },
];
