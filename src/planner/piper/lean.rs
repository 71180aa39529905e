//! How many replicas a stage needs at the least, from a few figures that lie side by side.
//!
//! Of the millions of stages that a question looks at almost all are too slow or too large for what they would have to save.
//! That shows in four sums of the inner set at each degree, kept in one place so that a stage takes one or two cache lines, and
//! those of the outer set, which are at hand while its stages are tried.
//!
//! `O(sets · degrees)` memory, `O(degrees · (1 + edges across the outer set's border))` time for a stage.

use super::model::{Crossing, PiperModel};

/// Sums of a set at one degree.
#[derive(Debug, Clone, Copy)]
struct Figures {
    time_s: f64,
    /// Bytes over the edges into it at the least: as their tails pay for an inner set, their heads for an outer one.
    edge_bytes: f64,
    least_a: f64,
    least_b: f64,
}

/// Figures of all sets.
pub(super) struct Lean {
    degrees: usize,
    /// By set and degree, as an inner set.
    inner: Vec<Figures>,
}

/// Figures of a set whose stages are being tried.
#[derive(Default)]
pub(super) struct Outer {
    /// By degree: its figures, and nodes that do not offer it.
    figures: Vec<(Figures, u32)>,
    /// By crossing: the node that tells whether its edge passes the stage by.
    heads: Vec<u32>,
    /// By crossing and degree: bytes that are not paid then.
    past: Vec<f64>,
}

/// What a stage has to keep to.
#[derive(Clone, Copy, Default)]
pub(super) struct Within {
    /// One over the seconds of a sample.
    per_second: f64,
    /// Of the links.
    s_per_byte: f64,
    most_bytes: f64,
    /// Replicas behind it at the least.
    behind: u32,
}

impl Within {
    /// For any stage that keeps to a load within so much memory; what divisions round away is made up for.
    pub(super) fn new(model: &PiperModel<'_>, target: f64, memory_bytes: f64) -> Self {
        let s_per_byte = 1.0 / model.limits.bandwidth();
        Within { per_second: 1.0 / target, s_per_byte, most_bytes: memory_bytes * (1.0 + 1e-9), behind: 0 }
    }

    /// Seconds that so many bytes take.
    #[inline]
    pub(super) fn seconds(self, bytes: f64) -> f64 {
        bytes * self.s_per_byte
    }

    /// How many replicas a stage of so many seconds needs, not rounded to whole ones.
    #[inline]
    pub(super) fn replicas(self, seconds: f64) -> f64 {
        seconds * self.per_second * (1.0 - 1e-9)
    }

    /// With so many replicas behind it.
    #[inline]
    pub(super) fn behind(self, behind: u32) -> Self {
        Within { behind, ..self }
    }
}

impl Outer {
    /// Seconds of its nodes in their fastest modes at a degree.
    #[inline]
    pub(super) fn time_s(&self, degree: usize) -> f64 {
        self.figures[degree].0.time_s
    }

    /// Bytes over the edges into it at a degree, less those over the edges that pass a stage in front of a set with these nodes.
    #[inline]
    pub(super) fn edge_bytes(&self, degree: usize, has: impl Fn(u32) -> bool) -> f64 {
        let degrees = self.figures.len();
        let mut past = 0.0;
        for (crossing, &head) in self.heads.iter().enumerate() {
            if has(head) {
                past += self.past[crossing * degrees + degree];
            }
        }
        self.figures[degree].0.edge_bytes - past
    }
}

impl Lean {
    /// Bytes over the edges into a set at a degree at the least, as their tails pay for them.
    pub(super) fn bytes_into(&self, set: usize, degree: usize) -> f64 {
        self.inner[set * self.degrees + degree].edge_bytes
    }

    /// `None` where differences of sums say nothing.
    pub(super) fn new(model: &PiperModel<'_>) -> Option<Self> {
        if model.far_apart {
            return None;
        }
        let figures = |set: usize| {
            model.degrees.iter().map(move |degree| {
                let sums = &degree.sums[set];
                let edge_bytes = degree.ranges.as_ref().map_or(sums.edges_out, |ranges| ranges.into[set].1.least);
                Figures { time_s: sums.time_s, edge_bytes, least_a: sums.least_a, least_b: sums.least_b }
            })
        };
        Some(Lean { degrees: model.degrees.len(), inner: (0..model.sets.len()).flat_map(figures).collect() })
    }

    /// Makes `outer` that of a set; `crossings` are the edges into it.
    pub(super) fn outer(&self, model: &PiperModel<'_>, set: usize, crossings: &[Crossing], outer: &mut Outer) {
        let figures = model.degrees.iter().map(|degree| {
            let sums = &degree.sums[set];
            let edge_bytes = degree.ranges.as_ref().map_or(sums.edges_in, |ranges| ranges.into[set].0.least);
            (
                Figures { time_s: sums.time_s, edge_bytes, least_a: sums.least_a, least_b: sums.least_b },
                sums.unsupported,
            )
        });
        let past = crossings.iter().flat_map(|crossing| {
            let edge = crossing.edge as usize;
            model.degrees.iter().map(move |degree| match &degree.ranges {
                Some(ranges) => ranges.heads_pay[edge].least + ranges.tails_pay[edge].least,
                None => degree.edge_in[edge] + degree.edge_out[edge],
            })
        });
        outer.figures.clear();
        outer.figures.extend(figures);
        outer.heads.clear();
        outer.heads.extend(crossings.iter().map(|crossing| crossing.head));
        outer.past.clear();
        outer.past.reserve(crossings.len() * self.degrees);
        outer.past.extend(past);
    }

    /// By degree, how many replicas the stage of `outer` in front of `inner` needs to keep to what it has to, not rounded to
    /// whole ones; infinitely many at degrees at which it cannot. What lies beyond the least is not looked at: modes, all-reduces.
    #[inline]
    pub(super) fn replicas(
        &self,
        model: &PiperModel<'_>,
        outer: &Outer,
        inner: usize,
        within: Within,
        needed: &mut [f64],
        edges_s: &mut [f64],
    ) {
        let degrees = self.degrees;
        let figures = &self.inner[inner * degrees..][..degrees];
        let (needed, edges_s) = (&mut needed[..degrees], &mut edges_s[..degrees]);
        // Bytes over the edges, all degrees.
        for degree in 0..degrees {
            needed[degree] = outer.figures[degree].0.edge_bytes + figures[degree].edge_bytes;
        }
        for (crossing, &head) in outer.heads.iter().enumerate() {
            if model.sets.contains(inner, head as usize) {
                let past = &outer.past[crossing * degrees..][..degrees];
                for degree in 0..degrees {
                    needed[degree] -= past[degree];
                }
            }
        }
        for degree in 0..degrees {
            let ((a, unsupported), b) = (&outer.figures[degree], &figures[degree]);
            let (least_a, least_b) = (a.least_a - b.least_a, a.least_b - b.least_b);
            let room = within.most_bytes - least_a - least_b;
            let offered = *unsupported == 0 || model.degrees[degree].sums[inner].unsupported == *unsupported;
            if !offered || room < 0.0 {
                needed[degree] = f64::INFINITY;
                continue;
            }
            edges_s[degree] = needed[degree].max(0.0) * within.s_per_byte;
            let seconds = a.time_s - b.time_s + edges_s[degree];
            let for_time = seconds * within.per_second;
            // With `d` replicas `1 + behind / d` or more are in flight on each.
            let held = least_a * f64::from(within.behind);
            let replicas = if held > for_time * room { held / room } else { for_time };
            needed[degree] = replicas * (1.0 - 1e-9);
        }
    }
}
