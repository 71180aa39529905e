//! ASCII mode: every sign that is drawn is replaced by the nearest one of ASCII, after everything was drawn.
//!
//! One pass over the cells instead of a second set of signs in every view: nothing can be forgotten.

use ratatui::buffer::Buffer;

/// Replaces all signs outside ASCII.
pub(super) fn replace(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if !cell.symbol().is_ascii() {
            let sign = nearest(cell.symbol().chars().next().unwrap_or(' '));
            cell.set_char(sign);
        }
    }
}

fn nearest(c: char) -> char {
    match c {
        '─' | '━' | '−' | '–' | '—' => '-',
        '│' | '┃' | '▌' | '▎' | '▍' | '┆' => '|',
        '╭' | '╮' | '╰' | '╯' | '├' | '┤' | '┬' | '┴' | '┼' | '┌' | '┐' | '└' | '┘' => '+',
        '█' | '▉' | '▊' | '▋' | '▇' | '▆' => '#',
        '▓' => '=',
        '┄' => '_',
        '▚' | '╱' => '/',
        '╲' => '\\',
        '╳' => 'X',
        '▒' | '≈' | '…' => '~',
        '░' | '·' | '▁' | '▂' => '.',
        '▏' => ' ',
        '▃' | '▄' | '▅' => ':',
        '▀' => '"',
        '▸' | '→' | '▶' => '>',
        '◂' | '←' | '◀' => '<',
        '▾' | '↓' => 'v',
        '↑' | '⇧' => '^',
        '✓' | '●' | '✔' | '★' => '*',
        '◆' => '+',
        '≠' => '!',
        '▴' | '▲' => '^',
        '▼' => 'v',
        '✗' | '×' | '↔' => 'x',
        '■' => '#',
        '↻' => '@',
        '○' => 'o',
        'µ' | 'μ' => 'u',
        _ => '?',
    }
}
