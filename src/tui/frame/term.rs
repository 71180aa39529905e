//! Definition of a word at the top of the help: of the field under the left panel's cursor, or of the search text.

use ratatui::text::{Line, Span};

use crate::{
    terms::{self, Term},
    tui::{
        model::{Focus, Model},
        paint::text::wrap,
        panel_rows::PanelRow,
        theme::Role,
        widget::filter::Filter,
    },
};

/// Minimum length of a search text for definitions, characters.
const LEAST: usize = 3;
/// Maximum number of definitions of a search.
const MOST: usize = 2;

/// Lines of the definitions, wrapped to a width; empty if there is no such word.
pub(super) fn lines(model: &Model, filter: &Filter, width: usize) -> Vec<Line<'static>> {
    let typed = filter.input.value().trim();
    let terms: Vec<&Term> = if typed.is_empty() {
        field(model).and_then(terms::find).into_iter().collect()
    } else if typed.chars().count() >= LEAST {
        let typed = typed.to_lowercase();
        let named = |term: &&Term| {
            std::iter::once(&term.name).chain(term.also).any(|name| name.to_lowercase().starts_with(&typed))
        };
        terms::all().filter(named).take(MOST).collect()
    } else {
        vec![]
    };
    let theme = &model.appearance.theme;
    let mut lines = vec![];
    for term in terms {
        lines.push(Line::styled(term.name, theme.bold(Role::Text)));
        let text = wrap(term.text, width.saturating_sub(2).min(100));
        lines.extend(text.into_iter().map(|text| Line::raw(format!("  {text}"))));
        let picture = term.picture.lines().filter(|line| line.chars().count() + 2 <= width);
        lines.extend(picture.map(|line| Line::from(Span::styled(format!("  {line}"), theme.fg(Role::Muted)))));
        lines.push(Line::default());
    }
    lines
}

/// Name of the field under the left panel's cursor, while the panel has the focus.
fn field(model: &Model) -> Option<&str> {
    if model.focus != Focus::Panel {
        return None;
    }
    Some(match model.panel_row()? {
        PanelRow::Planner(planner) => model.session.planners[planner].info().name,
        PanelRow::Limit(kind) => kind.label(),
        PanelRow::Dial(i) => &model.session.dials[i].label,
        PanelRow::Option(i) => model.session.specs()[i].label,
        PanelRow::Schedule => model.simulation.setup.schedule.name(),
        PanelRow::Setting(setting) => setting.label(),
        PanelRow::Others => return None,
    })
}
