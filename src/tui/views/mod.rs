//! The views, one folder each, and their list.
//!
//! A folder declares its tab (`TAB`), its keys (`KEYS`), its state (`State`) and a unit struct that implements
//! [`Room`]: actions, clicks and drawing. Tabs, number keys, help, palette, names in session files and the dispatch of
//! actions follow from the list at the end of this file. Views do not use each other; shared drawing is in
//! [`super::paint`].

pub(super) mod compare;
pub(super) mod devices;
pub(super) mod overview;
pub(super) mod stages;
pub(super) mod sweep;
pub(super) mod timeline;
pub(super) mod workload;

use ratatui::{
    Frame,
    layout::{Position, Rect},
};

use super::{
    action::{Action, Entry, Scope, entry},
    marks::Marks,
    model::{Focus, Hit, Model},
    simulated::Simulated,
    update::Effects,
    widget::tree::TreePane,
};
use crate::family::edit::Edit;

/// Tab of a view.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tab {
    /// Title of the tab; in lower case the view's name in session files.
    pub title: &'static str,
    /// Help in one line, also for the palette.
    pub help: &'static str,
}

/// Parts of the screen that a view uses.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uses {
    /// It shows a plan. Without one, the reason takes its place. Below it the course of the search may be shown.
    pub plan: bool,
    /// It follows the playback of the iteration.
    pub playhead: bool,
    /// It depends on the simulator settings, which the left panel then shows.
    pub simulator: bool,
    /// It shows suggestions.
    pub help: bool,
}

/// Behaviour of a view. Its state is in the [`Model`], in [`Views`].
pub(super) trait Room: Sync {
    /// All scopes of its keys, most specific first.
    fn hears(&self) -> &'static [Scope];

    /// Scopes in force.
    fn scopes(&self, _: &Model) -> &'static [Scope] {
        self.hears()
    }

    /// Prepares for the keys of a scope. Returns true if it can.
    fn turn_to(&self, _: &mut Model, scope: Scope) -> bool {
        self.hears().contains(&scope)
    }

    /// Scopes whose keys have no effect at present: the bottom line omits them.
    fn idle(&self, _: &Model) -> &'static [Scope] {
        &[]
    }

    /// Parts of the screen that it uses.
    fn uses(&self) -> Uses;

    /// Draws the view, and records clickable areas. A view that uses a plan is drawn only while there is one.
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks);

    /// True if it shows something older than the plan, and is therefore drawn without colours.
    fn outdated(&self, _: &Model) -> bool {
        false
    }

    /// Handles the opening of the view, which gives it the focus.
    fn opened(&self, model: &mut Model) -> Effects {
        model.focus = Focus::View;
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

/// Keys of the views, in order.
const NUMBERS: [&[&str]; 9] = [&["1"], &["2"], &["3"], &["4"], &["5"], &["6"], &["7"], &["8"], &["9"]];

/// View for a plan chosen elsewhere, and for suggestions if the current view has no list of them.
pub(super) const WITH_PLAN: View = View::Stages;

/// View of the plan's simulation.
pub(super) const WITH_TIMELINE: View = View::Timeline;

macro_rules! views {
    ($($name:ident in $folder:ident $(lays out $laid:ty)?,)*) => {
        /// Views of the screen.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each folder says what its view shows")]
        pub enum View {
            $($name,)*
        }

        impl View {
            /// All views, in the order of their keys.
            pub const ALL: [View; [$(View::$name),*].len()] = [$(View::$name),*];
        }

        /// State of each view.
        #[derive(Debug, Default)]
        pub(super) struct Views {
            $(pub $folder: $folder::State,)*
        }

        /// Layouts that drawing computed and the views store.
        #[derive(Debug, Default)]
        pub(super) struct Laid {
            $($(pub $folder: Option<$laid>,)?)*
        }

        impl Views {
            /// Stores the layouts.
            pub(super) fn laid_out(&mut self, laid: Laid) {
                $($(
                    let laid_out: Option<$laid> = laid.$folder;
                    if let Some(laid_out) = laid_out {
                        self.$folder.laid_out(laid_out);
                    }
                )?)*
            }
        }

        const TABS: [Tab; View::ALL.len()] = [$($folder::TAB),*];

        static ROOMS: [&dyn Room; View::ALL.len()] = [$(&$folder::$name),*];

        /// Keys of each view.
        pub(super) const KEYS: [&[Entry]; View::ALL.len()] = [$($folder::KEYS),*];

        /// Keys that open the views.
        pub(super) const SHOWS: [Entry; View::ALL.len()] = [$(View::$name.shown_by()),*];
    };
}

impl View {
    /// Title of the tab.
    pub fn title(self) -> &'static str {
        TABS[self as usize].title
    }

    /// Name in session files and configuration.
    pub(super) fn id(self) -> String {
        self.title().to_lowercase()
    }

    /// Behaviour of the view.
    pub(super) fn room(self) -> &'static dyn Room {
        ROOMS[self as usize]
    }

    /// View in which a scope's keys are most specific, if any.
    pub(super) fn hearing(scope: Scope) -> Option<View> {
        let place = |view: &View| view.room().hears().iter().position(|heard| *heard == scope);
        View::ALL.into_iter().filter(|view| place(view).is_some()).min_by_key(place)
    }

    const fn shown_by(self) -> Entry {
        let (place, tab) = (self as usize, TABS[self as usize]);
        entry(Scope::Everywhere, Action::Show(self), NUMBERS[place], tab.title, tab.help, "")
    }
}

views! {
    Overview in overview lays out overview::State,
    Stages in stages,
    Devices in devices,
    Timeline in timeline lays out timeline::State,
    Compare in compare lays out Option<compare::Side>,
    Sweep in sweep,
    Workload in workload lays out usize,
}
