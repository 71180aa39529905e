//! ASCII mode: replaces every drawn sign by a similar ASCII one after drawing.
//!
//! One pass over the cells covers every view, so no view needs a second set of signs.

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

/// Replaces signs that the font of the Linux console lacks by similar ones of code page 437.
pub(super) fn replace_for_console(buffer: &mut Buffer) {
    for cell in &mut buffer.content {
        if let Some(sign) = cell.symbol().chars().next().and_then(in_code_page_437) {
            cell.set_char(sign);
        }
    }
}

/// Replacement of a sign that is not in code page 437; `None` if the sign needs none.
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
        // Chosen and unchosen items must stay distinct.
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
        // Braille patterns draw lines of dots.
        '\u{2801}'..='\u{28ff}' => '·',
        '\u{2800}' => ' ',
        _ => return None,
    })
}

fn nearest(c: char) -> char {
    match c {
        '─' | '━' | '−' | '–' | '—' => '-',
        '│' | '┃' | '▌' | '▐' | '▎' | '▍' | '┆' => '|',
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
