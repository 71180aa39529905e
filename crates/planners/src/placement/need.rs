//! Lower bounds: on the max-load of all splits, and on the number of accelerators of a set.
//!
//! Together, accelerators take at most their number times the bound. CPUs take the classes on which they save most, in
//! fractions ([`FractionalKnapsack`]). With a search bound ([`AcceleratorNeed`]), classes whose CPU time reaches the bound
//! are excluded. `O(classes · log classes)` once, then `O(log classes)` per query.

use super::{
    PlacementLimits,
    load::{ClassCosts, Sums},
};

/// Lower bound on the max-load of all splits over these classes, contiguous or not. Each accelerator takes at most the
/// bound, the CPUs absorb at most their best classes, and every class is on some device.
pub(super) fn lower_bound(costs: &ClassCosts, limits: &PlacementLimits) -> f64 {
    let alone = |class: usize| {
        let fits = costs.supported[class] && limits.accelerators > 0 && costs.size[class] <= limits.memory_bytes;
        if fits { costs.accelerator[class] } else { f64::INFINITY }
    };
    bound_of(costs, alone, f64::from(limits.accelerators), limits.cpus)
}

/// Lower bound on the max-load of all splits. `alone` is the shortest time of a class on an accelerator, infinite if it
/// fits on none, and `speed` the sum of the accelerators' speeds.
pub(super) fn bound_of(costs: &ClassCosts, alone: impl Fn(usize) -> f64, speed: f64, cpus: u32) -> f64 {
    let on_cpu = |class: usize| if cpus > 0 { costs.cpu[class] } else { f64::INFINITY };
    let alone = (0..costs.len()).map(|class| alone(class).min(on_cpu(class))).fold(0.0, f64::max);
    let total: f64 = costs.accelerator.iter().sum();
    if !alone.is_finite() || speed == 0.0 {
        return if alone.is_finite() { alone.max(costs.cpu.iter().sum::<f64>() / f64::from(cpus)) } else { alone };
    }
    let absorbed = FractionalKnapsack::new(costs, &costs.accelerator, f64::INFINITY);
    let (mut low, mut high) = (0.0, total / speed);
    loop {
        let middle = (low + high) / 2.0;
        if middle <= low || middle >= high {
            return low.max(alone);
        }
        if middle * speed < absorbed.left(f64::from(cpus) * middle) { low = middle } else { high = middle }
    }
}

/// Amount of a quantity that CPUs can absorb within some time: the optimum of the fractional knapsack, an upper bound
/// for every choice of classes.
#[derive(Debug)]
pub(super) struct FractionalKnapsack {
    /// Prefix sums of time and quantity over classes, best ratio first.
    prefix: Vec<(f64, f64)>,
    /// Quantity of each class in that order, and the sum from it to the end.
    rest: Vec<(f64, f64)>,
}

impl FractionalKnapsack {
    /// Considers classes whose CPU time is below `upper`.
    pub(super) fn new(costs: &ClassCosts, quantity: &[f64], upper: f64) -> Self {
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
        FractionalKnapsack { prefix, rest }
    }

    /// Quantity that CPUs do not absorb within `time`. It is summed from the remaining classes, because the difference
    /// from the total would lose small values.
    fn left(&self, time: f64) -> f64 {
        let fits = self.prefix.partition_point(|&(used, _)| used <= time);
        let (used, _) = self.prefix[fits - 1];
        let Some(&(next_used, _)) = self.prefix.get(fits) else { return 0.0 };
        let untouched = self.rest.get(fits).map_or(0.0, |&(_, sum)| sum);
        untouched + self.rest[fits - 1].0 * ((next_used - time) / (next_used - used))
    }

    /// Quantity that CPUs absorb within `time`, at most.
    pub(super) fn within(&self, time: f64) -> f64 {
        let fits = self.prefix.partition_point(|&(used, _)| used <= time);
        let (used, quantity) = self.prefix[fits - 1];
        match self.prefix.get(fits) {
            Some(&(next_used, next)) => quantity + (next - quantity) * (time - used) / (next_used - used),
            None => quantity,
        }
    }
}

/// Lower bound on the accelerators of a set beside a number of CPUs, if no load may exceed the bound.
#[derive(Debug)]
pub(super) struct AcceleratorNeed {
    upper: f64,
    memory: f64,
    /// By number of CPUs: compute, compute with border transfers, and memory that they can absorb below `upper`.
    relief: Vec<[f64; 3]>,
}

impl AcceleratorNeed {
    /// For up to `cpus` CPUs, a bound `upper` on the load, and the memory of an accelerator in bytes.
    pub(super) fn new(costs: &ClassCosts, cpus: usize, upper: f64, memory: f64) -> Self {
        let with_nets: Vec<f64> = (0..costs.len())
            .map(|x| costs.accelerator[x] + costs.nets(x).iter().map(|&net| costs.net_cost(net as usize)).sum::<f64>())
            .collect();
        let quantities = [&costs.accelerator, &with_nets, &costs.size]
            .map(|quantity| FractionalKnapsack::new(costs, quantity, upper));
        let relief = (0..=cpus)
            .map(|c| {
                let time = if c == 0 { None } else { Some(c as f64 * upper) };
                quantities.each_ref().map(|absorbed| time.map_or(0.0, |time| absorbed.within(time)))
            })
            .collect();
        AcceleratorNeed { upper, memory, relief }
    }

    /// Lower bound on the accelerators beside `c` CPUs for a set with the sums `of`, whose cut is that of its border.
    #[inline]
    pub(super) fn accelerators(&self, c: usize, of: &Sums) -> usize {
        let [compute, with_nets, size] = self.relief[c];
        let time = (of.accelerator - compute).max(of.accelerator + of.cut - with_nets);
        // The tolerance keeps exact fits. 0/0 is NaN, which converts to 0.
        let need = (time / self.upper).max((of.size - size) / self.memory) - 1e-9;
        // Rounds up; `ceil` is a function call on baseline x86-64.
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
        let needed = |upper: f64, c: usize| AcceleratorNeed::new(&costs, 2, upper, f64::INFINITY).accelerators(c, &all);
        // Below 10 only the first is for a CPU, below 12 the last as well; 20 is not below 20.
        assert_eq!([0, 1, 2].map(|c| needed(10.0, c)), [15, 12, 12]);
        assert_eq!([0, 1, 2].map(|c| needed(12.0, c)), [13, 9, 7]);
        assert_eq!(needed(20.0, 2), 4);
        assert!(needed(20.5, 2) < 4);
    }

    #[test]
    fn what_fits_exactly_needs_no_device_more() {
        let costs = ClassCosts::of_times(&[(0.1, 1.0); 3]);
        let need = AcceleratorNeed::new(&costs, 0, 0.1, f64::INFINITY);
        let of = |accelerator: f64| need.accelerators(0, &Sums { accelerator, ..Sums::default() });
        assert_eq!([0.0, 0.05, 0.1, 0.1 + 0.1 + 0.1, 0.31].map(of), [0, 1, 1, 3, 4]);
        assert_eq!(AcceleratorNeed::new(&costs, 0, 0.0, 0.0).accelerators(0, &Sums::default()), 0);
        assert!(
            AcceleratorNeed::new(&costs, 0, 0.0, 0.0).accelerators(0, &Sums { size: 1.0, ..Sums::default() })
                > 1_000_000
        );
    }
}
