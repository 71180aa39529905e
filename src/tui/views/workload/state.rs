//! State of the Workload view: section and position.

use crate::tui::widget::tree::TreePane;

/// State of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct State {
    /// Section on the screen.
    pub section: Section,
    /// Tree of nodes.
    pub nodes: TreePane,
    /// Selected or first row of the other sections.
    pub cursor: usize,
}

impl State {
    /// Stores the first drawn line of a text, which stops at the end of the text.
    pub(in crate::tui) fn laid_out(&mut self, first: usize) {
        self.cursor = first;
    }
}

/// Section of the view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::tui) enum Section {
    /// Nodes, with runs of equal ones folded.
    #[default]
    Nodes,
    /// Edges with their traffic.
    Edges,
    /// Findings that may mislead a planner, worst first.
    Findings,
    /// Provenance of the file, and its assumptions.
    About,
}

impl Section {
    pub(super) const ALL: [Section; 4] = [Section::Nodes, Section::Edges, Section::Findings, Section::About];

    /// Next section, cyclically.
    pub(crate) fn next(self) -> Self {
        let at = Section::ALL.iter().position(|s| *s == self).unwrap_or(0);
        Section::ALL[(at + 1) % Section::ALL.len()]
    }
}
