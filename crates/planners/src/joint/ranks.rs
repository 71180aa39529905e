//! Lower bound on recompute time in long networks of unlike nodes, from price classes.
//!
//! For one number of microbatches in flight, nodes are sorted by price (seconds per byte saved) and divided into
//! classes of equal size. A walk over the classes, with prefix sums over units, bounds the linear relaxation from
//! below. It takes all of the cheaper classes, and the remaining bytes at the lowest price of the last one.
//!
//! `O(nodes log nodes + classes · units)` time once, `O(classes)` for each query; `O(classes · units)` memory.

/// Number of price classes. Bounds the time of a query and the memory.
const CLASSES: usize = 32;
/// Rounding error of sums, relative to the bytes to save. Units that fit are not refused because of it.
const FEASIBILITY_TOLERANCE: f64 = 1e-9;

/// Class of nodes with about the same price.
#[derive(Debug, Clone)]
struct PriceClass {
    /// Least seconds per byte in the class.
    price: f64,
    /// Seconds and bytes saved before each boundary.
    before: Vec<[f64; 2]>,
}

/// All nodes that save bytes, cheapest class first.
#[derive(Debug, Clone)]
pub(super) struct Ranks(Vec<PriceClass>);

impl Ranks {
    /// Builds the classes from seconds and bytes saved of the nodes of each unit.
    pub(super) fn new(units: &[Vec<(f64, f64)>]) -> Self {
        let nodes = units.iter().enumerate().flat_map(|(unit, nodes)| nodes.iter().map(move |&node| (unit, node)));
        let mut nodes: Vec<(usize, (f64, f64))> = nodes.filter(|(_, (_, saved))| *saved > 0.0).collect();
        let price = |(seconds, saved): (f64, f64)| seconds / saved;
        nodes.sort_by(|a, b| price(a.1).total_cmp(&price(b.1)).then(a.0.cmp(&b.0)));
        let each = nodes.len().div_ceil(CLASSES).max(1);
        let class = |nodes: &[(usize, (f64, f64))]| {
            let mut before = vec![[0.0; 2]; units.len() + 1];
            for &(unit, (seconds, saved)) in nodes {
                before[unit + 1][0] += seconds;
                before[unit + 1][1] += saved;
            }
            for unit in 0..units.len() {
                before[unit + 1] = [before[unit][0] + before[unit + 1][0], before[unit][1] + before[unit + 1][1]];
            }
            PriceClass { price: price(nodes[0].1), before }
        };
        Ranks(nodes.chunks(each).map(class).collect())
    }

    /// Lower bound on the seconds to save `shave` bytes in units `a .. b`; `None` if all nodes together do not save
    /// them.
    pub(super) fn least(&self, a: usize, b: usize, shave: f64) -> Option<f64> {
        let (mut left, mut least) = (shave, 0.0);
        for class in &self.0 {
            let [seconds, saved] = [0, 1].map(|part| class.before[b][part] - class.before[a][part]);
            if left <= saved {
                return Some(least + class.price * left);
            }
            least += seconds;
            left -= saved;
        }
        (left <= FEASIBILITY_TOLERANCE * shave).then_some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::random::SplitMix;

    /// The linear relaxation itself: cheapest bytes first, the last node in part.
    fn relaxed(nodes: &[(f64, f64)], shave: f64) -> Option<f64> {
        let mut nodes = nodes.to_vec();
        nodes.sort_by(|a, b| (a.0 / a.1).total_cmp(&(b.0 / b.1)));
        let (mut left, mut least) = (shave, 0.0);
        for (seconds, saved) in nodes {
            least += seconds * (left / saved).min(1.0);
            left -= saved;
            if left <= 0.0 {
                return Some(least);
            }
        }
        None
    }

    #[test]
    fn a_run_is_bounded_from_below_and_closely() {
        let mut random = SplitMix::new(7);
        let mut draw = || 1.0 + (random.next_u64() % 1000) as f64;
        let units: Vec<Vec<(f64, f64)>> = (0..40).map(|_| (0..20).map(|_| (draw(), draw())).collect()).collect();
        let ranks = Ranks::new(&units);
        let (mut told, mut worst) = (0, 1.0f64);
        for (a, b) in (0..40).flat_map(|a| (a + 1..=40).map(move |b| (a, b))) {
            let run: Vec<(f64, f64)> = units[a..b].concat();
            let all: f64 = run.iter().map(|node| node.1).sum();
            for share in [0.1, 0.5, 0.9, 0.999, 1.5] {
                let (least, exact) = (ranks.least(a, b, all * share), relaxed(&run, all * share));
                assert_eq!(least.is_some(), exact.is_some(), "{a}..{b} {share}");
                let (Some(least), Some(exact)) = (least, exact) else { continue };
                assert!(least <= exact * (1.0 + 1e-12), "{a}..{b} {share}: {least} above {exact}");
                if b - a > 10 && share >= 0.5 {
                    worst = worst.min(least / exact);
                }
                told += 1;
            }
        }
        assert!(told > 3000 && worst > 0.8, "{told} {worst}");
    }
}
