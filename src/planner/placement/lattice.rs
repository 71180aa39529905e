//! The sets of classes that a prefix of the pipeline may hold (closed sets), and the steps between them.
//!
//! [`SuccessorSets`] enumerates sets closed under successors; here they are closed under predecessors, so it gets the
//! reversed order. Each step to a set with one class less carries that class, so that a walk needs no bit sets. A walk
//! takes classes out from the last to the first of one topological order: each set below is met along exactly one path,
//! so that nothing has to be remembered of the sets that were seen. It takes the last class first, so that large
//! differences come early.

use std::{cmp::Reverse, ops::Range};

use super::load::{ClassCosts, Holding, Sums};
use crate::{
    graph::{Dag, Enumeration, SuccessorSets},
    planner::Search,
};

/// All closed sets, by size; the first is empty, the last is full.
#[derive(Debug)]
pub struct Lattice {
    start: Vec<u32>,
    /// Set below and class, by place of the class within each set.
    steps: Vec<(u32, u32)>,
    /// For each step, the place of its class in a topological order.
    places: Vec<u32>,
    /// The sets of each size in turn.
    levels: Vec<Range<usize>>,
    /// All sets but the empty one, each behind the one that it grows from (`grows_from`), depth first.
    grown: Vec<u32>,
}

/// Bytes that the sets may take while they are enumerated.
const MOST_BYTES: usize = 1 << 28;

/// Why there is no lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// More closed sets than so many.
    TooMany(usize),
    /// The caller asked to stop.
    Cancelled,
}

impl Lattice {
    /// Enumerates the closed sets of an order over classes, at most `limit` of them.
    ///
    /// # Errors
    /// [`Refused`] if there are more, or the search was cancelled.
    pub fn new(order: &Dag, limit: usize, search: &Search) -> Result<Self, Refused> {
        // A set is a bit for every class, and there is one of every size.
        let limit = limit.min(MOST_BYTES / (order.len() / 8 + 8));
        if order.len() >= limit {
            return Err(Refused::TooMany(limit));
        }
        let reversed = order.edges().iter().map(|&(u, v)| (v, u)).collect();
        let reversed = Dag::new(order.len(), reversed).expect("the reverse of an acyclic graph is acyclic");
        let sets = match SuccessorSets::enumerate(&reversed, limit, &|| search.cancelled()) {
            Enumeration::Complete(sets) => sets,
            Enumeration::TooMany => return Err(Refused::TooMany(limit)),
            Enumeration::Cancelled => return Err(Refused::Cancelled),
        };
        let mut start = Vec::with_capacity(sets.len() + 1);
        start.push(0);
        let mut place = vec![0; order.len()];
        for (at, &class) in order.topological_order().iter().enumerate() {
            place[class as usize] = at as u32;
        }
        let mut steps: Vec<(u32, u32)> = vec![];
        for set in 0..sets.len() {
            steps.extend(sets.steps_below(set));
            let from = *start.last().expect("there is a first start") as usize;
            steps[from..].sort_unstable_by_key(|&(_, class)| Reverse(place[class as usize]));
            start.push(steps.len() as u32);
        }
        let places = steps.iter().map(|&(_, class)| place[class as usize]).collect();
        Ok(Lattice::of(start, steps, places))
    }

    /// The prefixes of one order of all classes, without enumerating anything.
    pub fn chain(order: &[u32]) -> Self {
        let steps = order.iter().enumerate().map(|(below, &class)| (below as u32, class)).collect();
        let start = [0].into_iter().chain(0..=order.len() as u32).collect();
        Lattice::of(start, steps, (0..order.len() as u32).collect())
    }

    /// What follows from the steps of all sets.
    fn of(start: Vec<u32>, steps: Vec<(u32, u32)>, places: Vec<u32>) -> Self {
        let mut lattice = Lattice { start, steps, places, levels: vec![], grown: vec![] };
        let mut size = vec![0u32; lattice.len()];
        lattice.levels.push(0..1);
        // By set, how many grow from it; then where those of the next begin among all.
        let mut next = vec![0u32; lattice.len() + 1];
        for set in 1..lattice.len() {
            let (below, _) = lattice.grows_from(set);
            size[set] = size[below] + 1;
            next[below + 1] += 1;
            match lattice.levels.get_mut(size[set] as usize) {
                Some(level) => level.end = set + 1,
                None => lattice.levels.push(set..set + 1),
            }
        }
        (0..lattice.len()).for_each(|set| next[set + 1] += next[set]);
        let first = next.clone();
        let mut larger = vec![0u32; lattice.len() - 1];
        for set in 1..lattice.len() {
            let place = &mut next[lattice.grows_from(set).0];
            larger[*place as usize] = set as u32;
            *place += 1;
        }
        lattice.grown.reserve(larger.len());
        let mut waiting = vec![0u32];
        while let Some(set) = waiting.pop() {
            if set > 0 {
                lattice.grown.push(set);
            }
            let larger = &larger[first[set as usize] as usize..first[set as usize + 1] as usize];
            waiting.extend(larger.iter().rev());
        }
        lattice
    }

    /// The set and class that a set which is not empty is made of.
    #[inline]
    fn grows_from(&self, set: usize) -> (usize, u32) {
        let (below, class) = self.steps[self.start[set] as usize];
        (below as usize, class)
    }

    /// What every closed set sums to as one device, into `sums`: each grows by one class from one below it, depth first, so that
    /// one count of every net will do. `O(sets · nets of a class)`.
    pub fn sum_up(&self, costs: &ClassCosts, sums: &mut Vec<Sums>) {
        sums.clear();
        sums.resize(self.len(), Sums::default());
        let mut holding = Holding::new(costs);
        let mut path: Vec<(usize, u32)> = vec![(0, 0)];
        for &set in &self.grown {
            let (below, class) = self.grows_from(set as usize);
            while let Some((_, last)) = path.pop_if(|&mut (held, _)| held != below) {
                holding.remove(last as usize);
            }
            sums[set as usize] = holding.add(class as usize, &sums[below]);
            path.push((set as usize, class));
        }
    }

    /// The closed sets by size: the range of each size in turn.
    pub fn levels(&self) -> &[Range<usize>] {
        &self.levels
    }

    /// How walks take the classes of a closed set out, the last first: the set that is left each time, the class, and its place
    /// in their order.
    pub(super) fn taken_out(&self, set: usize) -> impl Iterator<Item = (usize, u32, usize)> {
        let step = |set: usize| {
            (set > 0).then(|| {
                let ((below, class), place) = (self.grows_from(set), self.places[self.start[set] as usize]);
                (below, class, place as usize)
            })
        };
        std::iter::successors(step(set), move |&(below, ..)| step(below))
    }

    /// Number of closed sets.
    pub fn len(&self) -> usize {
        self.start.len() - 1
    }

    /// Never true: the empty set is always there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Number of classes of a closed set.
    pub(super) fn size(&self, set: usize) -> usize {
        self.levels.partition_point(|level| level.end <= set)
    }

    /// The closed sets with one class less, each with that class.
    #[inline]
    pub fn below(&self, set: usize) -> &[(u32, u32)] {
        &self.steps[self.start[set] as usize..self.start[set + 1] as usize]
    }

    /// The classes of a closed set that are not in another one below it, ascending.
    pub fn between(&self, set: usize, below: usize) -> Vec<usize> {
        let members = |set: usize| {
            let mut classes: Vec<usize> = self.taken_out(set).map(|(_, class, _)| class as usize).collect();
            classes.sort_unstable();
            classes
        };
        let lower = members(below);
        members(set).into_iter().filter(|class| lower.binary_search(class).is_err()).collect()
    }
}

/// A walk down from one closed set through all closed sets below it whose difference to it may still be a device; at each of
/// them it has an aim, of what to look for below it.
#[derive(Debug)]
pub(crate) struct Walk<'a, Aim> {
    lattice: &'a Lattice,
    holding: Holding,
    /// Where it was on the way to where it is.
    path: Vec<Level<Aim>>,
    /// The closed set that what is held lies within.
    within: usize,
}

/// Who walks down, and where to.
pub(crate) trait Visit<Aim> {
    /// Whether a closed set is worth to be visited, or any below it.
    fn is_worth(&mut self, set: usize, aim: Aim) -> bool;

    /// Where to go from a closed set, and what is held of the classes above it.
    fn visit(&mut self, set: usize, held: &Sums) -> Onward<Aim>;
}

/// Who goes wherever they are told to, without an aim.
impl<F: FnMut(usize, &Sums) -> Onward<()>> Visit<()> for F {
    fn is_worth(&mut self, _set: usize, (): ()) -> bool {
        true
    }

    fn visit(&mut self, set: usize, held: &Sums) -> Onward<()> {
        self(set, held)
    }
}

/// Where a walk goes from a set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward<Aim> {
    /// To the sets below it, with an aim.
    Below(Aim),
    /// Past it: the sets below it are not visited along this path.
    Past,
    /// Nowhere: the walk is over.
    Stop,
}

/// Where a walk is among the steps down from one closed set.
#[derive(Debug)]
struct Level<Aim> {
    next: u32,
    end: u32,
    /// The class that was taken out last.
    class: u32,
    /// What is held.
    sums: Sums,
    aim: Aim,
}

impl<'a, Aim: Copy> Walk<'a, Aim> {
    /// A walker over a lattice.
    pub(crate) fn new(lattice: &'a Lattice, costs: &ClassCosts) -> Self {
        Walk { lattice, holding: Holding::confined(costs), path: vec![], within: 0 }
    }

    /// Lets what is held lie within another closed set. Both are followed down to where they meet: that is near for closed sets that
    /// are walked one after the other.
    fn stay_within(&mut self, set: usize) {
        let (mut old, mut new) = (std::mem::replace(&mut self.within, set), set);
        while old != new {
            // The larger number is of a set that is no smaller.
            if old > new {
                let (below, class) = self.lattice.below(old)[0];
                self.holding.forbid(class as usize);
                old = below as usize;
            } else {
                let (below, class) = self.lattice.below(new)[0];
                self.holding.allow(class as usize);
                new = below as usize;
            }
        }
    }

    /// What classes sum to as one device within the closed set that was walked down from last, taken in this order; or
    /// until no more is wanted.
    pub(crate) fn sum(&mut self, classes: impl Iterator<Item = u32> + Clone, wanted: impl Fn(&Sums) -> bool) -> Sums {
        let (mut sums, mut held) = (Sums::default(), 0);
        for class in classes.clone() {
            sums = self.holding.add(class as usize, &sums);
            held += 1;
            if !wanted(&sums) {
                break;
            }
        }
        classes.take(held).for_each(|class| self.holding.remove(class as usize));
        sums
    }

    /// Visits each closed set strictly below `set` once that is worth it, with the sums of the classes between the two. The
    /// visitor says whether to go on below: the differences further down contain this one.
    pub(crate) fn down(&mut self, set: usize, aim: Aim, visitor: &mut impl Visit<Aim>) {
        self.stay_within(set);
        let Walk { lattice, holding, path, .. } = self;
        let level = |set: usize, class: u32, place: u32, sums: Sums, aim: Aim| {
            let (mut next, end) = (lattice.start[set], lattice.start[set + 1]);
            // Steps lie in the order of their classes, the last first: in front are those that come too late.
            while next < end && lattice.places[next as usize] >= place {
                next += 1;
            }
            Level { next, end, class, sums, aim }
        };
        path.clear();
        let mut here = level(set, u32::MAX, u32::MAX, Sums::default(), aim);
        loop {
            if here.next == here.end {
                let Some(above) = path.pop() else { return };
                holding.remove(here.class as usize);
                here = above;
                continue;
            }
            let next = here.next as usize;
            let (below, class) = lattice.steps[next];
            here.next += 1;
            if !visitor.is_worth(below as usize, here.aim) {
                continue;
            }
            let sums = holding.add(class as usize, &here.sums);
            match visitor.visit(below as usize, &sums) {
                Onward::Below(aim) => {
                    let onward = level(below as usize, class, lattice.places[next], sums, aim);
                    path.push(std::mem::replace(&mut here, onward));
                }
                Onward::Past => holding.remove(class as usize),
                Onward::Stop => {
                    holding.remove(class as usize);
                    if !path.is_empty() {
                        holding.remove(here.class as usize);
                        path.drain(1..).for_each(|level| holding.remove(level.class as usize));
                    }
                    return;
                }
            }
        }
    }
}
