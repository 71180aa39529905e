//! The views, a folder each, and the one list of them.
//!
//! A folder declares what its tab is called (`TAB`), which keys it hears (`KEYS`), what it knows (`State`), and a unit
//! that is a [`Room`]: what the view does with keys and clicks, and how it is drawn. Tabs, the number keys, help, palette,
//! the names in session files and the dispatch of actions all follow from the list at the end of this file. No view knows
//! another; what several draw alike is in [`super::paint`].

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

/// How a view is found.
#[derive(Debug, Clone, Copy)]
pub(super) struct Tab {
    /// As the tab names it; in small letters it is the view's name in session files.
    pub title: &'static str,
    /// In a line what the view shows, for help and palette.
    pub help: &'static str,
}

/// Which of the things around it a view makes use of.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Uses {
    /// It shows a plan: without one, what stands in the way is told in its place, and below it there may be the course of
    /// the search.
    pub plan: bool,
    /// It moves while the batch is played.
    pub playhead: bool,
    /// What it shows depends on how plans are simulated: the left panel has those settings.
    pub simulator: bool,
    /// It tells what would help.
    pub help: bool,
}

/// What a view does. State is in the [`Model`]: of each view its own in [`Views`].
pub(super) trait Room: Sync {
    /// Where keys are heard in it, most special first.
    fn hears(&self) -> &'static [Scope];

    /// Those of them that are in force.
    fn scopes(&self, _: &Model) -> &'static [Scope] {
        self.hears()
    }

    /// Makes ready to hear the keys of a scope; whether it can.
    fn turn_to(&self, _: &mut Model, scope: Scope) -> bool {
        self.hears().contains(&scope)
    }

    /// Scopes whose keys have nothing to do as things are: the bottom line leaves them out.
    fn idle(&self, _: &Model) -> &'static [Scope] {
        &[]
    }

    /// What of the screen around it belongs to it.
    fn uses(&self) -> Uses;

    /// Draws it, and marks where things lie. A view that uses a plan is drawn only while there is one.
    fn draw(&self, frame: &mut Frame<'_>, area: Rect, model: &Model, marks: &mut Marks);

    /// Whether it shows something older than the plan, so that it is drawn without colours.
    fn outdated(&self, _: &Model) -> bool {
        false
    }

    /// It was asked for. Who asks for a view wants to use it.
    fn opened(&self, model: &mut Model) -> Effects {
        model.focus = Focus::View;
        vec![]
    }

    /// Does an action that is for the view.
    fn act(&self, model: &mut Model, action: Action) -> Effects;

    /// A click on something of its own.
    fn click(&self, _: &mut Model, _: Hit, _: Position) -> Effects {
        vec![]
    }

    /// The mouse is moved over something of its own while its button is held.
    fn drag(&self, _: &mut Model, _: Hit, _: Position) {}

    /// The wheel is turned over something of its own; whether that did anything. Else it moves as the arrow keys do.
    fn scroll(&self, _: &mut Model, _: Hit, _down: bool) -> bool {
        false
    }

    /// The tree that is searched and drawn.
    fn tree<'a>(&self, _: &'a mut Model) -> Option<&'a mut TreePane> {
        None
    }

    /// Leaves what is open in it or under way for it, before anything else that is left by the same key; whether there was
    /// such a thing.
    fn leave(&self, _: &mut Model) -> bool {
        false
    }

    /// Leaves what is left last; whether there was such a thing.
    fn leave_last(&self, _: &mut Model) -> bool {
        false
    }

    /// The row that an edit of the plan is about: the stage, then places within it. Empty where none is chosen.
    fn edited_row(&self, _: &Model) -> Vec<u32> {
        vec![]
    }

    /// The playhead was put elsewhere in a batch of so many seconds: brings it into sight.
    fn seek(&self, _: &mut Model, _batch_s: f64) {}

    /// The plan was edited: keeps what was edited under the cursor.
    fn follow(&self, _: &mut Model, _: &Edit) {}

    /// Another plan is shown.
    fn plan_changed(&self, _: &mut Model) {}

    /// The timeline of the plan is there.
    fn simulated(&self, _: &mut Model, _: &Simulated) {}

    /// Forgets what belongs to the last workload's plans.
    fn forget(&self, _: &mut Model) {}
}

/// Keys of the views, in their order.
const NUMBERS: [&[&str]; 9] = [&["1"], &["2"], &["3"], &["4"], &["5"], &["6"], &["7"], &["8"], &["9"]];

/// Where a plan is shown that was chosen elsewhere, and what would help where the view in front has no list of it.
pub(super) const WITH_PLAN: View = View::Stages;

/// Where it is seen how the plan is simulated.
pub(super) const WITH_TIMELINE: View = View::Timeline;

macro_rules! views {
    ($($name:ident in $folder:ident $(lays out $laid:ty)?,)*) => {
        /// One of the views.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs, reason = "each folder says what its view shows")]
        pub enum View {
            $($name,)*
        }

        impl View {
            /// All views, in the order of their keys.
            pub const ALL: [View; [$(View::$name),*].len()] = [$(View::$name),*];
        }

        /// What each view knows.
        #[derive(Debug, Default)]
        pub(super) struct Views {
            $(pub $folder: $folder::State,)*
        }

        /// What drawing a view laid out and its state keeps.
        #[derive(Debug, Default)]
        pub(super) struct Laid {
            $($(pub $folder: Option<$laid>,)?)*
        }

        impl Views {
            /// Keeps what drawing laid out.
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

        /// The keys of each view.
        pub(super) const KEYS: [&[Entry]; View::ALL.len()] = [$($folder::KEYS),*];

        /// The keys that lead to the views.
        pub(super) const SHOWS: [Entry; View::ALL.len()] = [$(View::$name.shown_by()),*];
    };
}

impl View {
    /// As the tab names it.
    pub fn title(self) -> &'static str {
        TABS[self as usize].title
    }

    /// As session files and configuration name it.
    pub(super) fn id(self) -> String {
        self.title().to_lowercase()
    }

    /// What it does.
    pub(super) fn room(self) -> &'static dyn Room {
        ROOMS[self as usize]
    }

    /// The view in which the keys of a scope are heard most specially, if there is one.
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
