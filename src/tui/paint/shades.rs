//! Computed colours: hues of stages on the colour wheel, mixes of activities, dimming by load.
//!
//! Colours are mixed in OKLab, whose distances match perception (Ottosson 2020). The hue of a stage is the place of its
//! first layer in the network. The lightness of many stages alternates, so that neighbours differ even without colour
//! vision. Themes other than `dark` and `light` have a list of hues of their own.
//! With sixteen colours the larger weight wins instead of a mix; without colours nothing is coloured. Every function is
//! `O(1)` except the search of 256 colours.

use std::sync::OnceLock;

use ratatui::style::Color;

use crate::tui::{
    inks::contrast,
    theme::{Depth, Role, Theme},
};

/// Red, green and blue.
pub(in crate::tui) type Rgb = (u8, u8, u8);

/// Lightness and the two axes of OKLab.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Lab(f64, f64, f64);

/// Activity of a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Activity {
    /// Forward passes.
    Forward,
    /// Recomputation of activations.
    Recompute,
    /// Backward passes.
    Backward,
    /// All-reduce and transfers.
    Communication,
    /// Step of the optimizer, and overhead.
    Step,
}

impl Activity {
    /// All activities, in the order of a stacked bar.
    pub(in crate::tui) const ALL: [Activity; 5] =
        [Activity::Forward, Activity::Recompute, Activity::Backward, Activity::Communication, Activity::Step];

    /// Fill that distinguishes it without colour.
    pub(in crate::tui) fn fill(self) -> &'static str {
        match self {
            Activity::Forward => "▒",
            Activity::Recompute => "░",
            Activity::Backward => "▓",
            Activity::Communication => "█",
            Activity::Step => "▚",
        }
    }
}

/// Part of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::tui) enum Memory {
    /// Weights, or all training state if it is not split.
    State,
    /// Activations in flight.
    Activations,
    /// Memory of one microbatch at a time.
    Buffers,
}

/// Colour that can still be mixed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::tui) struct Shade {
    lab: Option<Lab>,
    /// Colour on a terminal with sixteen colours or none.
    named: Color,
}

/// Colours of a theme on a terminal.
#[derive(Debug, Clone)]
pub(in crate::tui) struct Shades {
    depth: Depth,
    light: bool,
    wheel: bool,
    ground: Lab,
    own: Vec<Shade>,
    activities: [Shade; 5],
    memory: [Shade; 3],
    track: Shade,
    text: Color,
}

impl Shades {
    /// Colours of a theme.
    pub(in crate::tui) fn new(theme: &Theme, depth: Depth) -> Shades {
        let light = theme.is_light();
        let coloured = theme.color(Role::Text) != Color::Reset;
        let depth = if coloured { depth } else { Depth::None };
        let mixes = matches!(depth, Depth::True | Depth::Indexed);
        let wheel = matches!(theme.name.as_str(), "dark" | "light");
        let ground = theme.base().bg.and_then(rgb_of).unwrap_or(if light { LIGHT.ground } else { DARK.ground });
        let set = if light { &LIGHT } else { &DARK };
        let shade = |rgb: Rgb, named: Color| Shade { lab: mixes.then(|| lab(rgb)), named };
        let of_theme = |role: Role| {
            let color = theme.color(role);
            Shade { lab: rgb_of(color).filter(|_| mixes).map(lab), named: color }
        };
        let roles = [Role::Forward, Role::Recompute, Role::Backward, Role::Communication, Role::Step];
        let activities = if wheel {
            [0, 1, 2, 3, 4].map(|i| shade(set.activities[i], theme.color(roles[i])))
        } else {
            roles.map(of_theme)
        };
        let parts = [Role::State, Role::Activations, Role::Buffers];
        let memory =
            if wheel { [0, 1, 2].map(|i| shade(set.memory[i], theme.color(parts[i]))) } else { parts.map(of_theme) };
        let own = (0..LIST).map(|i| theme.stage(i).fg.unwrap_or(Color::Reset));
        let own = own.map(|color| Shade { lab: rgb_of(color).filter(|_| mixes).map(lab), named: color }).collect();
        let track = shade(set.track, Color::Reset);
        Shades {
            depth,
            light,
            wheel: wheel && mixes,
            ground: lab(ground),
            own,
            activities,
            memory,
            track,
            text: theme.color(Role::Text),
        }
    }

    /// True if colours can be mixed.
    pub(in crate::tui) fn mixes(&self) -> bool {
        matches!(self.depth, Depth::True | Depth::Indexed)
    }

    /// True if there are colours.
    pub(in crate::tui) fn coloured(&self) -> bool {
        self.depth != Depth::None
    }

    /// Colour of a stage, given the places of all stages: its hue is its place, so a stage keeps it while others come
    /// and go. Of many or of short stages, every second is darker.
    pub(in crate::tui) fn stage(&self, stage: usize, places: &[f64]) -> Shade {
        let listed = self.own[stage % self.own.len()];
        if !self.wheel {
            return listed;
        }
        let place = places.get(stage).copied().unwrap_or(0.0);
        let few = places.len() <= FEW && places.windows(2).all(|pair| pair[1] - pair[0] >= APART);
        let (lightness, chroma) = match (self.light, few, stage % 2) {
            (false, true, _) => (0.72, 0.13),
            (false, false, 0) => (0.77, 0.13),
            (false, false, _) => (0.66, 0.13),
            (true, true, _) => (0.60, 0.145),
            (true, false, 0) => (0.65, 0.145),
            (true, false, _) => (0.54, 0.145),
        };
        Shade { lab: Some(within_srgb(lightness, chroma, hue(place))), named: listed.named }
    }

    /// Colour of a tensor degree: from violet over teal to lime, the larger the lighter.
    pub(in crate::tui) fn degree(&self, degree: u32) -> Shade {
        let step = degree.max(1).ilog2().min(4) as usize;
        let listed = self.own[step];
        if !self.wheel {
            return listed;
        }
        let hue = [290.0, 240.0, 175.0, 110.0, 60.0][step];
        let lightness = 0.66 + 0.05 * step as f64 - if self.light { 0.15 } else { 0.0 };
        Shade { lab: Some(within_srgb(lightness, 0.13, hue)), named: listed.named }
    }

    /// Colour of an activity.
    pub(in crate::tui) fn activity(&self, activity: Activity) -> Shade {
        self.activities[activity as usize]
    }

    /// Colour of a part of memory.
    pub(in crate::tui) fn memory(&self, part: Memory) -> Shade {
        self.memory[part as usize]
    }

    /// Background of an empty section.
    pub(in crate::tui) fn track(&self) -> Color {
        if self.mixes() { self.color(self.track) } else { Color::Reset }
    }

    /// Colour of flashing cells: white on a dark background, black on a light one.
    pub(in crate::tui) fn flash(&self) -> Shade {
        let rgb = if self.light { (0, 0, 0) } else { (0xff, 0xff, 0xff) };
        Shade { lab: self.mixes().then(|| lab(rgb)), named: self.text }
    }

    /// Background of an empty section, for mixing.
    pub(in crate::tui) fn track_shade(&self) -> Shade {
        self.track
    }

    /// Converts a shade to a colour of the terminal.
    pub(in crate::tui) fn color(&self, shade: Shade) -> Color {
        match (self.depth, shade.lab) {
            (Depth::None, _) => Color::Reset,
            (Depth::True, Some(lab)) => {
                let (r, g, b) = rgb(lab);
                Color::Rgb(r, g, b)
            }
            (Depth::Indexed, Some(lab)) => Color::Indexed(nearest(lab)),
            _ => shade.named,
        }
    }

    /// Mean of shades by weight, or the heaviest if they cannot be mixed.
    pub(in crate::tui) fn mix(&self, parts: &[(Shade, f64)]) -> Shade {
        let heaviest = parts.iter().max_by(|a, b| a.1.total_cmp(&b.1)).map_or(self.track, |part| part.0);
        let whole: f64 = parts.iter().map(|part| part.1).sum();
        if whole <= 0.0 || parts.iter().any(|(shade, weight)| *weight > 0.0 && shade.lab.is_none()) {
            return heaviest;
        }
        let mut sum = Lab::default();
        for (shade, weight) in parts {
            let (Lab(l, a, b), w) = (shade.lab.unwrap_or_default(), weight / whole);
            sum = Lab(sum.0 + w * l, sum.1 + w * a, sum.2 + w * b);
        }
        Shade { lab: Some(sum), ..heaviest }
    }

    /// The same colour, darker: alternate microbatches differ in lightness.
    pub(in crate::tui) fn alternate(&self, shade: Shade) -> Shade {
        let darker = |Lab(l, a, b): Lab| Lab(ALTERNATE * l, ALTERNATE * a, ALTERNATE * b);
        Shade { lab: shade.lab.map(darker), ..shade }
    }

    /// Shade mixed with the background, with the fraction `left` of itself.
    pub(in crate::tui) fn towards_ground(&self, shade: Shade, left: f64) -> Shade {
        let Some(Lab(l, a, b)) = shade.lab else { return shade };
        let Lab(gl, ga, gb) = self.ground;
        let mix = |ground: f64, own: f64| ground + (own - ground) * left.clamp(0.0, 1.0);
        Shade { lab: Some(Lab(mix(gl, l), mix(ga, a), mix(gb, b))), ..shade }
    }

    /// Hue at a load of 0 to 1, relative to the busiest: 62 % strength up to half load, full strength at full load.
    pub(in crate::tui) fn loaded(&self, shade: Shade, load: f64) -> Shade {
        self.towards_ground(shade, 0.62 + 0.38 * ((load - 0.5) / 0.5).clamp(0.0, 1.0))
    }

    /// Shade of the empty part of a cell.
    pub(in crate::tui) fn empty(&self, shade: Shade) -> Shade {
        self.towards_ground(shade, if self.light { 0.22 } else { 0.18 })
    }

    /// Black or white, whichever is more readable on a shade.
    pub(in crate::tui) fn ink(&self, shade: Shade) -> Color {
        match (self.mixes(), shade.lab) {
            (true, Some(lab)) => {
                // At this luminance both have a contrast of 4.5.
                let dark = luminance(rgb(lab)) > 0.179;
                let ink = if dark { (0, 0, 0) } else { (0xff, 0xff, 0xff) };
                self.color(Shade { lab: Some(self::lab(ink)), named: Color::Black })
            }
            _ => match self.color(shade) {
                Color::Reset => self.text,
                color => contrast(color),
            },
        }
    }
}

/// Number of stages up to which all have the same lightness, if their places are this far apart.
const FEW: usize = 4;
const APART: f64 = 0.12;

/// Hues of stages, degrees: without blue, amber and orchid, which are activities.
const ARCS: [(f64, f64); 3] = [(287.0, 308.0), (346.0, 412.0), (122.0, 196.0)];

/// Hue at a place from 0 to 1 along the arcs, degrees.
fn hue(place: f64) -> f64 {
    let whole: f64 = ARCS.iter().map(|(from, to)| to - from).sum();
    let mut left = place.clamp(0.0, 1.0) * whole;
    for (from, to) in ARCS {
        if left <= to - from {
            return (from + left) % 360.0;
        }
        left -= to - from;
    }
    ARCS[2].1
}

/// Lightness of alternate microbatches relative to the others.
const ALTERNATE: f64 = 0.84;

/// Number of a theme's own stage colours.
const LIST: usize = 24;

/// Colours of a look that no role of a theme has.
struct Set {
    ground: Rgb,
    track: Rgb,
    activities: [Rgb; 5],
    memory: [Rgb; 3],
}

const DARK: Set = Set {
    ground: (0x0e, 0x10, 0x16),
    track: (0x1d, 0x20, 0x27),
    activities: [(0xbf, 0xe6, 0xf6), (0xd2, 0x75, 0xd8), (0x4c, 0x7d, 0xd9), (0xf9, 0xb7, 0x3f), (0x8f, 0x8a, 0x80)],
    memory: [(0x56, 0x55, 0x83), (0x3b, 0x88, 0x8c), (0xa8, 0x9f, 0x7b)],
};

const LIGHT: Set = Set {
    ground: (0xfb, 0xfa, 0xf8),
    track: (0xe9, 0xeb, 0xef),
    activities: [(0x7c, 0xc6, 0xe6), (0xb6, 0x4e, 0xbd), (0x1d, 0x54, 0xc1), (0xd8, 0x80, 0x18), (0x8a, 0x85, 0x7b)],
    memory: [(0x64, 0x61, 0x9b), (0x4f, 0xa1, 0xa5), (0xba, 0xbc, 0x88)],
};

fn rgb_of(color: Color) -> Option<Rgb> {
    match color {
        Color::Rgb(r, g, b) => Some((r, g, b)),
        Color::Indexed(i) if i >= 16 => Some(indexed(i)),
        _ => None,
    }
}

/// Colour of entries 16 to 255 of xterm's table: a cube of six levels, then greys.
fn indexed(index: u8) -> Rgb {
    if index >= 232 {
        let grey = 8 + 10 * (index - 232);
        return (grey, grey, grey);
    }
    let level = |i: u8| if i == 0 { 0 } else { 55 + 40 * i };
    let i = index.saturating_sub(16);
    (level(i / 36), level(i / 6 % 6), level(i % 6))
}

/// Most similar entry of xterm's table.
fn nearest(Lab(l, a, b): Lab) -> u8 {
    static TABLE: OnceLock<Vec<Lab>> = OnceLock::new();
    let table = TABLE.get_or_init(|| (16..=255).map(|i| lab(indexed(i))).collect());
    let distance = |other: &Lab| (other.0 - l).powi(2) + (other.1 - a).powi(2) + (other.2 - b).powi(2);
    let best = table.iter().enumerate().min_by(|x, y| distance(x.1).total_cmp(&distance(y.1)));
    best.map_or(16, |(i, _)| 16 + i as u8)
}

fn linear(value: u8) -> f64 {
    let v = f64::from(value) / 255.0;
    if v <= 0.040_45 { v / 12.92 } else { ((v + 0.055) / 1.055).powf(2.4) }
}

/// Relative luminance as defined by WCAG.
fn luminance((r, g, b): Rgb) -> f64 {
    0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b)
}

fn lab((r, g, b): Rgb) -> Lab {
    let (r, g, b) = (linear(r), linear(g), linear(b));
    let l = (0.412_221_470_8 * r + 0.536_332_536_3 * g + 0.051_445_992_9 * b).cbrt();
    let m = (0.211_903_498_2 * r + 0.680_699_545_1 * g + 0.107_396_956_6 * b).cbrt();
    let s = (0.088_302_461_9 * r + 0.281_718_837_6 * g + 0.629_978_700_5 * b).cbrt();
    Lab(
        0.210_454_255_3 * l + 0.793_617_785 * m - 0.004_072_046_8 * s,
        1.977_998_495_1 * l - 2.428_592_205 * m + 0.450_593_709_9 * s,
        0.025_904_037_1 * l + 0.782_771_766_2 * m - 0.808_675_766 * s,
    )
}

/// Linear red, green and blue; outside 0 to 1 if sRGB lacks the colour.
fn linear_rgb(Lab(lightness, a, b): Lab) -> [f64; 3] {
    let l = (lightness + 0.396_337_777_4 * a + 0.215_803_757_3 * b).powi(3);
    let m = (lightness - 0.105_561_345_8 * a - 0.063_854_172_8 * b).powi(3);
    let s = (lightness - 0.089_484_177_5 * a - 1.291_485_548 * b).powi(3);
    [
        4.076_741_662_1 * l - 3.307_711_591_3 * m + 0.230_969_929_2 * s,
        -1.268_438_004_6 * l + 2.609_757_401_1 * m - 0.341_319_396_5 * s,
        -0.004_196_086_3 * l - 0.703_418_614_7 * m + 1.707_614_701 * s,
    ]
}

fn rgb(lab: Lab) -> Rgb {
    let channel = |v: f64| {
        let v = v.clamp(0.0, 1.0);
        let v = if v <= 0.003_130_8 { 12.92 * v } else { 1.055 * v.powf(1.0 / 2.4) - 0.055 };
        (v * 255.0).round() as u8
    };
    let [r, g, b] = linear_rgb(lab).map(channel);
    (r, g, b)
}

/// Colour by lightness, chroma and hue in degrees. Chroma is reduced until the colour is within sRGB.
fn within_srgb(lightness: f64, chroma: f64, hue: f64) -> Lab {
    let (sin, cos) = hue.to_radians().sin_cos();
    let mut chroma = chroma;
    loop {
        let lab = Lab(lightness, chroma * cos, chroma * sin);
        if chroma <= 0.0 || linear_rgb(lab).iter().all(|v| (-0.002..=1.002).contains(v)) {
            return lab;
        }
        chroma -= 0.004;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tui::theme;

    fn shades(name: &str, depth: Depth) -> Shades {
        Shades::new(&theme::load(name, None, depth).unwrap(), depth)
    }

    #[test]
    fn colours_come_back_from_oklab() {
        for color in [(0, 0, 0), (255, 255, 255), (138, 195, 253), (12, 200, 3)] {
            assert_eq!(rgb(lab(color)), color);
        }
        assert_eq!(nearest(lab((255, 255, 255))), 231);
    }

    #[test]
    fn neighbouring_stages_are_far_apart_for_any_number_of_them() {
        for name in ["dark", "light"] {
            let shades = shades(name, Depth::True);
            for count in 2..60 {
                let places: Vec<f64> = (0..count).map(|i| i as f64 / count as f64).collect();
                for stage in 1..count {
                    let of = |stage| shades.stage(stage, &places).lab.unwrap();
                    let (Lab(l, a, b), Lab(m, c, d)) = (of(stage - 1), of(stage));
                    let distance = ((l - m).powi(2) + (a - c).powi(2) + (b - d).powi(2)).sqrt();
                    assert!(distance > 0.08, "{name}: {stage} of {count}: {distance}");
                }
            }
        }
    }

    #[test]
    fn a_stage_keeps_its_hue_when_another_is_split() {
        let shades = shades("dark", Depth::True);
        let before = shades.stage(2, &[0.0, 0.25, 0.5]);
        assert_eq!(shades.stage(3, &[0.0, 0.25, 0.4, 0.5]).lab.map(hue_of), before.lab.map(hue_of));
        assert_eq!((hue(0.0), hue(1.0)), (287.0, 196.0));
    }

    fn hue_of(Lab(_, a, b): Lab) -> i64 {
        b.atan2(a).to_degrees().round() as i64
    }

    #[test]
    fn fewer_colours_mix_nothing_and_none_colour_nothing() {
        let ansi = shades("dark", Depth::Ansi);
        let (forward, backward) = (ansi.activity(Activity::Forward), ansi.activity(Activity::Backward));
        assert_eq!(ansi.mix(&[(forward, 1.0), (backward, 2.0)]), backward);
        assert!(!matches!(ansi.color(backward), Color::Rgb(..) | Color::Indexed(_)));
        for shades in [shades("dark", Depth::None), shades("monochrome", Depth::True)] {
            assert_eq!(shades.color(shades.stage(3, &[0.0; 8])), Color::Reset);
            assert_eq!(shades.track(), Color::Reset);
        }
    }

    #[test]
    fn a_number_on_a_cell_can_be_read() {
        let near = |a: Rgb, b: Rgb| {
            let (a, b) = (luminance(a), luminance(b));
            (a.max(b) + 0.05) / (a.min(b) + 0.05)
        };
        for name in ["dark", "light"] {
            let shades = shades(name, Depth::True);
            let places: Vec<f64> = (0..24).map(|i| f64::from(i) / 24.0).collect();
            for stage in 0..24 {
                for load in [0.0, 0.7, 1.0] {
                    let shade = shades.loaded(shades.stage(stage, &places), load);
                    let (ground, ink) = (rgb_of(shades.color(shade)).unwrap(), rgb_of(shades.ink(shade)).unwrap());
                    assert!(near(ground, ink) >= 4.5, "{name} {stage} {load}: {}", near(ground, ink));
                }
            }
        }
    }
}
