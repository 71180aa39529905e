//! Drawing of a timeline as text, one row for each stage, as papers draw schedules.
//!
//! A column is as long as the shortest pass if the drawing then fits, else a fixed share of the iteration. Each cell
//! shows what runs in the middle of its column. `O(columns · stages · log events)`.

use plantui_core::{
    simulate::{Event, EventKind, Timeline},
    units,
};

/// Columns of a drawing whose passes have no common length.
const COLUMNS: usize = 120;
/// Most columns of any drawing.
const MOST_COLUMNS: usize = 160;

/// Rows of the first replica of every stage, and a legend.
///
/// # Errors
/// A sentence if the batch is too long to be drawn.
pub fn text(timeline: &Timeline) -> Result<String, String> {
    if timeline.left_out.is_some() {
        return Err("the batch is too long to draw: give fewer --microbatches".into());
    }
    let computes = |event: &&Event| event.kind.lane() == 0 && event.end_s > event.start_s;
    let shortest =
        timeline.events.iter().filter(computes).map(|event| event.end_s - event.start_s).fold(f64::INFINITY, f64::min);
    let exact = (timeline.iteration_s / shortest).round() as usize;
    let columns = if (1..=MOST_COLUMNS).contains(&exact) { exact } else { COLUMNS };
    let width = timeline.iteration_s / columns as f64;
    let stages = timeline.replicas.len();
    let label = stages.to_string().len();
    let mut text = String::new();
    for stage in 0..stages {
        let row: Vec<&Event> = timeline.row(stage, 0).iter().filter(computes).collect();
        let cell = |column: usize| {
            let time = (column as f64 + 0.5) * width;
            let at = row.partition_point(|event| event.end_s <= time);
            row.get(at).filter(|event| event.start_s <= time).map_or(' ', |event| sign(event))
        };
        let cells: String = (0..columns).map(cell).collect();
        text += &format!("{:>label$} |{}\n", stage + 1, cells.trim_end());
    }
    let parts = timeline.events.iter().any(|event| event.part > 0);
    let second = if parts { ", of later parts ₀–₉ and A–J" } else { "" };
    let weights = if timeline.events.iter().any(|event| event.kind == EventKind::WeightGradient) {
        "; gradients of weights ·"
    } else {
        ""
    };
    text += &format!(
        "a column is {}; forward passes 0–9, backward passes a–j by microbatch{second}{weights}\n",
        units::seconds(width)
    );
    Ok(text)
}

/// Sign of a pass: the last digit of its microbatch, as a digit or a letter.
fn sign(event: &Event) -> char {
    let digit = event.microbatch % 10;
    let from = |first: char| char::from_u32(first as u32 + digit).unwrap_or('?');
    match (event.kind, event.part) {
        (EventKind::Forward, 0) => from('0'),
        (EventKind::Forward, _) => from('₀'),
        (EventKind::Backward, 0) => from('a'),
        (EventKind::Backward, _) => from('A'),
        (EventKind::WeightGradient, _) => '·',
        (EventKind::Recompute, _) => 'r',
        _ => 'o',
    }
}

#[cfg(test)]
mod tests {
    use plantui_core::{
        plan::Schedule,
        simulate::{Pipeline, PipelineStage, simulate},
    };

    #[test]
    fn passes_are_drawn_where_they_run() {
        let stage = PipelineStage { forward_s: 1.0, backward_s: 2.0, replicas: 1, ..PipelineStage::default() };
        let transfer = plantui_core::simulate::Transfer { from: 0, to: 1, seconds: 0.0, bytes: 0.0 };
        let pipeline =
            Pipeline { stages: vec![stage; 2], transfers: vec![transfer], microbatches: 3, ..Pipeline::default() };
        let drawn = super::text(&simulate(&pipeline, Schedule::OneForwardOneBackward)).unwrap();
        let rows: Vec<&str> = drawn.lines().collect();
        assert_eq!(rows[0], "1 |01  aa2bb cc");
        assert_eq!(rows[1], "2 | 0aa1bb2cc");
        assert!(rows[2].starts_with("a column is 1.000 s; "), "{drawn}");
        let long = Pipeline { microbatches: 500_000, ..pipeline };
        let error = super::text(&simulate(&long, Schedule::OneForwardOneBackward)).unwrap_err();
        assert!(error.contains("too long to draw"), "{error}");
    }
}
