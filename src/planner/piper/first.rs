//! A plan before the search begins, whatever the size of the network.
//!
//! The nodes are taken along one depth-first order, so that a stage is a run of them and its sums are differences. For
//! every tensor degree with every number of replicas the load is lowered by bisection as long as stages, filled one after
//! the other from the network's end, do with the devices there are. All stages are alike in degree and replicas, so the
//! microbatches in flight are known while they are filled: as many as there are stages from there on.
//!
//! An edge that passes a whole stage by is charged to it all the same, and of modes only "all fastest" and "all smallest"
//! are looked at, with what lies between taken as a straight line: that decides where to cut. The plan is then built and
//! scored as any other, so what is claimed of it is right.
//!
//! Time `O((n + m) · degrees + combinations · bisections · stages · log n)`, memory `O(n · degrees)`.

use super::{
    bisection::{Best, stage_of},
    model::{Choice, PiperModel, first_least},
    picking,
    settings::PiperSettings,
};
use crate::planner::pipeline_options::Recompute;
use crate::{plan::Plan, planner::Search};

/// Halvings of the load for one degree and number of replicas.
const HALVINGS: usize = 24;
/// Places looked at for one where little is sent, beside the one that fills a stage best.
const NEARBY: usize = 48;
/// A combination must promise to be better by this factor to be looked into.
const WORTHWHILE: f64 = 0.999;

/// A first plan with the places in the order where it is cut.
pub(super) struct First {
    pub(super) best: Best,
    pub(super) cuts: Vec<usize>,
}

/// Sums along the order at one degree: entry `i` is that of the first `i` nodes.
struct Sums {
    /// Nodes in their fastest modes, and in those that hold the least for each microbatch.
    fastest: ModeSums,
    smallest: ModeSums,
    parameters: Vec<f64>,
    /// By place: seconds over the links of all edges that cross it, as their heads and as their tails pay them.
    heads_pay: Vec<f64>,
    tails_pay: Vec<f64>,
}

#[derive(Default)]
struct ModeSums {
    time_s: Vec<f64>,
    memory_a: Vec<f64>,
    memory_b: Vec<f64>,
}

impl ModeSums {
    fn along<'c>(choices: impl Iterator<Item = &'c Choice>) -> Self {
        let mut sums = ModeSums { time_s: vec![0.0], memory_a: vec![0.0], memory_b: vec![0.0] };
        let push = |list: &mut Vec<f64>, value: f64| list.push(list[list.len() - 1] + value);
        for choice in choices {
            push(&mut sums.time_s, choice.time_s);
            push(&mut sums.memory_a, choice.memory_a);
            push(&mut sums.memory_b, choice.memory_b);
        }
        sums
    }

    fn time_s(&self, from: usize, to: usize) -> f64 {
        self.time_s[to] - self.time_s[from]
    }

    fn memory(&self, from: usize, to: usize, y: f64) -> f64 {
        (self.memory_a[to] - self.memory_a[from]) * y + self.memory_b[to] - self.memory_b[from]
    }
}

/// Stages of one degree and number of replicas.
#[derive(Clone, Copy)]
struct Shape<'s> {
    sums: &'s Sums,
    degree: usize,
    d: u32,
    /// The most stages there is room for.
    most_stages: usize,
}

struct Line<'l, 'm> {
    model: &'l PiperModel<'m>,
    settings: &'l PiperSettings,
    order: &'l [u32],
}

/// The first plan, if the order allows any; `model` may hold any family of sets.
pub(super) fn plan(model: &PiperModel<'_>, order: &[u32], settings: &PiperSettings, search: &Search) -> Option<First> {
    let line = Line { model, settings, order };
    let sums: Vec<Option<Sums>> = (0..model.degrees.len()).map(|degree| line.sums(degree)).collect();
    let mut found: Vec<(Shape<'_>, Vec<usize>)> = vec![];
    let mut least = f64::INFINITY;
    for (degree, sums) in sums.iter().enumerate() {
        let Some(sums) = sums else { continue };
        for &d in &model.replicas {
            let per_stage = model.degrees[degree].t.saturating_mul(d);
            let replicas = settings.replicas(model.most_replicas) / d;
            let most_stages = (model.limits.devices / per_stage).min(replicas) as usize;
            let wanted = settings.stages.unwrap_or(1);
            if most_stages < wanted || search.cancelled() {
                break;
            }
            let shape = Shape { sums, degree, d, most_stages: settings.stages.unwrap_or(most_stages) };
            if let Some((load, cuts)) = line.lowered(shape, least) {
                least = load;
                found.push((shape, cuts));
            }
        }
    }
    // The last is the most promising; where its modes do not come out as hoped, an earlier one may.
    found.into_iter().rev().find_map(|(shape, cuts)| {
        let cuts = line.as_many_as_asked(cuts)?;
        line.built(shape, &cuts).map(|best| First { best, cuts })
    })
}

impl Line<'_, '_> {
    fn sums(&self, degree: usize) -> Option<Sums> {
        let degree = &self.model.degrees[degree];
        if degree.choices.iter().any(Vec::is_empty) {
            return None;
        }
        let nodes = || self.order.iter().map(|&v| v as usize);
        let fastest = |v: usize| &degree.choices[v][degree.fastest[v]];
        let smallest = |v: usize| &degree.choices[v][first_least(&degree.choices[v], |choice| choice.memory_a)];
        let n = self.order.len();
        let mut place = vec![0; n];
        nodes().enumerate().for_each(|(i, v)| place[v] = i);
        let (mut heads_pay, mut tails_pay) = (vec![0.0; n + 1], vec![0.0; n + 1]);
        for (edge, &(u, v)) in self.model.dag.edges().iter().enumerate() {
            let (from, to) = (place[u as usize] + 1, place[v as usize] + 1);
            for (pay, bytes) in [(&mut heads_pay, degree.edge_in[edge]), (&mut tails_pay, degree.edge_out[edge])] {
                pay[from] += bytes;
                pay[to] -= bytes;
            }
        }
        for pay in [&mut heads_pay, &mut tails_pay] {
            for i in 1..=n {
                pay[i] += pay[i - 1];
            }
        }
        let mut parameters = vec![0.0];
        nodes().for_each(|v| parameters.push(parameters[parameters.len() - 1] + fastest(v).parameters));
        Some(Sums {
            fastest: ModeSums::along(nodes().map(fastest)),
            smallest: ModeSums::along(nodes().map(smallest)),
            parameters,
            heads_pay,
            tails_pay,
        })
    }

    /// Cuts with the least load found, if that is below `least`.
    fn lowered(&self, shape: Shape<'_>, least: f64) -> Option<(f64, Vec<usize>)> {
        let (mut upper, mut cuts) = self.filled(shape, least * WORTHWHILE)?;
        let all = self.order.len();
        let devices_s = shape.sums.fastest.time_s(0, all) / f64::from(shape.d);
        let mut lower = devices_s / shape.most_stages as f64;
        for _ in 0..HALVINGS {
            if upper <= lower * (1.0 + 1e-4) {
                break;
            }
            let middle = if upper.is_finite() { (lower + upper) / 2.0 } else { lower * 8.0 };
            match self.filled(shape, middle) {
                Some(better) => (upper, cuts) = better,
                None => lower = middle,
            }
        }
        Some((upper, cuts))
    }

    /// Fills stages from the end, none above `target`; the largest load and where they begin, ascending.
    fn filled(&self, shape: Shape<'_>, target: f64) -> Option<(f64, Vec<usize>)> {
        let mut cuts = vec![];
        let mut slowest: f64 = 0.0;
        let mut to = self.order.len();
        while to > 0 {
            let y = cuts.len() + 1;
            if y > shape.most_stages {
                return None;
            }
            let roomy = |from: usize| self.compute_s(shape, from, to, y).is_some_and(|load| load <= target);
            // The longest run that fits by compute and memory, then the next place where little is sent.
            let (mut fits, mut fails) = (to, None);
            let mut step = 1;
            while fits > 0 && fails.is_none() {
                let from = to.saturating_sub(step);
                if roomy(from) {
                    fits = from;
                } else {
                    fails = Some(from);
                }
                step *= 2;
            }
            if let Some(mut fails) = fails {
                while fits - fails > 1 {
                    let middle = fails + (fits - fails) / 2;
                    if roomy(middle) { fits = middle } else { fails = middle }
                }
            }
            let loads = (fits..to).take(NEARBY).map(|from| (from, self.load(shape, from, to, y)));
            let (from, load) =
                loads.filter_map(|(from, load)| Some((from, load?))).find(|&(_, load)| load <= target)?;
            slowest = slowest.max(load);
            cuts.push(from);
            to = from;
        }
        cuts.reverse();
        Some((slowest, cuts))
    }

    /// Seconds of compute per sample of the nodes in between, if they fit with `y` microbatches in flight.
    fn compute_s(&self, Shape { sums, d, .. }: Shape<'_>, from: usize, to: usize, y: usize) -> Option<f64> {
        let memory_bytes = self.model.limits.memory();
        let y = y as f64;
        let fast_s = sums.fastest.time_s(from, to);
        let large = sums.fastest.memory(from, to, y);
        if large <= memory_bytes {
            return Some(fast_s / f64::from(d));
        }
        let small = sums.smallest.memory(from, to, y);
        if small > memory_bytes || small >= large {
            return None;
        }
        let share = match self.settings.recompute {
            Recompute::AllOrNone => 1.0,
            _ => (large - memory_bytes) / (large - small),
        };
        Some((fast_s + share * (sums.smallest.time_s(from, to) - fast_s)) / f64::from(d))
    }

    fn load(&self, shape: Shape<'_>, from: usize, to: usize, y: usize) -> Option<f64> {
        let compute_s = self.compute_s(shape, from, to, y)?;
        let Sums { parameters, heads_pay, tails_pay, .. } = shape.sums;
        let edge_bytes = heads_pay[from] + tails_pay[to];
        Some(compute_s + self.model.load(0.0, parameters[to] - parameters[from], edge_bytes.max(0.0), shape.d))
    }

    /// The cuts, with the longest runs halved until there are as many stages as asked for.
    fn as_many_as_asked(&self, mut cuts: Vec<usize>) -> Option<Vec<usize>> {
        let Some(asked) = self.settings.stages else { return Some(cuts) };
        while cuts.len() < asked {
            let end = |i: usize| cuts.get(i + 1).copied().unwrap_or(self.order.len());
            let longest = (0..cuts.len()).rev().max_by_key(|&i| end(i) - cuts[i])?;
            let (from, to) = (cuts[longest], end(longest));
            if to - from < 2 {
                return None;
            }
            cuts.insert(longest + 1, from + (to - from) / 2);
        }
        Some(cuts)
    }

    /// The plan with these cuts, every stage in modes that fit.
    fn built(&self, shape: Shape<'_>, cuts: &[usize]) -> Option<Best> {
        let mut plan = Plan { execution: self.settings.execution(), ..Plan::default() };
        let mut value: f64 = 0.0;
        for (i, &from) in cuts.iter().enumerate() {
            let to = cuts.get(i + 1).copied().unwrap_or(self.order.len());
            let mut nodes: Vec<usize> = self.order[from..to].iter().map(|&v| v as usize).collect();
            nodes.sort_unstable();
            // Replicas are alike: both rules of the warm-up say the same.
            let y = (cuts.len() - i) as u32;
            let picked = picking::fitting(self.model, self.settings, shape.degree, &nodes, shape.d, y)?;
            value = value.max(picked.cost);
            plan.stages.push(stage_of(self.model, shape.degree, shape.d, nodes, &picked.positions));
        }
        Some(Best { plan: plan.with_consecutive_devices(), value })
    }
}
