//! List of the views: names, tabs, keys and states, without their behaviour.
//!
//! Tabs, number keys, help, palette, names in session files and the dispatch of actions follow from [`each_view`].

use crate::tui::action::{Action, Entry, Scope, entry};

/// Applies a macro to the list of views: name, folder, and the layout that drawing computes and the view stores.
macro_rules! each_view {
    ($apply:ident) => {
        $apply! {
            Overview in overview lays out super::overview::state::State,
            Stages in stages,
            Devices in devices,
            Timeline in timeline lays out super::timeline::state::State,
            Frontier in frontier,
            Compare in compare lays out Option<super::compare::state::Side>,
            Sweep in sweep,
            Workload in workload lays out usize,
            Hardware in hardware,
            History in history,
        }
    };
}
pub(super) use each_view;

/// Tab of a view.
#[derive(Debug, Clone, Copy)]
pub(in crate::tui) struct Tab {
    /// Title of the tab; in lower case the view's name in session files.
    pub title: &'static str,
    /// Help in one line, also for the palette.
    pub help: &'static str,
    /// Parts of the screen that the view uses.
    pub uses: Uses,
    /// All scopes of its keys, most specific first.
    pub scopes: &'static [Scope],
}

/// Parts of the screen that a view uses.
#[derive(Debug, Clone, Copy)]
pub(in crate::tui) struct Uses {
    /// It shows a plan. Without one, the reason takes its place. Below it the course of the search may be shown.
    pub plan: bool,
    /// It follows the playback of the iteration.
    pub playhead: bool,
    /// It depends on the simulator settings, which the left panel then shows.
    pub simulator: bool,
    /// It shows suggestions.
    pub help: bool,
}

impl Uses {
    /// None of them.
    pub(in crate::tui) const NONE: Uses = Uses { plan: false, playhead: false, simulator: false, help: false };
}

/// Keys of the views, in order. Frontier, for a model to be trained, is in Compare's place: the first in force wins.
const NUMBERS: [&[&str]; 10] = [&["1"], &["2"], &["3"], &["4"], &["5"], &["5"], &["6"], &["7"], &["8"], &["9", "h"]];

/// View for a plan chosen elsewhere, and for suggestions if the current view has no list of them.
pub(in crate::tui) const WITH_PLAN: View = View::Stages;

/// View of the plan's simulation.
pub(in crate::tui) const WITH_TIMELINE: View = View::Timeline;

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
        pub(in crate::tui) struct Views {
            $(pub $folder: super::$folder::state::State,)*
        }

        /// Layouts that drawing computed and the views store.
        #[derive(Debug, Default)]
        pub(in crate::tui) struct Laid {
            $($(pub $folder: Option<$laid>,)?)*
        }

        impl Views {
            /// Stores the layouts.
            pub(in crate::tui) fn laid_out(&mut self, laid: Laid) {
                $($(
                    let laid_out: Option<$laid> = laid.$folder;
                    if let Some(laid_out) = laid_out {
                        self.$folder.laid_out(laid_out);
                    }
                )?)*
            }
        }

        const TABS: [Tab; View::ALL.len()] = [$(super::$folder::keys::TAB),*];

        /// Keys of each view.
        pub(in crate::tui) const KEYS: [&[Entry]; View::ALL.len()] = [$(super::$folder::keys::KEYS),*];

        /// Keys that open the views.
        pub(in crate::tui) const SHOWS: [Entry; View::ALL.len()] = [$(View::$name.shown_by()),*];
    };
}

each_view!(views);

impl View {
    /// Title of the tab.
    pub fn title(self) -> &'static str {
        TABS[self as usize].title
    }

    /// Number of the tab, which is its key.
    pub(in crate::tui) fn number(self) -> &'static str {
        NUMBERS[self as usize][0]
    }

    /// Name in session files and configuration.
    pub(in crate::tui) fn id(self) -> String {
        self.title().to_lowercase()
    }

    /// Parts of the screen that the view uses.
    pub(in crate::tui) fn uses(self) -> Uses {
        TABS[self as usize].uses
    }

    /// All scopes of the view's keys, most specific first.
    pub(in crate::tui) fn scopes(self) -> &'static [Scope] {
        TABS[self as usize].scopes
    }

    /// View in which a scope's keys are most specific, if any.
    pub(in crate::tui) fn of_scope(scope: Scope) -> Option<View> {
        let place = |view: &View| view.scopes().iter().position(|own| *own == scope);
        View::ALL.into_iter().filter(|view| place(view).is_some()).min_by_key(place)
    }

    /// Views with a tab, in the order of their keys. `trained` for a model to be trained, `now` is the view on the screen.
    pub(in crate::tui) fn tabs(trained: bool, now: View) -> Vec<View> {
        let fifth = if trained && now != View::Compare { View::Frontier } else { View::Compare };
        let own = View::ALL.into_iter().filter(|view| *view != View::Frontier && (trained || *view != View::Hardware));
        own.map(|view| if view == View::Compare { fifth } else { view }).collect()
    }

    /// True for a view of models to be trained alone.
    pub(in crate::tui) const fn is_of_models(self) -> bool {
        matches!(self, View::Frontier | View::Hardware)
    }

    const fn shown_by(self) -> Entry {
        let (place, tab) = (self as usize, TABS[self as usize]);
        // Frontier is in Compare's place for a model to be trained.
        let scope = if self.is_of_models() { Scope::Trained } else { Scope::Everywhere };
        entry(scope, Action::Show(self), NUMBERS[place], tab.title, tab.help, "")
    }
}
