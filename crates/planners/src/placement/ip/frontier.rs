//! Exact maximum-value set of classes that an accelerator can hold within a threshold, including transfers.
//!
//! Classes are decided in sequence, in or out. The state of a partial decision is its load and, for every open net
//! (with decided and undecided classes), one of three cases: decided classes all in, all out, or mixed. A net is paid
//! when it becomes mixed. Operator graphs are long and narrow, so along a good order few nets are open and few
//! combinations of their cases occur. These are the vertices of a layered graph that is built once. Filling it for
//! given dual values is a knapsack with a row of cells per vertex instead of one row.
//!
//! A filling takes `O(vertices · cells)`, in long loops over arrays. Loads are rounded to cells: down for a valid
//! bound, to the nearest for a good set.

use rustc_hash::FxHashMap;

use super::model::{IpModel, whole};
use plantui_core::search::Search;

/// Maximum number of classes. Above it, even a chain has so many combinations that one filling takes seconds.
const MOST_CLASSES: usize = 20_000;

/// Value of an unreachable cell; every set has more.
const NEVER: f32 = f32::MIN / 4.0;

/// Transitions of a combination when the next class is decided.
#[derive(Debug, Clone, Copy)]
struct FrontierStep {
    /// Next combination if the class is in, and its cost with the class's time; infinite if the class cannot be in.
    inside: (u32, f64),
    /// Next combination if the class is out, and its cost.
    outside: (u32, f64),
}

/// Layered graph of combinations.
#[derive(Debug, Clone)]
pub struct ClassFrontier {
    order: Vec<u32>,
    /// By position in the order: a step for each combination.
    steps: Vec<Vec<FrontierStep>>,
    /// By position in the order: time of the class, and total time up to it.
    times: Vec<(f64, f64)>,
}

/// Rounding of loads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CellRounding {
    /// Down: no set that fits is ruled out.
    Down,
    /// To the nearest.
    Nearest,
}

/// Assignment of 2-bit slots in a combination's key to open nets.
struct NetSlots {
    net: Vec<usize>,
    /// By net: number of undecided classes.
    left: Vec<usize>,
    taken: u32,
}

impl NetSlots {
    fn new(model: &IpModel) -> Self {
        let left = (0..model.net_count()).map(|net| model.pins(net).len()).collect();
        NetSlots { net: vec![usize::MAX; model.net_count()], left, taken: 0 }
    }

    /// Takes the next free slot; `None` if all are taken.
    fn take(&mut self) -> Option<usize> {
        let slot = (!self.taken).trailing_zeros() as usize;
        self.taken |= 1u32.checked_shl(slot as u32)?;
        (slot < 31).then_some(slot)
    }

    /// Nets of a class to be decided; `None` if too many nets are open.
    fn touch(&mut self, model: &IpModel, nets: &[bool], class: u32) -> Option<Vec<TouchedNet>> {
        let mut touched = vec![];
        for &net in model.nets(class as usize).iter().filter(|&&net| nets[net as usize]) {
            let net = net as usize;
            let opens = self.net[net] == usize::MAX;
            if opens {
                self.net[net] = self.take()?;
            }
            self.left[net] -= 1;
            let closes = self.left[net] == 0;
            touched.push(TouchedNet { shift: 2 * self.net[net], price: whole(model.net_cost[net]), opens, closes });
            if closes {
                self.taken &= !(1 << self.net[net]);
            }
        }
        Some(touched)
    }
}

/// A net of the class being decided.
struct TouchedNet {
    shift: usize,
    price: f64,
    /// True if the class is the first of the net, and if it is the last.
    opens: bool,
    closes: bool,
}

/// Key after a class with these nets is decided, and the cost of transfers.
fn decide(touched: &[TouchedNet], mut key: u64, inside: bool) -> (u64, f64) {
    let mut cost = 0.0;
    for &TouchedNet { shift, price, opens, closes } in touched {
        let mine = u64::from(inside);
        let before = key >> shift & 3;
        let mut after = if opens { mine } else { before };
        if !opens && before != MIXED && before != mine {
            cost += price;
            after = MIXED;
        }
        if closes {
            after = 0;
        }
        key = key & !(3 << shift) | after << shift;
    }
    (key, cost)
}

/// Steps of a class from all combinations in `now`, which is replaced by those after it. `time` is the class's own
/// time; `None` if it cannot be in.
fn layer(now: &mut Vec<(u64, f64)>, touched: &[TouchedNet], time: Option<f64>, threshold: f64) -> Vec<FrontierStep> {
    let mut number: FxHashMap<u64, u32> = FxHashMap::default();
    let mut next: Vec<(u64, f64)> = vec![];
    let mut arrive = |(key, cost): (u64, f64), least: f64, time: f64| {
        if least + cost > threshold {
            return (0, f64::INFINITY);
        }
        let at = *number.entry(key).or_insert_with(|| {
            next.push((key, f64::INFINITY));
            next.len() as u32 - 1
        });
        let known = &mut next[at as usize].1;
        *known = known.min(least + cost);
        (at, cost + time)
    };
    let steps = now.iter().map(|&(key, least)| FrontierStep {
        inside: time.map_or((0, f64::INFINITY), |time| arrive(decide(touched, key, true), least, time)),
        outside: arrive(decide(touched, key, false), least, 0.0),
    });
    let steps = steps.collect();
    *now = next;
    steps
}

impl ClassFrontier {
    /// Builds the graph for loads up to a threshold; `None` if it has more than `most` combinations. Nets that cost
    /// less than `negligible` are left out, which only makes sets cheaper.
    pub fn new(model: &IpModel, threshold: f64, negligible: f64, most: usize) -> Option<Self> {
        if model.len() > MOST_CLASSES {
            return None;
        }
        let nets: Vec<bool> = model.net_cost.iter().map(|&cost| whole(cost) > negligible).collect();
        let order = narrow_order(model, &nets);
        let mut slots = NetSlots::new(model);
        // Combinations with their least cost of transfers so far.
        let mut now: Vec<(u64, f64)> = vec![(0, 0.0)];
        let mut steps = Vec::with_capacity(order.len());
        let mut total = 0;
        for &class in &order {
            let touched = slots.touch(model, &nets, class)?;
            let time = whole(model.accelerator_time[class as usize]);
            let can_be_in = model.fits[class as usize] && time <= threshold * (1.0 + 1e-9);
            let layer = layer(&mut now, &touched, can_be_in.then_some(time), threshold);
            total += layer.len();
            if total > most {
                return None;
            }
            steps.push(layer);
        }
        let mut sum = 0.0;
        let time = |&class: &u32| {
            let time = whole(model.accelerator_time[class as usize]);
            sum += time;
            (time, sum)
        };
        let times = order.iter().map(time).collect();
        Some(ClassFrontier { order, steps, times })
    }

    /// Total number of combinations.
    pub fn len(&self) -> usize {
        self.steps.iter().map(Vec::len).sum()
    }

    /// True if there is nothing to decide.
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Largest value of a set for given dual values, by the number of cells that it fills at most, with loads rounded
    /// down. `None` if the search was cancelled.
    pub fn worths(&self, price: &[f32], cell: f64, cells: usize, search: &Search) -> Option<Vec<f32>> {
        let mut now = vec![NEVER; cells + 1];
        now[0] = 0.0;
        let mut next = vec![];
        for layer in 0..self.steps.len() {
            if search.cancelled() {
                return None;
            }
            self.fill(layer, price, cell, cells, CellRounding::Down, &now, &mut next);
            std::mem::swap(&mut now, &mut next);
        }
        let mut most = 0.0;
        for worth in &mut now {
            most = f32::max(most, *worth);
            *worth = most;
        }
        Some(now)
    }

    /// Set with the largest value within the rounded threshold; returns its value. `rows` is working memory.
    pub fn best_set(
        &self,
        price: &[f32],
        cell: f64,
        cells: usize,
        rows: &mut Vec<Vec<f32>>,
        mut chosen: impl FnMut(u32),
    ) -> f32 {
        let width = cells + 1;
        rows.resize(self.steps.len() + 1, vec![]);
        rows[0].clear();
        rows[0].resize(width, NEVER);
        rows[0][0] = 0.0;
        for layer in 0..self.steps.len() {
            let (done, open) = rows.split_at_mut(layer + 1);
            self.fill(layer, price, cell, cells, CellRounding::Nearest, &done[layer], &mut open[0]);
        }
        let last = &rows[self.steps.len()];
        let mut at = (0..last.len()).fold(0, |best, i| if last[i] > last[best] { i } else { best });
        let worth = last.get(at).copied().unwrap_or(0.0);
        for layer in (0..self.steps.len()).rev() {
            let (row, load) = ((at / width) as u32, at % width);
            let value = rows[layer + 1][at];
            let worth = price[self.order[layer] as usize];
            let before = &rows[layer];
            let from = |(target, cost): (u32, f64), source: usize, gain: f32, inside: bool| {
                let weight = self.weigh(layer, inside, cost, cell, CellRounding::Nearest)?;
                let here = source * width + load.checked_sub(weight)?;
                (target == row && before[here] > NEVER && before[here] + gain == value).then_some(here)
            };
            let mut found = None;
            for (source, step) in self.steps[layer].iter().enumerate() {
                if let Some(here) = from(step.outside, source, 0.0, false) {
                    found = Some((here, false));
                    break;
                }
                if let Some(here) = from(step.inside, source, worth, true) {
                    found = Some((here, true));
                    break;
                }
            }
            let Some((here, inside)) = found else { break };
            if inside {
                chosen(self.order[layer]);
            }
            at = here;
        }
        worth
    }

    /// Computes the rows after a class is decided from those before. A cell holds the largest value of sets with
    /// exactly that load.
    #[expect(clippy::too_many_arguments, reason = "the inner loop")]
    fn fill(
        &self,
        layer: usize,
        price: &[f32],
        cell: f64,
        cells: usize,
        rounding: CellRounding,
        before: &[f32],
        after: &mut Vec<f32>,
    ) {
        let width = cells + 1;
        let rows = self.steps.get(layer + 1).map_or(1, Vec::len);
        after.clear();
        after.resize(rows * width, NEVER);
        let worth = price[self.order[layer] as usize];
        for (step, row) in self.steps[layer].iter().zip(before.chunks_exact(width)) {
            for ((target, cost), gain, inside) in [(step.inside, worth, true), (step.outside, 0.0, false)] {
                let weight = self.weigh(layer, inside, cost, cell, rounding);
                let Some(weight) = weight.filter(|&weight| weight <= cells) else { continue };
                let start = target as usize * width;
                let to = &mut after[start + weight..start + width];
                for (to, from) in to.iter_mut().zip(row) {
                    let with = from + gain;
                    *to = if with > *to { with } else { *to };
                }
            }
        }
    }
}

impl ClassFrontier {
    /// Cost of a step in cells; `None` if it is infinite. When rounding to the nearest, a class counts the cells
    /// between its end and its start with all classes in a row: so the sum of many small classes is right to a cell,
    /// however coarse the cells.
    #[inline]
    fn weigh(&self, layer: usize, inside: bool, cost: f64, cell: f64, rounding: CellRounding) -> Option<usize> {
        cost.is_finite().then(|| match rounding {
            // The tolerance keeps a cost of a whole number of cells from being rounded up.
            CellRounding::Down => (cost / cell * (1.0 - 1e-10)).floor() as usize,
            CellRounding::Nearest if inside => {
                let (time, end) = self.times[layer];
                let cells = (end / cell).round() - ((end - time) / cell).round();
                cells as usize + ((cost - time).max(0.0) / cell).round() as usize
            }
            CellRounding::Nearest => (cost / cell).round() as usize,
        })
    }
}

const MIXED: u64 = 2;

/// Order with few open nets: the best of several greedy orders from starts all over the graph, by estimated
/// combinations. One start takes up to 1.2 times the CPU time.
fn narrow_order(model: &IpModel, nets: &[bool]) -> Vec<u32> {
    let n = model.len();
    let starts = (0..n).step_by((n / 24).max(1));
    let tried = starts.map(|start| greedy_order(model, nets, start));
    tried.min_by(|a, b| a.0.total_cmp(&b.0)).map_or(vec![], |(_, order)| order)
}

/// Greedy order from a start: always the neighbour that opens fewest nets and closes most.
fn greedy_order(model: &IpModel, nets: &[bool], start: usize) -> (f64, Vec<u32>) {
    let n = model.len();
    let mut left: Vec<u32> = (0..model.net_count()).map(|net| model.pins(net).len() as u32).collect();
    let mut open = 0i32;
    let mut reached = vec![false; n];
    let mut border = vec![start as u32];
    reached[start] = true;
    let mut order = Vec::with_capacity(n);
    let mut combinations = 0.0;
    let mut unseen = 0;
    while order.len() < n {
        if border.is_empty() {
            while reached[unseen] {
                unseen += 1;
            }
            reached[unseen] = true;
            border.push(unseen as u32);
        }
        let rank = |class: u32| {
            let (mut opens, mut shares) = (0i32, 0i32);
            for &net in model.nets(class as usize).iter().filter(|&&net| nets[net as usize]) {
                let net = net as usize;
                let fresh = left[net] as usize == model.pins(net).len();
                opens += i32::from(fresh && left[net] > 1) - i32::from(!fresh && left[net] == 1);
                shares += i32::from(!fresh);
            }
            (opens, -shares, class)
        };
        let at = (0..border.len()).min_by_key(|&at| rank(border[at])).unwrap_or(0);
        let class = border.swap_remove(at);
        open += rank(class).0;
        combinations += 3f64.powi(open);
        order.push(class);
        for &net in model.nets(class as usize).iter().filter(|&&net| nets[net as usize]) {
            left[net as usize] -= 1;
            for &pin in model.pins(net as usize) {
                if !std::mem::replace(&mut reached[pin as usize], true) {
                    border.push(pin);
                }
            }
        }
    }
    (combinations, order)
}
