//! How many devices a stage, or a part of the network whatever its stages, needs at the least.
//!
//! A stage on `t · d` devices with `s` replicas behind it holds `y ≥ 1 + s / d` microbatches on each replica. If it keeps to
//! the load `T` within `M` bytes, `d ≥ 1` gives `t · d ≥ t · (a · d · y + b · d) / M ≥ t · (a · (1 + s) + b) / M`, and so for
//! any share `λ` between 0 and 1
//!
//! ```text
//! t · d  ≥  λ · t · (compute + edges / W) / T  +  (1 − λ) · t · (a · (1 + s) + b) / M
//! ```
//!
//! and both terms are sums over its nodes. Everything in front of a tail has at least the tail's replicas behind it. Sums are
//! kept for some numbers of replicas; between two of them those of the smaller one hold. Each node takes the degree and mode in which it adds least; what that comes to
//! bounds the devices of any set of nodes from below. With `λ = 1` it is the work shared out evenly; less tells where memory
//! forces slower modes, or more devices. The least `T` for which the whole network's bound leaves enough devices bounds every
//! plan.

use rayon::prelude::*;

use super::{
    degree::{EACH, every},
    model::{Crossing, Degree, PiperModel},
    probe::Allowed,
};
use crate::planner::Search;

/// Shares of time against memory that are looked at.
const SHARES: [f64; 4] = [0.25, 0.5, 0.75, 1.0];
/// Halvings of the load.
const HALVINGS: usize = 40;
/// Slack for rounding, as a share of all devices.
const ROUNDING: f64 = 1e-9;
/// Bytes of sums, about.
const MOST_BYTES: usize = 16 << 20;

/// By set, for each share: what its nodes add.
type Sums = Vec<[f64; SHARES.len()]>;

/// Devices by set, at one load.
pub(super) struct Rest {
    /// For some numbers of replicas behind, ascending from none.
    rows: Vec<(u32, Sums)>,
    /// By replicas behind: the row that holds for them.
    row_of: Vec<u16>,
    /// Devices that a device-second over the links takes.
    per_second: f64,
    /// Devices by which differences of sums may be off.
    room: f64,
}

/// Device-seconds that edges take at the least where they leave a stage, whatever its degree and modes.
pub(super) struct Borders {
    /// By edge: for its head, for its tail.
    edges: Vec<Ends>,
    /// By set: of the edges into it.
    into: Vec<Ends>,
}

/// What the heads and the tails of edges take.
#[derive(Debug, Clone, Copy, Default)]
struct Ends {
    heads: f64,
    tails: f64,
}

impl Borders {
    /// Time grows with the edges across all borders; `None` if the search was cancelled meanwhile.
    pub(super) fn new(model: &PiperModel<'_>, search: &Search) -> Option<Self> {
        let least = |edge: usize, tail: bool| {
            let bytes = |degree: &Degree| {
                let least = match &degree.ranges {
                    Some(ranges) if tail => ranges.tails_pay[edge].least,
                    Some(ranges) => ranges.heads_pay[edge].least,
                    None if tail => degree.edge_out[edge],
                    None => degree.edge_in[edge],
                };
                f64::from(degree.t) * least
            };
            let bytes = model.degrees.iter().map(bytes).fold(f64::INFINITY, f64::min);
            if bytes.is_finite() { bytes / model.limits.bandwidth() } else { 0.0 }
        };
        let ends = |edge: usize| Ends { heads: least(edge, false), tails: least(edge, true) };
        let edges: Vec<Ends> = (0..model.dag.edges().len()).map(ends).collect();
        // Added up anew for each set: beside an edge that nobody may cut, a running sum would lose the others.
        let into = |set: usize| {
            let add = |sum: Ends, crossing: &Crossing| {
                let ends = edges[crossing.edge as usize];
                Ends { heads: sum.heads + ends.heads, tails: sum.tails + ends.tails }
            };
            (!search.cancelled()).then(|| model.crossings(set).iter().fold(Ends::default(), add))
        };
        let into = every(&model.sets).map(into).collect::<Option<_>>()?;
        Some(Borders { edges, into })
    }

    /// Device-seconds over the links of the stage `outer \ inner`; `crossings` are the edges into `outer`.
    #[inline]
    fn of_stage(&self, model: &PiperModel<'_>, outer: usize, inner: usize, crossings: &[Crossing]) -> f64 {
        let mut seconds = self.into[outer].heads + self.into[inner].tails;
        for crossing in crossings {
            if model.sets.contains(inner, crossing.head as usize) {
                let past = self.edges[crossing.edge as usize];
                seconds -= past.heads + past.tails;
            }
        }
        seconds.max(0.0)
    }
}

/// Device-seconds and bytes on all devices that a node takes at one degree and mode, by microbatch in flight and without.
struct Taken {
    seconds: f64,
    memory_a: f64,
    memory_b: f64,
}

/// What nodes take at what is allowed.
struct Nodes(Vec<Vec<Taken>>);

impl Nodes {
    fn new(model: &PiperModel<'_>, allowed: &[Allowed]) -> Self {
        let of_node = |v: usize| {
            let degrees = allowed.iter().map(|allowed| &model.degrees[allowed.degree]);
            let taken = degrees.flat_map(|degree| {
                let t = f64::from(degree.t);
                degree.choices[v].iter().map(move |choice| Taken {
                    seconds: t * choice.time_s,
                    memory_a: t * choice.memory_a,
                    memory_b: t * choice.memory_b,
                })
            });
            taken.collect()
        };
        Nodes((0..model.dag.len()).map(of_node).collect())
    }

    /// Devices that a node adds with so many replicas behind it, by share; none where nothing can run it.
    fn devices(&self, v: usize, (target, memory_bytes): (f64, f64), behind: u32) -> [f64; SHARES.len()] {
        let in_flight = 1.0 + f64::from(behind);
        let mut least = [f64::INFINITY; SHARES.len()];
        for taken in &self.0[v] {
            let time = taken.seconds / target;
            let memory = (taken.memory_a * in_flight + taken.memory_b) / memory_bytes;
            for (least, share) in least.iter_mut().zip(SHARES) {
                *least = least.min(share * time + (1.0 - share) * memory);
            }
        }
        if self.0[v].is_empty() { [0.0; SHARES.len()] } else { least }
    }
}

/// Numbers of replicas behind that get a row, from none up to at most `most`: all if there is room, else ever fewer.
fn levels(most: u32, sets: usize) -> Vec<u32> {
    let room = (MOST_BYTES / (sets * size_of::<[f64; SHARES.len()]>())).max(1);
    let rising = |factor: f64| {
        let next =
            |&level: &u32| Some(((f64::from(level) * factor) as u32).max(level + 1)).filter(|&next| next <= most);
        std::iter::successors(Some(0), next).collect::<Vec<u32>>()
    };
    let factors = [2.0, 4.0, f64::INFINITY];
    factors.into_iter().map(rising).find(|levels| levels.len() <= room).unwrap_or_else(|| vec![0])
}

impl Rest {
    /// `None` where sums say nothing: figures too far apart, or no load to keep to. `most_replicas` may be behind a stage.
    pub(super) fn new(
        model: &PiperModel<'_>,
        allowed: &[Allowed],
        target: f64,
        memory_bytes: f64,
        most_replicas: u32,
    ) -> Option<Self> {
        if model.far_apart || !target.is_finite() || target <= 0.0 || memory_bytes <= 0.0 {
            return None;
        }
        let levels = levels(most_replicas, model.sets.len());
        // Few sets are not worth another thread.
        let each = EACH.div_ceil(model.sets.len());
        let nodes = Nodes::new(model, allowed);
        let row = |behind: u32| {
            let adds: Sums = (0..model.dag.len()).map(|v| nodes.devices(v, (target, memory_bytes), behind)).collect();
            let add = |sum: &mut [f64; SHARES.len()], v: usize| {
                for share in 0..SHARES.len() {
                    sum[share] += adds[v][share];
                }
            };
            (behind, model.smaller.summed(&model.sets, add))
        };
        let rows: Vec<(u32, Sums)> = levels.into_par_iter().with_min_len(each).map(row).collect();
        let row_of = (0..=most_replicas).map(|s| rows.partition_point(|&(behind, _)| behind <= s) as u16 - 1).collect();
        let full = rows.iter().flat_map(|(_, sums)| &sums[sums.len() - 1]).copied();
        let most = full.fold(f64::from(model.limits.devices), f64::max);
        Some(Rest { rows, row_of, per_second: 1.0 / target, room: ROUNDING * most })
    }

    /// Devices that everything outside `set` needs, by replicas of the set: from so many on, ascending.
    pub(super) fn devices<'r>(&'r self, set: usize, borders: &'r Borders) -> impl Iterator<Item = (u32, u32)> + 'r {
        let cut = borders.into[set].tails * self.per_second;
        self.rows.iter().map(move |(behind, sums)| {
            let most = between(&sums[sums.len() - 1], &sums[set], cut);
            (*behind, (most - self.room).ceil().max(0.0) as u32)
        })
    }

    /// Devices, not rounded to whole ones, that the stage `outer \ inner` needs with so many replicas behind it; `crossings`
    /// are the edges into `outer`.
    #[inline]
    pub(super) fn stage(
        &self,
        model: &PiperModel<'_>,
        borders: &Borders,
        (outer, inner): (usize, usize),
        crossings: &[Crossing],
        behind: u32,
    ) -> f64 {
        let links = borders.of_stage(model, outer, inner, crossings) * self.per_second;
        let (_, sums) = &self.rows[usize::from(self.row_of[behind as usize])];
        between(&sums[outer], &sums[inner], links) - self.room
    }
}

/// The largest of the bounds for the nodes in between, with so many devices for edges.
#[inline]
fn between(outer: &[f64; SHARES.len()], inner: &[f64; SHARES.len()], links: f64) -> f64 {
    let mut most: f64 = 0.0;
    for i in 0..SHARES.len() {
        most = most.max(outer[i] - inner[i] + SHARES[i] * links);
    }
    most
}

/// A load below which no plan can be on so many devices.
pub(super) fn least_load(model: &PiperModel<'_>, allowed: &[Allowed], devices: u32) -> f64 {
    let memory_bytes = model.limits.memory();
    if model.far_apart || memory_bytes <= 0.0 {
        return 0.0;
    }
    let nodes = Nodes::new(model, allowed);
    let enough = |target: f64| {
        let mut sums = [0.0; SHARES.len()];
        for v in 0..model.dag.len() {
            let adds = nodes.devices(v, (target, memory_bytes), 0);
            sums.iter_mut().zip(adds).for_each(|(sum, adds)| *sum += adds);
        }
        sums.iter().all(|sum| sum * (1.0 - ROUNDING) <= f64::from(devices))
    };
    let mut lower = 0.0;
    let mut upper = model.even_share().max(f64::MIN_POSITIVE);
    let mut doublings = 0;
    while !enough(upper) {
        (lower, upper) = (upper, upper * 2.0);
        doublings += 1;
        // No load would do: memory alone asks for more devices.
        if doublings > HALVINGS {
            return 0.0;
        }
    }
    if doublings == 0 {
        return upper * (1.0 - ROUNDING);
    }
    for _ in 0..HALVINGS {
        let middle = (lower + upper) / 2.0;
        if enough(middle) { upper = middle } else { lower = middle }
    }
    lower
}
