//! Widest ring through some devices: a cycle whose narrowest step is widest.
//!
//! Up to [`EXACT`] devices by dynamic programming over subsets, `O(2^n · n²)` time and `O(2^n · n)` memory. Above, by
//! nearest neighbours and reversals of parts, which gives a bound without proof. Ties are broken by the order of the
//! devices, so the result is deterministic.

/// Maximum number of devices for which the ring is proven to be the widest.
pub(super) const EXACT: usize = 9;
/// Maximum number of devices for which parts are reversed.
const REVERSED: usize = 64;

/// Cycle through all devices of a group.
#[derive(Debug, Clone, PartialEq)]
pub struct Ring {
    /// Positions in the group, in the order of the ring.
    pub order: Vec<usize>,
    /// Width of the narrowest step; infinite for a single device.
    pub width: f64,
    /// True if no ring is wider.
    pub proven: bool,
}

impl Ring {
    /// Widest ring through `count` devices, given the width of each step.
    pub fn widest(count: usize, width: impl Fn(usize, usize) -> f64) -> Ring {
        match count {
            0 | 1 => Ring { order: (0..count).collect(), width: f64::INFINITY, proven: true },
            2 => Ring { order: vec![0, 1], width: width(0, 1).min(width(1, 0)), proven: true },
            _ if count <= EXACT => exact(count, &width),
            _ => heuristic(count, &width),
        }
    }

    /// Steps of the ring, each from a position to the next.
    pub fn steps(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        let count = if self.order.len() < 2 { 0 } else { self.order.len() };
        (0..count).map(move |at| (self.order[at], self.order[(at + 1) % count]))
    }
}

fn exact(count: usize, width: &impl Fn(usize, usize) -> f64) -> Ring {
    // `best` by set of devices and its last one: width of the widest path from device 0 through the set. Device 0 is in
    // no set.
    let others = count - 1;
    let mut best = vec![f64::NEG_INFINITY; (1 << others) * others];
    let mut before = vec![usize::MAX; best.len()];
    for last in 0..others {
        best[(1 << last) * others + last] = width(0, last + 1);
    }
    let step = |from: usize, to: usize| if from == to { 0.0 } else { width(from + 1, to + 1) };
    let widths: Vec<f64> = (0..others * others).map(|at| step(at / others, at % others)).collect();
    for set in 1usize..1 << others {
        for last in 0..others {
            if set >> last & 1 == 0 {
                continue;
            }
            let here = best[set * others + last];
            for next in 0..others {
                if set >> next & 1 == 1 {
                    continue;
                }
                let there = (set | 1 << next) * others + next;
                let through = here.min(widths[last * others + next]);
                if through > best[there] {
                    best[there] = through;
                    before[there] = last;
                }
            }
        }
    }
    let full = (1 << others) - 1;
    let closed = |last: usize| best[full * others + last].min(width(last + 1, 0));
    let mut last = (0..others).fold(0, |best, last| if closed(last) > closed(best) { last } else { best });
    let width = closed(last);
    let (mut set, mut order) = (full, vec![]);
    loop {
        order.push(last + 1);
        let previous = before[set * others + last];
        if previous == usize::MAX {
            break;
        }
        set &= !(1 << last);
        last = previous;
    }
    order.push(0);
    order.reverse();
    Ring { order, width, proven: true }
}

fn narrowest(order: &[usize], width: &impl Fn(usize, usize) -> f64) -> (f64, usize) {
    let step = |at: usize| width(order[at], order[(at + 1) % order.len()]);
    (0..order.len()).map(|at| (step(at), at)).fold((f64::INFINITY, 0), |a, b| if b.0 < a.0 { b } else { a })
}

fn heuristic(count: usize, width: &impl Fn(usize, usize) -> f64) -> Ring {
    let mut free: Vec<usize> = (1..count).collect();
    let mut order = vec![0];
    while !free.is_empty() {
        let here = order[order.len() - 1];
        let widest = (0..free.len()).fold(0, |a, b| if width(here, free[b]) > width(here, free[a]) { b } else { a });
        order.push(free.remove(widest));
    }
    let natural: Vec<usize> = (0..count).collect();
    if narrowest(&natural, width).0 >= narrowest(&order, width).0 {
        order = natural;
    }
    let (mut least, mut at) = narrowest(&order, width);
    // Longer rings are not improved.
    let mut reversing = count <= REVERSED;
    while reversing {
        order.rotate_left((at + 1) % count);
        // The narrowest step now leads from the last device to the first.
        let tried = (1..count - 1).map(|end| {
            let mut other = order.clone();
            other[..=end].reverse();
            let (width, at) = narrowest(&other, width);
            (width, at, other)
        });
        let best = tried.fold(None, |best: Option<(f64, usize, Vec<usize>)>, tried| match best {
            Some(best) if best.0 >= tried.0 => Some(best),
            _ => Some(tried),
        });
        match best {
            Some((wider, next, other)) if wider > least => (least, at, order) = (wider, next, other),
            _ => reversing = false,
        }
    }
    let first = order.iter().position(|&device| device == 0).unwrap_or(0);
    order.rotate_left(first);
    Ring { order, width: least, proven: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All orders of the rest, by exchange.
    fn brute(order: &mut Vec<usize>, from: usize, width: &impl Fn(usize, usize) -> f64) -> f64 {
        if from == order.len() {
            return narrowest(order, width).0;
        }
        let mut best = 0.0f64;
        for at in from..order.len() {
            order.swap(from, at);
            best = best.max(brute(order, from + 1, width));
            order.swap(from, at);
        }
        best
    }

    #[test]
    fn the_widest_ring_is_that_of_all_orders() {
        let mut state = 7u64;
        let mut random = move || {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) as usize
        };
        for round in 0..60 {
            let count = 2 + round % 6;
            let widths: Vec<f64> = (0..count * count).map(|_| (random() % 9) as f64).collect();
            let width = |a: usize, b: usize| widths[a * count + b];
            let ring = Ring::widest(count, width);
            assert_eq!(ring.width, brute(&mut (0..count).collect(), 1, &width), "{count} {widths:?}");
            assert_eq!(ring.steps().map(|(a, b)| width(a, b)).fold(f64::INFINITY, f64::min), ring.width);
            let mut sorted = ring.order.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..count).collect::<Vec<_>>());
            let guess = heuristic(count.max(3), &|a, b| if a < count && b < count { width(a, b) } else { 0.0 });
            assert!(count < 3 || guess.width <= ring.width);
        }
    }

    #[test]
    fn long_rings_keep_to_neighbours() {
        // A cycle of 16 devices, numbered by steps of 5.
        let near = |a: usize, b: usize| {
            let apart = (a * 13 + 16 - b * 13 % 16) % 16;
            if apart == 1 || apart == 15 { 2.0 } else { 1.0 }
        };
        assert_eq!(Ring::widest(16, near).width, 2.0);
    }
}
