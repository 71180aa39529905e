//! Open form: workloads nearby, filtered by the typed name, and the error of the last attempt.

use ratatui::{
    Frame,
    layout::Rect,
    text::{Line, Span},
    widgets::Paragraph,
};

use crate::{
    source::error::printable,
    tui::{
        frame::{help::draw_input, modal},
        model::Model,
        open_form::{Candidate, OpenForm},
        paint::{
            area::{rows, scrolled},
            text::{fit, fit_right, wrap},
        },
        theme::Role,
        widget::scrollbar::scrollbar,
    },
};

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &Model, form: &OpenForm) {
    let theme = &model.appearance.theme;
    let inner = modal(frame, area, theme, "Open a workload", 96, area.height.saturating_sub(4).min(22));
    let width = inner.width as usize;
    draw_input(frame, rows(inner, 0, 1), model, &form.filter, "type a name or a path; Tab completes it");
    let error: Vec<String> = match (&form.error, form.loading) {
        (Some(error), _) => wrap(&format!("✗ {error}"), width),
        (None, true) => vec!["loading …".into()],
        (None, false) => vec![],
    };
    let told: Vec<Line<'_>> = error.iter().map(|l| Line::styled(l.clone(), theme.fg(Role::Bad))).collect();
    let below = (told.len() as u16).min(inner.height / 2);
    frame.render_widget(Paragraph::new(told), rows(inner, inner.height - below, below));
    let list = rows(inner, 2, inner.height.saturating_sub(below + 2));
    let candidates = form.candidates();
    if candidates.is_empty() {
        let text = "no file here has that name";
        frame.render_widget(Span::styled(text, theme.fg(Role::Muted)), rows(list, 0, 1));
    }
    let first = scrolled(form.filter.cursor, list.height as usize, candidates.len());
    for (y, (place, candidate)) in (list.y..list.bottom()).zip(candidates.iter().enumerate().skip(first)) {
        let line = Rect { y, height: 1, ..list };
        let selected = place == form.filter.cursor;
        let name = match candidate {
            Candidate::Listed(i) => printable(&form.names[*i]),
            Candidate::Typed(path) => printable(&path.display().to_string()),
            // The typed line already shows the folder.
            Candidate::Inside(path) => {
                let name = path.file_name().unwrap_or(path.as_os_str());
                printable(&name.to_string_lossy()) + if path.is_dir() { "/" } else { "" }
            }
        };
        let recent = matches!(candidate, Candidate::Listed(i) if *i < form.recent);
        let facts = form.facts(candidate);
        let note = if width >= 60 {
            let kind = if recent { format!("{}, recent", facts.kind) } else { facts.kind.to_string() };
            fit_right(kind.trim_start_matches(", "), 24) + &fit_right(&facts.size, 10) + &fit_right(&facts.age, 12)
        } else {
            fit_right(&facts.size, 10)
        };
        let room = width.saturating_sub(2 + note.chars().count());
        let spans = vec![
            Span::styled(if selected { "▌ " } else { "  " }, theme.fg(Role::Focus)),
            Span::raw(fit(&name, room)),
            Span::styled(note, theme.fg(Role::Muted)),
        ];
        frame.render_widget(Line::from(spans), line);
        if selected {
            frame.buffer_mut().set_style(line, theme.selected());
        }
    }
    scrollbar(frame, list, theme, (first, list.height as usize, candidates.len()));
}
