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

/// Replaces the signs that the font of the Linux console lacks by those of code page 437 that come nearest.
pub(super) fn replace_for_console(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some(sign) = cell.symbol().chars().next().and_then(in_code_page_437) {
            cell.set_char(sign);
        }
    }
}

/// What stands for a sign that is not in code page 437; `None` where the sign is.
fn in_code_page_437(c: char) -> Option<char> {
    Some(match c {
        '╭' | '╮' | '╰' | '╯' | '┆' | '┄' | '━' | '┃' => match c {
            '╭' => '┌',
            '╮' => '┐',
            '╰' => '└',
            '╯' => '┘',
            '┆' | '┃' => '│',
            _ => '─',
        },
        '●' | '◆' | '◇' => '•',
        // What is chosen is told from what is not.
        '○' => 'o',
        '▸' | '▶' => '►',
        '◂' | '◀' => '◄',
        '▴' | '△' => '▲',
        '▾' => '▼',
        '□' => '■',
        '↻' => '@',
        '✓' | '✔' => '√',
        '✗' | '×' => 'x',
        '★' => '*',
        '≠' => '!',
        '…' => '~',
        '–' | '—' | '−' => '-',
        '▁' | '▂' | '▃' | '▖' | '▗' | '▅' => '▄',
        '▆' | '▇' | '▉' | '▊' => '█',
        '▋' | '▍' | '▎' | '▏' => '▌',
        '▕' => '▐',
        '▘' | '▝' => '▀',
        '▚' | '▞' => '▒',
        '╱' => '/',
        '╲' => '\\',
        '⇧' => '^',
        '▔' => '▀',
        // Braille: lines of dots.
        '\u{2801}'..='\u{28ff}' => '·',
        '\u{2800}' => ' ',
        _ => return None,
    })
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
        '▔' => '-',
        '▘' | '▝' => '.',
        '≥' => '>',
        '≤' => '<',
        '↻' => '@',
        '○' => 'o',
        '\u{2800}' => ' ',
        '\u{2801}'..='\u{28ff}' => '.',
        '▖' | '▗' | '▕' => '.',
        '⚑' => '!',
        'µ' | 'μ' => 'u',
        _ => '?',
    }
}
