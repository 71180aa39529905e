//! What of the network is listed, and where one is in it.

use crate::tui::{model::Model, widget::tree::TreePane};

/// State of the view.
#[derive(Debug, Default)]
pub(in crate::tui) struct State {
    /// What is listed.
    pub section: Section,
    /// The nodes.
    pub nodes: TreePane,
    /// Selected or first row of the other sections.
    pub cursor: usize,
}

impl State {
    /// Keeps the first line that a text was drawn from: it ends at the lower edge.
    pub(in crate::tui) fn laid_out(&mut self, first: usize) {
        self.cursor = first;
    }
}

/// What is listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(in crate::tui) enum Section {
    /// The nodes, runs of like ones folded.
    #[default]
    Nodes,
    /// The edges with what crosses them.
    Edges,
    /// What may mislead a planner, worst first.
    Findings,
    /// Where the file came from and what it assumes.
    About,
}

impl Section {
    pub(super) const ALL: [Section; 4] = [Section::Nodes, Section::Edges, Section::Findings, Section::About];

    /// The one after it, going round.
    pub(crate) fn next(self) -> Self {
        let at = Section::ALL.iter().position(|s| *s == self).unwrap_or(0);
        Section::ALL[(at + 1) % Section::ALL.len()]
    }
}

/// More lines than any text here has.
const TEXT_LINES: usize = 1 << 20;

impl Model {
    /// Rows of the section, where it is a plain list.
    pub(crate) fn section_rows(&self) -> usize {
        match self.views.workload.section {
            Section::Nodes => 0,
            Section::Edges => self.workload.dag.edges().len(),
            // Texts scroll by line; how many lines there are depends on the width, and drawing stops at the end.
            Section::Findings | Section::About => TEXT_LINES,
        }
    }
}
