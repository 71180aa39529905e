//! What sets of nodes pay and hold at each of some prices, as narrow whole numbers.
//!
//! A sum over a set is kept as a number of units, of which all nodes come to 2³⁰: half as wide as a number that would be exact,
//! and what is needed of a set is on one line of the cache. The difference of two is off by a unit at the most.

/// Prices in a table.
pub(super) const PRICES: usize = 8;

/// Units that all nodes come to.
const ALL: f64 = (1 << 30) as f64;
/// Units by which the difference of two counts may be off: half a one for each, and what rounding adds.
const OFF: f64 = 1.01;

/// Numbers from this on to twice as much have no places behind the point.
const WHOLE: f64 = (1_u64 << 52) as f64;

/// A figure at each price.
pub(super) type Figures = [f64; PRICES];

/// A figure made at each price, in line wherever it is made.
#[inline]
pub(super) fn at_each<T: Copy + Default>(figure: impl Fn(usize) -> T) -> [T; PRICES] {
    let mut figures = [T::default(); PRICES];
    for (i, at) in figures.iter_mut().enumerate() {
        *at = figure(i);
    }
    figures
}

/// What a node, or the nodes of a set, pay beside their memory and hold, at each price.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Sums {
    /// Seconds.
    pub(super) cost: Figures,
    pub(super) bytes: Figures,
}

impl Sums {
    #[inline]
    pub(super) fn add(&mut self, other: &Sums) {
        for i in 0..PRICES {
            self.cost[i] += other.cost[i];
            self.bytes[i] += other.bytes[i];
        }
    }

    /// What is paid at these prices, memory included.
    #[inline]
    pub(super) fn paid(&self, prices: &Figures) -> Figures {
        at_each(|i| self.cost[i] + prices[i] * self.bytes[i])
    }

    fn map(&self, to: impl Fn(f64) -> f64) -> Sums {
        Sums { cost: at_each(|i| to(self.cost[i])), bytes: at_each(|i| to(self.bytes[i])) }
    }
}

/// The sums of a set as numbers of units.
#[derive(Debug, Clone, Copy, Default)]
#[repr(align(64))]
pub(super) struct Counts {
    cost: [i32; PRICES],
    bytes: [i32; PRICES],
}

/// What is counted in.
#[derive(Debug, Clone)]
pub(super) struct Units {
    one: Sums,
    /// One over that; 0 where there is nothing to count.
    per: Sums,
}

impl Units {
    /// Those for sums of up to `all`, none of which is negative; `None` where these are too large or too small to be counted.
    pub(super) fn new(all: &Sums) -> Option<Self> {
        let countable = |&all: &f64| all == 0.0 || (all.is_finite() && all >= ALL * f64::MIN_POSITIVE);
        let per = |all: f64| if all > 0.0 { ALL / all } else { 0.0 };
        let units = || Units { one: all.map(|all| all / ALL), per: all.map(per) };
        all.cost.iter().chain(&all.bytes).all(countable).then(units)
    }

    /// The counts of a set.
    #[inline]
    pub(super) fn counts(&self, sums: &Sums) -> Counts {
        let count = |sums: &Figures, per: &Figures| {
            // The last bits of such a sum are the nearest whole number.
            at_each(|i| (sums[i] * per[i] + WHOLE).to_bits() as i32)
        };
        Counts { cost: count(&sums.cost, &self.per.cost), bytes: count(&sums.bytes, &self.per.bytes) }
    }

    /// What the nodes of a set come to.
    #[inline]
    pub(super) fn sums(&self, set: &Counts) -> Sums {
        self.between(set, &Counts::default())
    }

    /// What the nodes of a set come to that a set within it lacks.
    #[inline]
    pub(super) fn between(&self, outer: &Counts, inner: &Counts) -> Sums {
        let of = |outer: &[i32; PRICES], inner: &[i32; PRICES], one: &Figures| {
            at_each(|i| f64::from(outer[i] - inner[i]) * one[i])
        };
        Sums {
            cost: of(&outer.cost, &inner.cost, &self.one.cost),
            bytes: of(&outer.bytes, &inner.bytes, &self.one.bytes),
        }
    }

    /// By what that may be off.
    pub(super) fn off(&self) -> Sums {
        self.one.map(|one| OFF * one)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::random::SplitMix;

    /// A figure at each price, of very different sizes.
    fn figures(random: &mut SplitMix) -> Figures {
        std::array::from_fn(|i| if i == 3 { 0.0 } else { random.unit() * 10f64.powi(random.below(40) as i32 - 20) })
    }

    #[test]
    fn differences_are_off_by_less_than_is_told() {
        let mut random = SplitMix::new(7);
        for _ in 0..200 {
            let nodes: Vec<Sums> =
                (0..50).map(|_| Sums { cost: figures(&mut random), bytes: figures(&mut random) }).collect();
            let sums = |nodes: &[Sums]| {
                let mut sums = Sums::default();
                nodes.iter().for_each(|node| sums.add(node));
                sums
            };
            let units = Units::new(&sums(&nodes)).unwrap();
            let off = units.off();
            for inner in 0..nodes.len() {
                let outer = inner + random.below(nodes.len() - inner + 1);
                let counts = |end: usize| units.counts(&sums(&nodes[..end]));
                let (stage, exact) = (units.between(&counts(outer), &counts(inner)), sums(&nodes[inner..outer]));
                for i in 0..PRICES {
                    assert!((stage.cost[i] - exact.cost[i]).abs() <= off.cost[i], "{stage:?} {exact:?}");
                    assert!((stage.bytes[i] - exact.bytes[i]).abs() <= off.bytes[i], "{stage:?} {exact:?}");
                }
            }
        }
    }

    #[test]
    fn what_cannot_be_counted_is_not() {
        let all = |cost: f64| Sums { cost: [cost; PRICES], bytes: [1.0; PRICES] };
        for (cost, countable) in
            [(0.0, true), (1e-290, true), (1e300, true), (1e-310, false), (1e308 * 10.0, false), (f64::NAN, false)]
        {
            assert_eq!(Units::new(&all(cost)).is_some(), countable, "{cost}");
        }
        let units = Units::new(&all(0.0)).unwrap();
        assert_eq!(units.sums(&units.counts(&all(0.0))).cost, [0.0; PRICES]);
    }
}
