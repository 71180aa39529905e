//! What cannot be done with less: a max-load below which no split is, and the accelerators that a set needs at least.
//!
//! Accelerators together take their number times the bound, CPUs the classes that they are fastest with, parted as one
//! likes, but none that a CPU has not done before the bound of a search ([`Need`]): the fractional knapsack of [`Absorbed`].
//! `O(classes · log classes)` once, then `O(log classes)` a question.

use super::{
    PlacementLimits,
    load::{ClassCosts, Sums},
};

/// A max-load that no split over these classes can be below, contiguous or not: the accelerators together cannot do
/// more than the bound each, nor the CPUs absorb more than their fastest classes, and every class is on some device.
pub(super) fn lower_bound(costs: &ClassCosts, limits: &PlacementLimits) -> f64 {
    let alone = (0..costs.len())
        .map(|x| {
            let accelerator = if costs.supported[x] && limits.accelerators > 0 && costs.size[x] <= limits.memory_bytes {
                costs.accelerator[x]
            } else {
                f64::INFINITY
            };
            accelerator.min(if limits.cpus > 0 { costs.cpu[x] } else { f64::INFINITY })
        })
        .fold(0.0, f64::max);
    let total: f64 = costs.accelerator.iter().sum();
    if !alone.is_finite() || limits.accelerators == 0 {
        return if alone.is_finite() {
            alone.max(costs.cpu.iter().sum::<f64>() / f64::from(limits.cpus))
        } else {
            alone
        };
    }
    let absorbed = Absorbed::new(costs, &costs.accelerator, f64::INFINITY);
    let (mut low, mut high) = (0.0, total / f64::from(limits.accelerators));
    loop {
        let middle = (low + high) / 2.0;
        if middle <= low || middle >= high {
            return low.max(alone);
        }
        let room = middle * f64::from(limits.accelerators);
        if room < absorbed.left(f64::from(limits.cpus) * middle) { low = middle } else { high = middle }
    }
}

/// How much of a quantity CPUs can take over within some time: the fractional knapsack's answer, which no choice of
/// classes exceeds.
#[derive(Debug)]
struct Absorbed {
    /// Time and quantity of classes, best ratio first, summed up.
    prefix: Vec<(f64, f64)>,
    /// The quantity of each class in that order, and what it and all after it sum to.
    rest: Vec<(f64, f64)>,
}

impl Absorbed {
    /// Of classes that a CPU has done before `upper`.
    fn new(costs: &ClassCosts, quantity: &[f64], upper: f64) -> Self {
        let mut order: Vec<usize> = (0..costs.len()).filter(|&x| quantity[x] > 0.0 && costs.cpu[x] < upper).collect();
        order.sort_by(|&a, &b| (costs.cpu[a] / quantity[a]).total_cmp(&(costs.cpu[b] / quantity[b])));
        let mut sum = (0.0, 0.0);
        let mut prefix = vec![sum];
        for &x in &order {
            sum = (sum.0 + costs.cpu[x], sum.1 + quantity[x]);
            prefix.push(sum);
        }
        let mut behind = 0.0;
        let mut rest: Vec<(f64, f64)> = order
            .iter()
            .rev()
            .map(|&x| {
                (quantity[x], {
                    behind += quantity[x];
                    behind
                })
            })
            .collect();
        rest.reverse();
        Absorbed { prefix, rest }
    }

    /// How much no CPU takes over within some time: added up from what is left, for a difference to the total would lose
    /// what is small beside what was taken.
    fn left(&self, time: f64) -> f64 {
        let fits = self.prefix.partition_point(|&(used, _)| used <= time);
        let (used, _) = self.prefix[fits - 1];
        let Some(&(next_used, _)) = self.prefix.get(fits) else { return 0.0 };
        let untouched = self.rest.get(fits).map_or(0.0, |&(_, sum)| sum);
        untouched + self.rest[fits - 1].0 * ((next_used - time) / (next_used - used))
    }

    fn within(&self, time: f64) -> f64 {
        let fits = self.prefix.partition_point(|&(used, _)| used <= time);
        let (used, quantity) = self.prefix[fits - 1];
        match self.prefix.get(fits) {
            Some(&(next_used, next)) => quantity + (next - quantity) * (time - used) / (next_used - used),
            None => quantity,
        }
    }
}

/// How many accelerators a set needs beside a number of CPUs if no device may be busier than the bound.
#[derive(Debug)]
pub(super) struct Need {
    upper: f64,
    memory: f64,
    /// By number of CPUs: compute, compute with border transfers, and memory that they can take over before `upper`.
    relief: Vec<[f64; 3]>,
}

impl Need {
    /// For a search with so many CPUs, below a bound on the load, and a memory per accelerator in bytes.
    pub(super) fn new(costs: &ClassCosts, cpus: usize, upper: f64, memory: f64) -> Self {
        let with_nets: Vec<f64> = (0..costs.len())
            .map(|x| costs.accelerator[x] + costs.nets(x).iter().map(|&net| costs.net_cost(net as usize)).sum::<f64>())
            .collect();
        let quantities =
            [&costs.accelerator, &with_nets, &costs.size].map(|quantity| Absorbed::new(costs, quantity, upper));
        let relief = (0..=cpus)
            .map(|c| {
                let time = if c == 0 { None } else { Some(c as f64 * upper) };
                quantities.each_ref().map(|absorbed| time.map_or(0.0, |time| absorbed.within(time)))
            })
            .collect();
        Need { upper, memory, relief }
    }

    /// At least this many accelerators beside `c` CPUs for a set that sums to `of`; its cut is that of its border.
    #[inline]
    pub(super) fn accelerators(&self, c: usize, of: &Sums) -> usize {
        let [compute, with_nets, size] = self.relief[c];
        let time = (of.accelerator - compute).max(of.accelerator + of.cut - with_nets);
        // A little less, so that rounding never rules out what fits exactly; 0/0 where nothing is needed of nothing.
        let need = (time / self.upper).max((of.size - size) / self.memory) - 1e-9;
        // Rounded up: `ceil` is a call on machines that are not asked for more than the oldest of their kind.
        let whole = need as usize;
        whole.saturating_add(usize::from(need > whole as f64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    #[test]
    fn a_cpu_takes_over_no_part_of_what_it_has_not_done_before_the_bound() {
        let costs = ClassCosts::of_times(&[(30.0, 9.0), (80.0, 20.0), (40.0, 11.0)]);
        let all = Sums { accelerator: 150.0, ..Sums::default() };
        let needed = |upper: f64, c: usize| Need::new(&costs, 2, upper, f64::INFINITY).accelerators(c, &all);
        // Below 10 only the first is for a CPU, below 12 the last as well; 20 is not below 20.
        assert_eq!([0, 1, 2].map(|c| needed(10.0, c)), [15, 12, 12]);
        assert_eq!([0, 1, 2].map(|c| needed(12.0, c)), [13, 9, 7]);
        assert_eq!(needed(20.0, 2), 4);
        assert!(needed(20.5, 2) < 4);
    }

    #[test]
    fn what_fits_exactly_needs_no_device_more() {
        let costs = ClassCosts::of_times(&[(0.1, 1.0); 3]);
        let need = Need::new(&costs, 0, 0.1, f64::INFINITY);
        let of = |accelerator: f64| need.accelerators(0, &Sums { accelerator, ..Sums::default() });
        assert_eq!([0.0, 0.05, 0.1, 0.1 + 0.1 + 0.1, 0.31].map(of), [0, 1, 1, 3, 4]);
        assert_eq!(Need::new(&costs, 0, 0.0, 0.0).accelerators(0, &Sums::default()), 0);
        assert!(Need::new(&costs, 0, 0.0, 0.0).accelerators(0, &Sums { size: 1.0, ..Sums::default() }) > 1_000_000);
    }
}
