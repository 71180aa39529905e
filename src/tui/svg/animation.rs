//! Conversion of several buffers to an animated SVG: CSS switches the frames, without a script.
//!
//! Equal rows of any places or frames are drawn once and referenced, so that small changes need little space. Without
//! animation, or with reduced motion, only the first frame is shown.

use std::{collections::HashMap, fmt::Write, time::Duration};

use ratatui::{
    buffer::{Buffer, Cell},
    layout::Rect,
};

use super::{CELL, SvgStyle, draw_row, escaped, hex};

/// SVG document that plays buffers of one size in a loop, each for its given time.
pub(in crate::tui) fn buffers_to_svg(frames: &[(Buffer, Duration)], style: &SvgStyle) -> String {
    let size = frames.first().map_or(Rect::ZERO, |(buffer, _)| buffer.area);
    let (width, height) = (u32::from(size.width) * CELL.0, u32::from(size.height) * CELL.1);
    let mut rows: HashMap<&[Cell], usize> = HashMap::new();
    let (mut shapes, mut shown) = (String::new(), String::new());
    let mut moments = String::new();
    let whole: Duration = frames.iter().map(|(_, time)| *time).sum();
    let percent = |time: Duration| 100.0 * time.as_secs_f64() / whole.as_secs_f64().max(f64::MIN_POSITIVE);
    let mut begin = Duration::ZERO;
    for (i, (buffer, time)) in frames.iter().enumerate() {
        if i == 0 {
            shown.push_str("<g>\n");
        } else {
            // Writing to a string cannot fail.
            let _ = writeln!(shown, "<g class=\"f\" style=\"animation-name:f{i}\">");
            let (from, to) = (percent(begin), percent(begin + *time));
            let _ = writeln!(
                moments,
                "@keyframes f{i}{{0%{{visibility:hidden}}{from:.2}%{{visibility:visible}}{to:.2}%,100%{{visibility:{}}}}}",
                if i + 1 == frames.len() { "visible" } else { "hidden" },
            );
            let _ = writeln!(shown, "<use href=\"#ground\"/>");
        }
        begin += *time;
        for (y, cells) in buffer.content.chunks(usize::from(size.width).max(1)).enumerate() {
            let next = rows.len();
            let row = *rows.entry(cells).or_insert_with(|| {
                let line = Buffer { area: Rect::new(0, 0, size.width, 1), content: cells.to_vec() };
                let _ = writeln!(shapes, "<g id=\"r{next}\">");
                draw_row(&mut shapes, &line, style, 0);
                shapes.push_str("</g>\n");
                next
            });
            let _ = writeln!(shown, "<use href=\"#r{row}\" y=\"{}\"/>", y as u32 * CELL.1);
        }
        shown.push_str("</g>\n");
    }
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"{family}\" font-size=\"13.2\" xml:space=\"preserve\">\n<title>{title}</title>\n<style>\n\
         .f{{visibility:hidden;animation:{seconds}s step-end infinite}}\n\
         @media(prefers-reduced-motion:reduce){{.f{{animation:none}}}}\n{moments}</style>\n<defs>\n\
         <rect id=\"ground\" width=\"{width}\" height=\"{height}\" fill=\"{ground}\"/>\n{shapes}</defs>\n\
         <use href=\"#ground\"/>\n{shown}</svg>\n",
        family = escaped(&style.font_family),
        title = escaped(&style.title),
        seconds = whole.as_secs_f64(),
        ground = hex(style.background),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_are_alike_are_drawn_once() {
        let frame = |lines: [&str; 2]| (Buffer::with_lines(lines), Duration::from_secs(1));
        let svg = buffers_to_svg(&[frame(["same", "one "]), frame(["same", "two "])], &SvgStyle::dark());
        for text in ["same", "one", "two"] {
            assert_eq!(svg.matches(&format!(">{text}</text>")).count(), 1, "{text} in\n{svg}");
        }
        assert_eq!(svg.matches("<use href=\"#r0\" y=\"0\"/>").count(), 2);
        assert!(svg.contains("@keyframes f1{0%{visibility:hidden}50.00%{visibility:visible}100.00%,100%"), "{svg}");
        assert!(svg.contains("animation:2s step-end infinite"));
    }

    #[test]
    fn no_frames_make_an_empty_picture() {
        assert!(buffers_to_svg(&[], &SvgStyle::light()).contains("viewBox=\"0 0 0 0\""));
    }
}
