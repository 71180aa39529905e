//! Conversion of a ratatui buffer to an SVG picture.
//!
//! A run of cells with the same look becomes one element. Box-drawing, block, braille and arrow-head characters are
//! drawn as shapes (`svg/glyph.rs`). Other characters are text of a prescribed width, so that the grid does not depend
//! on the fonts. `O(cells)`.
//!
//! A cell is 8 by 16 units: each eighth of a block character falls on a whole unit, so rectangles meet without seams.

mod animation;
mod glyph;

use std::fmt::Write;

use ratatui::{
    buffer::{Buffer, Cell},
    style::{Color, Modifier},
};
use unicode_width::UnicodeWidthStr;

use crate::export::xml::escaped;

pub(super) use animation::buffers_to_svg;

/// Width and height of a cell, in units of the picture.
const CELL: (u32, u32) = (8, 16);
/// Distance from the top of a cell to the text's baseline.
const BASELINE: u32 = 12;

/// Red, green and blue.
type Rgb = (u8, u8, u8);

/// Properties of a picture that the buffer does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SvgStyle {
    /// Foreground for the terminal's default colour.
    pub(super) foreground: Rgb,
    /// Background for the terminal's default colour.
    pub(super) background: Rgb,
    /// The sixteen named colours, black to bright white.
    pub(super) palette: [Rgb; 16],
    /// Font families in CSS syntax; all of fixed width.
    pub(super) font_family: String,
    /// Title, for screen readers.
    pub(super) title: String,
}

impl SvgStyle {
    /// Light text on a dark background.
    pub(super) fn dark() -> Self {
        SvgStyle {
            foreground: (0xd6, 0xd9, 0xe0),
            background: (0x16, 0x18, 0x1d),
            palette: [
                (0x16, 0x18, 0x1d),
                (0xe0, 0x5f, 0x65),
                (0x78, 0xb8, 0x6b),
                (0xd9, 0xa6, 0x4e),
                (0x5c, 0x98, 0xe0),
                (0xb7, 0x7c, 0xd6),
                (0x4f, 0xb3, 0xb8),
                (0xc4, 0xc8, 0xd0),
                (0x6c, 0x72, 0x80),
                (0xf2, 0x80, 0x84),
                (0x98, 0xd4, 0x8a),
                (0xf0, 0xc3, 0x72),
                (0x85, 0xb6, 0xf5),
                (0xd1, 0x9d, 0xec),
                (0x77, 0xd0, 0xd4),
                (0xff, 0xff, 0xff),
            ],
            font_family: "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace".into(),
            title: "plantui".into(),
        }
    }

    /// Dark text on a light background.
    pub(super) fn light() -> Self {
        SvgStyle {
            foreground: (0x24, 0x29, 0x2f),
            background: (0xff, 0xff, 0xff),
            palette: [
                (0x24, 0x29, 0x2f),
                (0xb4, 0x2a, 0x30),
                (0x2c, 0x74, 0x36),
                (0x8a, 0x5a, 0x00),
                (0x1f, 0x5f, 0xb8),
                (0x80, 0x3f, 0xa8),
                (0x14, 0x74, 0x7c),
                (0x6a, 0x71, 0x7c),
                (0x57, 0x5e, 0x69),
                (0xd0, 0x40, 0x46),
                (0x3a, 0x90, 0x46),
                (0xa8, 0x72, 0x10),
                (0x3a, 0x7c, 0xd8),
                (0x9c, 0x5a, 0xc4),
                (0x20, 0x90, 0x9a),
                (0xff, 0xff, 0xff),
            ],
            ..SvgStyle::dark()
        }
    }

    /// RGB of a colour; `own` replaces the terminal's default.
    fn rgb(&self, color: Color, own: Rgb) -> Rgb {
        match color {
            Color::Reset => own,
            Color::Black => self.palette[0],
            Color::Red => self.palette[1],
            Color::Green => self.palette[2],
            Color::Yellow => self.palette[3],
            Color::Blue => self.palette[4],
            Color::Magenta => self.palette[5],
            Color::Cyan => self.palette[6],
            Color::Gray => self.palette[7],
            Color::DarkGray => self.palette[8],
            Color::LightRed => self.palette[9],
            Color::LightGreen => self.palette[10],
            Color::LightYellow => self.palette[11],
            Color::LightBlue => self.palette[12],
            Color::LightMagenta => self.palette[13],
            Color::LightCyan => self.palette[14],
            Color::White => self.palette[15],
            Color::Rgb(r, g, b) => (r, g, b),
            Color::Indexed(index) => self.indexed(index),
        }
    }

    /// RGB of xterm's 256 colours: the palette, a cube of 6 x 6 x 6, and 24 greys.
    fn indexed(&self, index: u8) -> Rgb {
        let level = |step: u8| if step == 0 { 0 } else { 55 + 40 * step };
        match index {
            0..16 => self.palette[index as usize],
            16..232 => {
                let cube = index - 16;
                (level(cube / 36), level(cube / 6 % 6), level(cube % 6))
            }
            232.. => {
                let grey = 8 + 10 * (index - 232);
                (grey, grey, grey)
            }
        }
    }
}

impl Default for SvgStyle {
    fn default() -> Self {
        SvgStyle::dark()
    }
}

/// Look of a cell, without its character.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Look {
    ink: Rgb,
    ground: Rgb,
    bold: bool,
    italic: bool,
    underlined: Option<Rgb>,
    crossed_out: bool,
}

impl Look {
    fn of(cell: &Cell, style: &SvgStyle) -> Self {
        let has = |modifier| cell.modifier.contains(modifier);
        let mut ink = style.rgb(cell.fg, style.foreground);
        let mut ground = style.rgb(cell.bg, style.background);
        if has(Modifier::REVERSED) {
            std::mem::swap(&mut ink, &mut ground);
        }
        if has(Modifier::DIM) {
            let mix = |a: u8, b: u8| ((u16::from(a) * 3 + u16::from(b) * 2) / 5) as u8;
            ink = (mix(ink.0, ground.0), mix(ink.1, ground.1), mix(ink.2, ground.2));
        }
        if has(Modifier::HIDDEN) {
            ink = ground;
        }
        Look {
            ink,
            ground,
            bold: has(Modifier::BOLD),
            italic: has(Modifier::ITALIC),
            underlined: has(Modifier::UNDERLINED).then(|| style.rgb(cell.underline_color, ink)),
            crossed_out: has(Modifier::CROSSED_OUT),
        }
    }
}

/// Colour as `#rrggbb`.
fn hex((r, g, b): Rgb) -> String {
    format!("#{r:02x}{g:02x}{b:02x}")
}

/// Converts the buffer to a whole SVG document, ending in a newline.
pub(super) fn buffer_to_svg(buffer: &Buffer, style: &SvgStyle) -> String {
    let (columns, rows) = (u32::from(buffer.area.width), u32::from(buffer.area.height));
    let (width, height) = (columns * CELL.0, rows * CELL.1);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"{family}\" font-size=\"13.2\" xml:space=\"preserve\">\n<title>{title}</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"{ground}\"/>\n",
        family = escaped(&style.font_family),
        title = escaped(&style.title),
        ground = hex(style.background),
    );
    for row in 0..rows {
        draw_row(&mut svg, buffer, style, row as u16);
    }
    svg.push_str("</svg>\n");
    svg
}

/// Draws one row: backgrounds first, then characters.
fn draw_row(svg: &mut String, buffer: &Buffer, style: &SvgStyle, row: u16) {
    let area = buffer.area;
    let cells: Vec<(&Cell, Look)> = (0..area.width)
        .map(|column| &buffer[(area.x + column, area.y + row)])
        .map(|cell| (cell, Look::of(cell, style)))
        .collect();
    let top = u32::from(row) * CELL.1;
    for (start, end) in runs(&cells, |a, b| a.1.ground == b.1.ground) {
        let ground = cells[start].1.ground;
        if ground != style.background {
            rectangle(svg, start, end, top, CELL.1, ground);
        }
    }
    for (start, end) in runs(&cells, |a, b| a.1 == b.1) {
        let look = cells[start].1;
        if let Some(color) = look.underlined {
            rectangle(svg, start, end, top + 14, 1, color);
        }
        if look.crossed_out {
            rectangle(svg, start, end, top + 8, 1, look.ink);
        }
        draw_run(svg, &cells[start..end], start, top, look);
    }
}

/// Splits a row into the longest runs `start..end` of equal cells.
fn runs<T>(cells: &[T], alike: impl Fn(&T, &T) -> bool) -> Vec<(usize, usize)> {
    let mut runs = vec![];
    let mut start = 0;
    for end in 1..=cells.len() {
        if end == cells.len() || !alike(&cells[start], &cells[end]) {
            runs.push((start, end));
            start = end;
        }
    }
    runs
}

fn rectangle(svg: &mut String, start: usize, end: usize, y: u32, height: u32, color: Rgb) {
    let (x, width) = (start as u32 * CELL.0, (end - start) as u32 * CELL.0);
    let _ = writeln!(svg, "<rect x=\"{x}\" y=\"{y}\" width=\"{width}\" height=\"{height}\" fill=\"{}\"/>", hex(color));
}

/// Draws the characters of a run of cells with the same look: words as text, drawn characters as shapes.
fn draw_run(svg: &mut String, cells: &[(&Cell, Look)], first: usize, top: u32, look: Look) {
    let mut column = 0;
    while column < cells.len() {
        let symbol = cells[column].0.symbol();
        if symbol.trim().is_empty() {
            column += 1;
            continue;
        }
        let x = (first + column) as u32 * CELL.0;
        let repeats = cells[column..].iter().take_while(|(cell, _)| cell.symbol() == symbol).count();
        let mut characters = symbol.chars();
        if let (Some(character), None) = (characters.next(), characters.next())
            && let Some(shape) = glyph::shape(character, x, top, repeats as u32)
        {
            shape.draw(svg, &hex(look.ink));
            column += repeats;
        } else if symbol.is_ascii() {
            // A word ends at two spaces, or at the first character outside ASCII.
            let plain = cells[column..].iter().take_while(|(cell, _)| cell.symbol().is_ascii()).count();
            let text: String = cells[column..column + plain].iter().map(|(cell, _)| cell.symbol()).collect();
            let text = text.split("  ").next().unwrap_or_default().trim_end();
            draw_text(svg, text, text.len() as u32, x, top, look);
            column += text.len().max(1);
        } else {
            let width = symbol.width().max(1);
            draw_text(svg, symbol, width as u32, x, top, look);
            column += width;
        }
    }
}

fn draw_text(svg: &mut String, text: &str, columns: u32, x: u32, top: u32, look: Look) {
    let weight = if look.bold { " font-weight=\"bold\"" } else { "" };
    let slant = if look.italic { " font-style=\"italic\"" } else { "" };
    // Do not stretch a single character: the width of signs depends on the font.
    let length = if text.chars().count() > 1 {
        format!(" textLength=\"{}\" lengthAdjust=\"spacingAndGlyphs\"", columns * CELL.0)
    } else {
        String::new()
    };
    let (y, fill, text) = (top + BASELINE, hex(look.ink), escaped(text));
    let _ = writeln!(svg, "<text x=\"{x}\" y=\"{y}\" fill=\"{fill}\"{weight}{slant}{length}>{text}</text>");
}

#[cfg(test)]
mod tests {
    use super::*;
    use ratatui::style::Style;

    fn drawn(lines: &[&str]) -> String {
        buffer_to_svg(&Buffer::with_lines(lines.iter().copied()), &SvgStyle::dark())
    }

    #[test]
    fn equal_cells_are_one_element() {
        let svg = drawn(&["████████", "────────", "two words  and more"]);
        assert_eq!(svg.matches("<path").count(), 2, "{svg}");
        assert!(svg.contains("M0 0h64v16H0z") && svg.contains("M0 24H64"), "{svg}");
        assert!(svg.contains(">two words</text>") && svg.contains("x=\"88\"") && svg.contains(">and more</text>"));
    }

    #[test]
    fn text_is_escaped_and_kept_on_the_grid() {
        let svg = drawn(&["a<b&c \"x\""]);
        assert!(svg.contains("a&lt;b&amp;c &quot;x&quot;") && svg.contains("textLength=\"72\""), "{svg}");
    }

    #[test]
    fn colours_and_modifiers_show() {
        let mut buffer = Buffer::with_lines(["abcdef"]);
        let mut set = |x: u16, style: Style| {
            buffer[(x, 0)].set_style(style);
        };
        set(0, Style::new().fg(Color::Rgb(1, 2, 3)).add_modifier(Modifier::BOLD));
        set(1, Style::new().fg(Color::Indexed(196)));
        set(2, Style::new().bg(Color::Indexed(244)));
        set(3, Style::new().add_modifier(Modifier::REVERSED));
        set(4, Style::new().fg(Color::Red).add_modifier(Modifier::UNDERLINED));
        let svg = buffer_to_svg(&buffer, &SvgStyle::dark());
        for part in ["fill=\"#010203\" font-weight=\"bold\"", "#ff0000", "#808080", "y=\"14\" width=\"8\" height=\"1\""]
        {
            assert!(svg.contains(part), "{part} in {svg}");
        }
        let ground = hex(SvgStyle::dark().foreground);
        assert!(
            svg.contains(&format!("<rect x=\"24\" y=\"0\" width=\"8\" height=\"16\" fill=\"{ground}\"/>")),
            "{svg}"
        );
    }

    #[test]
    fn wide_characters_take_two_cells_and_control_characters_none() {
        let svg = drawn(&["漢字x"]);
        assert!(svg.contains("<text x=\"0\"") && svg.contains("<text x=\"16\"") && svg.contains("<text x=\"32\""));
        assert_eq!(escaped("a\u{1b}b\u{ffff}"), "ab");
    }

    #[test]
    fn no_cell_at_all_is_still_a_picture() {
        let svg = buffer_to_svg(&Buffer::empty(ratatui::layout::Rect::ZERO), &SvgStyle::light());
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>\n"));
    }
}
