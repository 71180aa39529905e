//! The views, one folder each, and their behaviour.
//!
//! A folder declares its tab (`TAB`) and its keys (`KEYS`), its state (`State`), and a unit struct that implements
//! [`ViewBehaviour`]: actions, clicks and drawing. The list of the views is in [`list`]. Views do not use each other;
//! shared drawing is in [`super::paint`].

pub(super) mod compare;
pub(super) mod devices;
pub(super) mod frontier;
pub(super) mod hardware;
pub(super) mod history;
pub(super) mod list;
pub(super) mod overview;
pub(super) mod stages;
pub(super) mod sweep;
pub(super) mod timeline;
pub(super) mod workload;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use self::list::{Tab, View, each_view};
use super::{
    action::{Action, Scope},
    effect::Effects,
    marks::Marks,
    model::{Hit, Model},
    simulated::Simulated,
    widget::tree::TreePane,
};
use crate::family::edit::Edit;

/// Behaviour of a view. Its state is in the [`Model`], in [`Views`](list::Views).
pub(super) trait ViewBehaviour: Sync {
    /// Tab of the view.
    fn tab(&self) -> &'static Tab;

    /// Scopes in force.
    fn scopes(&self, _: &Model) -> &'static [Scope] {
        self.tab().scopes
    }

    /// Prepares for the keys of a scope. Returns true if it can.
    fn turn_to(&self, _: &mut Model, scope: Scope) -> bool {
        self.tab().scopes.contains(&scope)
    }

    /// Scopes whose keys have no effect at present: the bottom line omits them.
    fn idle(&self, _: &Model) -> &'static [Scope] {
        &[]
    }

    /// Keys of what the view shows at present, with a word each: the first of the bottom line.
    fn hints(&self, _: &Model) -> &'static [(Action, &'static str)] {
        &[]
    }

    /// Draws the view, and records clickable areas. A view that uses a plan is drawn only while there is one.
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks);

    /// True if it shows something older than the plan, and is therefore drawn without colours.
    fn outdated(&self, _: &Model) -> bool {
        false
    }

    /// Handles the opening of the view, which has the focus.
    fn opened(&self, _: &mut Model) -> Effects {
        vec![]
    }

    /// Performs an action of the view.
    fn act(&self, model: &mut Model, action: Action) -> Effects;

    /// Handles a click on one of its own areas.
    fn click(&self, _: &mut Model, _: Hit, _: Position) -> Effects {
        vec![]
    }

    /// Handles a mouse movement over one of its own areas with the button down.
    fn drag(&self, _: &mut Model, _: Hit, _: Position) {}

    /// Handles the wheel over one of its own areas. Returns false to let it act as the arrow keys.
    fn scroll(&self, _: &mut Model, _: Hit, _down: bool) -> bool {
        false
    }

    /// Tree that is searched and drawn.
    fn tree<'a>(&self, _: &'a mut Model) -> Option<&'a mut TreePane> {
        None
    }

    /// Closes or stops something of the view, before anything else that the same key closes. Returns true if there was
    /// something.
    fn leave(&self, _: &mut Model) -> bool {
        false
    }

    /// Closes the part that is closed last. Returns true if there was one.
    fn leave_last(&self, _: &mut Model) -> bool {
        false
    }

    /// Row that an edit of the plan applies to: the stage, then indices within it. Empty if none is selected.
    fn edited_row(&self, _: &Model) -> Vec<u32> {
        vec![]
    }

    /// Stage under its cursor, once somebody has put it there.
    fn stage(&self, _: &Model) -> Option<usize> {
        None
    }

    /// Puts the cursor on a stage.
    fn point_at(&self, _: &mut Model, _stage: usize) {}

    /// Scrolls to a moved playhead, in an iteration of `_batch_s` seconds.
    fn seek(&self, _: &mut Model, _batch_s: f64) {}

    /// Keeps the edited item under the cursor after an edit of the plan.
    fn follow(&self, _: &mut Model, _: &Edit) {}

    /// Handles a change of the shown plan.
    fn plan_changed(&self, _: &mut Model) {}

    /// Handles the arrival of the plan's timeline.
    fn simulated(&self, _: &mut Model, _: &Simulated) {}

    /// Drops data that depends on the last workload's plans.
    fn forget(&self, _: &mut Model) {}
}

macro_rules! behaviours {
    ($($name:ident in $folder:ident $(lays out $laid:ty)?,)*) => {
        static BEHAVIOURS: [&dyn ViewBehaviour; View::ALL.len()] = [$(&$folder::$name),*];
    };
}

each_view!(behaviours);

impl View {
    /// Behaviour of the view.
    pub(super) fn behaviour(self) -> &'static dyn ViewBehaviour {
        BEHAVIOURS[self as usize]
    }
}
