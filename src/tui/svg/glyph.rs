//! Characters that are drawn as shapes: frames, blocks, shades, braille dots and arrow heads.
//!
//! A run of equal characters is one shape if they join sideways, else one path with a part for each.

use std::fmt::Write;

use super::CELL;

/// Shape with its coordinates.
#[derive(Debug, PartialEq)]
pub(super) struct Shape {
    /// SVG path data.
    path: String,
    paint: Paint,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Paint {
    /// Fill of this opacity, with sharp edges.
    Sharp(f32),
    /// Fill with soft edges.
    Soft,
    /// Stroke of this width.
    Line(f32),
}

impl Shape {
    /// Appends the shape in a colour.
    pub(super) fn draw(&self, svg: &mut String, color: &str) {
        let path = &self.path;
        let _ = match self.paint {
            Paint::Sharp(1.0) => writeln!(svg, "<path d=\"{path}\" fill=\"{color}\" shape-rendering=\"crispEdges\"/>"),
            Paint::Sharp(opacity) => writeln!(svg, "<path d=\"{path}\" fill=\"{color}\" fill-opacity=\"{opacity}\"/>"),
            Paint::Soft => writeln!(svg, "<path d=\"{path}\" fill=\"{color}\"/>"),
            Paint::Line(width) => {
                writeln!(svg, "<path d=\"{path}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"/>")
            }
        };
    }
}

/// Shape of `repeats` equal characters, the first cell's corner at `(x, y)`; `None` for text characters.
pub(super) fn shape(character: char, x: u32, y: u32, repeats: u32) -> Option<Shape> {
    match character {
        '\u{2500}'..='\u{257f}' => Some(frame(character, x, y, repeats)),
        '\u{2580}'..='\u{259f}' => Some(block(character, x, y, repeats)),
        '\u{2800}'..='\u{28ff}' => Some(braille(character, x, y, repeats)),
        _ => sign(character, x, y, repeats),
    }
}

/// Left edges of the cells of a run.
fn columns(x: u32, repeats: u32) -> impl Iterator<Item = u32> {
    (0..repeats).map(move |i| x + i * CELL.0)
}

/// Arms of U+2500 to U+257F, sixteen to a row: up, right, down, left; 0 none, 1 light, 2 heavy, 3 double.
const ARMS: [&str; 8] = [
    "0101 0202 1010 2020 0101 0202 1010 2020 0101 0202 1010 2020 0110 0210 0120 0220",
    "0011 0012 0021 0022 1100 1200 2100 2200 1001 1002 2001 2002 1110 1210 2110 1120",
    "2120 2210 1220 2220 1011 1012 2011 1021 2021 2012 1022 2022 0111 0112 0211 0212",
    "0121 0122 0221 0222 1101 1102 1201 1202 2101 2102 2201 2202 1111 1112 1211 1212",
    "2111 1121 2121 2112 2211 1122 1221 2212 1222 2122 2221 2222 0101 0202 1010 2020",
    "0303 3030 0310 0130 0330 0013 0031 0033 1300 3100 3300 1003 3001 3003 1310 3130",
    "3330 1013 3031 3033 0313 0131 0333 1303 3101 3303 1313 3131 3333 0110 0011 1001",
    "1100 0000 0000 0000 0001 1000 0100 0010 0002 2000 0200 0020 0201 1020 0102 2010",
];

/// Draws lines from the edges of the cell to its middle.
fn frame(character: char, x: u32, y: u32, repeats: u32) -> Shape {
    let index = character as usize - 0x2500;
    let arms: Vec<u8> = ARMS[index / 16].as_bytes()[index % 16 * 5..][..4].iter().map(|digit| digit - b'0').collect();
    let (up, right, down, left) = (arms[0], arms[1], arms[2], arms[3]);
    let (w, h) = CELL;
    let mut path = String::new();
    // A plain horizontal line is one stroke of any length. Dashed lines are drawn solid.
    if (up, down) == (0, 0) && right == left && right != 3 && right != 0 {
        let _ = write!(path, "M{x} {}H{}", y + h / 2, x + repeats * w);
        return Shape { path, paint: Paint::Line(f32::from(right)) };
    }
    for x in columns(x, repeats) {
        let (middle, centre) = (x + w / 2, y + h / 2);
        let (end, bottom) = (x + w, y + h);
        let _ = match character {
            '╭' => write!(path, "M{end} {centre}Q{middle} {centre} {middle} {bottom}"),
            '╮' => write!(path, "M{x} {centre}Q{middle} {centre} {middle} {bottom}"),
            '╯' => write!(path, "M{x} {centre}Q{middle} {centre} {middle} {y}"),
            '╰' => write!(path, "M{end} {centre}Q{middle} {centre} {middle} {y}"),
            '╱' => write!(path, "M{x} {bottom}L{end} {y}"),
            '╲' => write!(path, "M{x} {y}L{end} {bottom}"),
            '╳' => write!(path, "M{x} {bottom}L{end} {y}M{x} {y}L{end} {bottom}"),
            _ => Ok(()),
        };
        if matches!(character, '╭'..='╳') {
            continue;
        }
        // Heavy and double arms are two strokes beside the middle. Double ones extend past it to join at corners.
        let strokes = |arm: u8| match arm {
            0 => &[][..],
            1 => &[0.0],
            2 => &[-0.5, 0.5],
            _ => &[-1.0, 1.0],
        };
        let reach = |arm: u8| u32::from(arm > 1);
        let beside = |middle: u32, offset: &f32| middle as f32 + offset;
        for offset in strokes(up) {
            let _ = write!(path, "M{} {y}V{}", beside(middle, offset), centre + reach(up));
        }
        for offset in strokes(down) {
            let _ = write!(path, "M{} {bottom}V{}", beside(middle, offset), centre - reach(down));
        }
        for offset in strokes(left) {
            let _ = write!(path, "M{x} {}H{}", beside(centre, offset), middle + reach(left));
        }
        for offset in strokes(right) {
            let _ = write!(path, "M{end} {}H{}", beside(centre, offset), middle - reach(right));
        }
    }
    Shape { path, paint: Paint::Line(1.0) }
}

/// Filled parts of a block character (left, top, right, bottom, in eighths of a cell), and the density.
fn filled(character: char) -> (Vec<[u32; 4]>, f32) {
    let code = character as u32;
    let quarters = |mask: u32| {
        let quarter = [[0, 0, 4, 4], [4, 0, 8, 4], [0, 4, 4, 8], [4, 4, 8, 8]];
        (0..4).filter(|i| mask >> i & 1 == 1).map(|i| quarter[i as usize]).collect()
    };
    let one = |part| (vec![part], 1.0);
    match code {
        0x2580 => one([0, 0, 8, 4]),
        0x2581..=0x2588 => one([0, 8 - (code - 0x2580), 8, 8]),
        0x2589..=0x258f => one([0, 0, 0x2590 - code, 8]),
        0x2590 => one([4, 0, 8, 8]),
        0x2591..=0x2593 => (vec![[0, 0, 8, 8]], [0.25, 0.5, 0.75][(code - 0x2591) as usize]),
        0x2594 => one([0, 0, 8, 1]),
        0x2595 => one([7, 0, 8, 8]),
        // Bits: upper left 1, upper right 2, lower left 4, lower right 8.
        _ => (quarters([4, 8, 1, 13, 9, 7, 11, 2, 6, 14][(code - 0x2596).min(9) as usize]), 1.0),
    }
}

fn block(character: char, x: u32, y: u32, repeats: u32) -> Shape {
    let (parts, opacity) = filled(character);
    let (w, h) = (CELL.0 / 8, CELL.1 / 8);
    let mut path = String::new();
    for [left, top, right, bottom] in parts {
        // Blocks of the cell's full width join.
        let (cells, width) = if right - left == 8 { (1, repeats * CELL.0) } else { (repeats, (right - left) * w) };
        for x in columns(x, cells) {
            let (x, y) = (x + left * w, y + top * h);
            let _ = write!(path, "M{x} {y}h{width}v{}H{x}z", (bottom - top) * h);
        }
    }
    Shape { path, paint: Paint::Sharp(opacity) }
}

/// Braille dots, two by four: bits 0 to 2 down the left, 3 to 5 down the right, then the lowest two.
fn braille(character: char, x: u32, y: u32, repeats: u32) -> Shape {
    let bits = character as u32 - 0x2800;
    let place = [(0, 0), (0, 1), (0, 2), (1, 0), (1, 1), (1, 2), (0, 3), (1, 3)];
    let mut path = String::new();
    for x in columns(x, repeats) {
        for (_, (column, row)) in place.iter().enumerate().filter(|(bit, _)| bits >> bit & 1 == 1) {
            let _ = write!(path, "M{} {}h2v2h-2z", x + 1 + column * 4, y + 1 + row * 4);
        }
    }
    Shape { path, paint: Paint::Soft }
}

/// Arrow heads, dots, squares and the marks of a list.
fn sign(character: char, x: u32, y: u32, repeats: u32) -> Option<Shape> {
    let (outline, paint) = match character {
        '▶' | '▸' | '►' => ("m1 4l6 4l-6 4z", Paint::Soft),
        '◀' | '◂' | '◄' => ("m7 4l-6 4l6 4z", Paint::Soft),
        '▲' | '▴' => ("m0 11l4 -6l4 6z", Paint::Soft),
        '▼' | '▾' => ("m0 5l4 6l4 -6z", Paint::Soft),
        '●' | '•' => ("m1 8a3 3 0 1 1 6 0a3 3 0 1 1 -6 0z", Paint::Soft),
        '○' => ("m1 8a3 3 0 1 1 6 0a3 3 0 1 1 -6 0z", Paint::Line(1.0)),
        '■' => ("m1 5h6v6h-6z", Paint::Soft),
        '□' => ("m1 5h6v6h-6z", Paint::Line(1.0)),
        '◆' => ("m4 4l3.5 4l-3.5 4l-3.5 -4z", Paint::Soft),
        '◇' => ("m4 4l3.5 4l-3.5 4l-3.5 -4z", Paint::Line(1.0)),
        '✓' | '✔' => ("m1 8.5l2 3l4 -7", Paint::Line(1.4)),
        '✗' | '✘' | '✕' => ("m1.5 5l5 6m0 -6l-5 6", Paint::Line(1.4)),
        '·' => ("m3 7h2v2h-2z", Paint::Soft),
        _ => return None,
    };
    let path = columns(x, repeats).map(|x| format!("M{x} {y}{outline}")).collect();
    Some(Shape { path, paint })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_and_block_has_a_shape() {
        for code in (0x2500..=0x259f).chain(0x2801..=0x28ff) {
            let character = char::from_u32(code).unwrap();
            let path = shape(character, 16, 32, 2).unwrap().path;
            assert!(path.starts_with('M'), "{character}: {path}");
        }
        assert_eq!(shape('a', 0, 0, 1), None);
    }

    #[test]
    fn blocks_fill_their_share() {
        let area = |character| -> u32 {
            filled(character).0.iter().map(|[left, top, right, bottom]| (right - left) * (bottom - top)).sum()
        };
        for (eighths, character) in (1..=8).zip('▁'..='█') {
            assert_eq!(area(character), eighths * 8);
        }
        for (eighths, character) in (1..=7).rev().zip('▉'..='▏') {
            assert_eq!(area(character), eighths * 8);
        }
        for (character, quarters) in "▖▗▘▙▚▛▜▝▞▟".chars().zip([1, 1, 1, 3, 2, 3, 3, 1, 2, 3]) {
            assert_eq!(area(character), quarters * 16, "{character}");
        }
        assert_eq!(filled('▒'), (vec![[0, 0, 8, 8]], 0.5));
    }

    #[test]
    fn frames_meet_at_the_edges_of_their_cells() {
        assert_eq!(shape('┐', 8, 0, 1).unwrap().path, "M12 16V8M8 8H12");
        assert_eq!(shape('╭', 0, 0, 1).unwrap().path, "M8 8Q4 8 4 16");
        assert_eq!(shape('━', 0, 0, 3).unwrap(), Shape { path: "M0 8H24".into(), paint: Paint::Line(2.0) });
    }
}
