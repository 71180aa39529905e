//! Stages: a tree from stages to nodes with degrees, time and memory, below a summary of the plan in two lines.
//!
//! ```text
//! objective   how far from the best   throughput   stages, devices
//! limited by stage 3: compute 91%, edges 6%, sync 3%
//!
//!   stage     DP × TP  layers  time/sample               memory, limit 8 GiB
//!                              █compute ▓edges ▒sync
//! ▸ 3           6 × 1      3   ████████▓▒  20.2 ms ◂     ███████▊│  7.9 GiB
//! ```
//! If every stage is one device, there are no degrees, and the rows have the devices' names.

use ratatui::{
    Frame,
    layout::Rect,
    style::Style,
    text::{Line, Span},
    widgets::Paragraph,
};

use super::{
    tree::{self, Columns, RECOMPUTES, VALUE},
    would_help,
};
use crate::{
    family,
    plan::{Plan, Score},
    tui::{
        marks::Marks,
        model::Model,
        paint::{
            area::rows,
            batch,
            facts::Facts,
            load_parts::{legend, load_parts},
            shades::Shades,
            stage_block::Block,
            stage_line,
            summary::{of_edited, summary},
            text::{fit, fit_right},
        },
        shown::ShownRun,
        simulated::Simulated,
        theme::{Role, Theme},
    },
};

pub(in crate::tui) fn draw(
    frame: &mut Frame<'_>,
    area: Rect,
    model: &Model,
    marks: &mut Marks,
    shown: &ShownRun,
    plan: &Plan,
    score: &Score,
) {
    let theme = &model.appearance.theme;
    // The last cell belongs to the scrollbar.
    let columns = Columns::new(usize::from(area.width).saturating_sub(1), shown.names.degrees);
    let shades = Shades::new(theme, model.appearance.depth);
    let look = (theme, &shades);
    let score_as_planned = score;
    let simulated = model.simulation.of(shown).cloned();
    let score = Simulated::loads(simulated.as_deref(), score);
    let paced = simulated.as_ref().is_some_and(|simulated| simulated.paced.is_some());
    marks.tree.prepare((2 * model.planning.generation + u64::from(paced), area.width), || {
        tree::branches(shown, plan, score, columns, look)
    });
    // Lines of the summary, titles, rows, and a blank line after them.
    let needed = 5 + marks.tree.rows() as u16 + 1;
    let selected = marks.tree.selected().first().map_or(0, |&stage| stage as usize);
    let facts = Facts::of(shown, plan, score_as_planned, simulated.as_deref(), selected);
    let hue = Style::new().fg(shades.color(shades.stage(selected, &shown.places)));
    let limit = shown.memory_limit(selected);
    let block = Block { theme, shades: &shades, facts: &facts, hue, limit };
    let told = match area.height >= WITH_BLOCK && area.width >= WIDE {
        true => block.wide_height() + 1,
        // If the block does not fit, show one line of it, once every stage has its row.
        false => u16::from(area.height > needed),
    };
    // The selected stage and the suggestions stand directly below the stages, not at the bottom edge.
    let whole = area;
    let area = rows(area, 0, (needed + told).saturating_add(would_help::MOST));
    batch::draw(frame, rows(whole, area.height + 1, whole.height), (&shades, theme), (simulated.as_deref(), selected));
    let area = would_help::draw(frame, area, model, marks, area.height.saturating_sub(needed + told));
    let lines = if model.edited() {
        of_edited(model, shown, plan, score_as_planned, area.width)
    } else {
        summary(model, shown, plan, score_as_planned, area.width)
    };
    // All facts take a line more where there is room.
    let more = (lines.len() as u16).saturating_sub(3);
    frame.render_widget(Paragraph::new(lines), rows(area, 0, 3 + more));
    let area = rows(area, more, area.height.saturating_sub(more));
    frame.render_widget(titles(shown, plan, score, columns, theme), rows(area, 3, 2));
    let table = rows(area, 5, area.height.saturating_sub(5 + told));
    marks.tree.draw(frame, table, theme);
    if told == 1 {
        let phrases = stage_line::stage(theme, &facts, hue, limit);
        frame.render_widget(stage_line::line(phrases, area.width.into()), rows(area, area.height - 1, 1));
    } else if told > 0 {
        block.draw_wide(frame, rows(area, area.height.saturating_sub(told), told - 1));
    }
}

/// Minimum height and width of a view with figures of the selected stage.
const WITH_BLOCK: u16 = 28;
const WIDE: u16 = 80;

/// Titles over the columns, with a legend of the fills.
fn titles(shown: &ShownRun, plan: &Plan, score: &Score, columns: Columns, theme: &Theme) -> Paragraph<'static> {
    let muted = theme.fg(Role::Muted);
    let time_width = columns.bar + VALUE + 2;
    let slack = if columns.slack > 2 { fit_right("slack", columns.slack) } else { "  ".into() };
    let memory = shown.memory_title();
    let room = columns.bar + VALUE;
    let memory = if memory.len() > room { memory.replace("memory, limit", "mem ≤") } else { memory };
    let memory = if memory.chars().count() > room { fit_right("memory", room) } else { memory };
    let each = format!("time/{}", family::of(&shown.workload).times_of());
    let time = if columns.bar == 0 { fit_right("time", VALUE) } else { fit(&each, time_width - 2) };
    let named = columns.left.saturating_sub(columns.nodes + columns.degrees);
    let noun = format!("{}{}", " ".repeat(named.saturating_sub(shown.names.noun.len()).min(3)), shown.names.noun);
    let degrees = if columns.degrees > 0 { shown.names.degrees_head() } else { "" };
    let first = vec![
        Span::styled(fit(&noun, named), muted),
        Span::styled(fit_right(degrees, columns.degrees), muted),
        Span::styled(fit_right(shown.names.nodes_head(columns.nodes), columns.nodes), muted),
        Span::raw("  "),
        Span::styled(time, muted),
        Span::styled(slack, muted),
        Span::raw(" ".repeat(columns.gap)),
        Span::styled(memory, muted),
    ];
    let recomputes = plan.stages.iter().any(|stage| tree::recomputed(stage) > 0);
    let told =
        if recomputes { format!("     {RECOMPUTES} {} that recompute", shown.names.nodes) } else { String::new() };
    let mut second = vec![Span::styled(fit(&told, columns.left + 2), theme.fg(Role::Muted))];
    second.extend(legend(&load_parts(score), theme, 2 * (columns.bar + VALUE)));
    let second = if columns.bar >= 8 { Line::from(second) } else { Line::default() };
    Paragraph::new(vec![Line::from(first), second])
}
