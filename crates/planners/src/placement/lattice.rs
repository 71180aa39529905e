//! Closed sets of classes (the sets that a prefix of the pipeline may hold), and the steps between them.
//!
//! [`SuccessorSets`] enumerates sets closed under successors; here sets are closed under predecessors, so the order is
//! reversed. A step leads to a closed set with one class less and stores that class, so that a walk needs no bit sets.
//! A walk removes classes from the last to the first of one topological order. It reaches each set below along exactly
//! one path, so it needs no marks of visited sets. The last class is removed first, so that large differences come
//! early.

use std::cmp::Reverse;

use super::load::{ClassCosts, NetCounts, Sums};
use plantui_core::{
    graph::{Dag, Enumeration, SuccessorSets},
    search::Search,
};

/// All closed sets, by size; the first is empty, the last is full.
#[derive(Debug)]
pub struct Lattice {
    start: Vec<u32>,
    /// Steps of all sets: the set below and the class removed, last class of the topological order first.
    steps: Vec<(u32, u32)>,
    /// For each step: the position of its class in a topological order.
    places: Vec<u32>,
}

/// Maximum memory of the sets during enumeration, bytes.
const MOST_BYTES: usize = 1 << 28;

/// Reason why there is no lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LatticeRefusal {
    /// More closed sets than this number.
    TooMany(usize),
    /// The search was cancelled.
    Cancelled,
}

impl Lattice {
    /// Enumerates the closed sets of an order over classes, at most `limit` of them.
    ///
    /// # Errors
    /// [`LatticeRefusal`] if there are more, or the search was cancelled.
    pub fn new(order: &Dag, limit: usize, search: &Search) -> Result<Self, LatticeRefusal> {
        // A set takes a bit per class, and there is at least one set of every size.
        let limit = limit.min(MOST_BYTES / (order.len() / 8 + 8));
        if order.len() >= limit {
            return Err(LatticeRefusal::TooMany(limit));
        }
        let reversed = order.edges().iter().map(|&(u, v)| (v, u)).collect();
        let reversed = Dag::new(order.len(), reversed).expect("the reverse of an acyclic graph is acyclic");
        let sets = match SuccessorSets::enumerate(&reversed, limit, &|| search.cancelled()) {
            Enumeration::Complete(sets) => sets,
            Enumeration::TooMany => return Err(LatticeRefusal::TooMany(limit)),
            Enumeration::Cancelled => return Err(LatticeRefusal::Cancelled),
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
        Ok(Lattice { start, steps, places })
    }

    /// Prefixes of one order of all classes, without enumeration.
    pub fn chain(order: &[u32]) -> Self {
        let steps = order.iter().enumerate().map(|(below, &class)| (below as u32, class)).collect();
        let start = [0].into_iter().chain(0..=order.len() as u32).collect();
        Lattice { start, steps, places: (0..order.len() as u32).collect() }
    }

    /// Set and class from which a non-empty set grows.
    #[inline]
    fn grows_from(&self, set: usize) -> (usize, u32) {
        let (below, class) = self.steps[self.start[set] as usize];
        (below as usize, class)
    }

    /// Follows two closed sets down to where they meet, which is near when closed sets are taken in order. `step` gets
    /// each class of the old set that goes, with false, and each class of the new set that comes, with true.
    fn exchange(&self, mut old: usize, mut new: usize, mut step: impl FnMut(usize, bool)) {
        while old != new {
            // The set with the larger number has at least as many classes.
            let comes = new > old;
            let set = if comes { &mut new } else { &mut old };
            let (below, class) = self.grows_from(*set);
            step(class as usize, comes);
            *set = below;
        }
    }

    /// Sums of every closed set, as one device. Each set grows by one class from a set below it, and one counter per
    /// net suffices.
    pub fn sum_up(&self, costs: &ClassCosts) -> Vec<Sums> {
        let mut sums = vec![Sums::default(); self.len()];
        let mut holding = NetCounts::new(costs);
        for set in 1..self.len() {
            let (below, class) = self.grows_from(set);
            self.exchange(set - 1, below, |class, comes| {
                if comes {
                    holding.add(class, &Sums::default());
                } else {
                    holding.remove(class);
                }
            });
            sums[set] = holding.add(class as usize, &sums[below]);
        }
        sums
    }

    /// Steps by which a walk empties a closed set, last class first: the remaining set, the class, and its position in
    /// the order.
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

    /// Always false: the empty set is always there.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Closed sets with one class less, each with that class.
    #[inline]
    pub fn below(&self, set: usize) -> &[(u32, u32)] {
        &self.steps[self.start[set] as usize..self.start[set + 1] as usize]
    }

    /// Classes of a closed set that are not in a closed set below it, ascending.
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

/// Walk down from one closed set to all closed sets below it whose difference from it may still be one device. Every
/// step carries an aim, which states what the visitor seeks below.
#[derive(Debug)]
pub(crate) struct LatticeWalk<'a, Aim> {
    lattice: &'a Lattice,
    holding: NetCounts<'a>,
    /// Levels above the current one.
    path: Vec<WalkLevel<Aim>>,
    /// Closed set within which the held classes lie.
    within: usize,
}

/// Visitor of a walk.
pub(crate) trait SetVisitor<Aim> {
    /// True if a closed set, or a set below it, needs a visit.
    fn is_worth(&mut self, set: usize, aim: Aim) -> bool;

    /// Visits a closed set and returns where to go next. `held` sums the classes above it.
    fn visit(&mut self, set: usize, held: &Sums) -> NextStep<Aim>;
}

/// A closure is a visitor without an aim that visits every set.
impl<F: FnMut(usize, &Sums) -> NextStep<()>> SetVisitor<()> for F {
    fn is_worth(&mut self, _set: usize, (): ()) -> bool {
        true
    }

    fn visit(&mut self, set: usize, held: &Sums) -> NextStep<()> {
        self(set, held)
    }
}

/// Next step of a walk after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NextStep<Aim> {
    /// Descend to the sets below, with an aim.
    Below(Aim),
    /// Skip the sets below along this path.
    Past,
    /// End the walk.
    Stop,
}

/// Position of a walk among the steps of one set.
#[derive(Debug)]
struct WalkLevel<Aim> {
    next: u32,
    end: u32,
    /// Class that was removed last.
    class: u32,
    /// Sums of the held classes.
    sums: Sums,
    aim: Aim,
}

impl<'a, Aim: Copy> LatticeWalk<'a, Aim> {
    /// Creates a walk over a lattice.
    pub(crate) fn new(lattice: &'a Lattice, costs: &'a ClassCosts) -> Self {
        LatticeWalk { lattice, holding: NetCounts::confined(costs), path: vec![], within: 0 }
    }

    /// Changes the closed set within which the held classes lie.
    fn stay_within(&mut self, set: usize) {
        let LatticeWalk { lattice, holding, within, .. } = self;
        let old = std::mem::replace(within, set);
        lattice.exchange(old, set, |class, comes| if comes { holding.allow(class) } else { holding.forbid(class) });
    }

    /// Visits closed sets strictly below `set` for which `SetVisitor::is_worth` is true, with the sums of the classes
    /// between. The visitor decides to descend or not: differences further down contain this one.
    pub(crate) fn down(&mut self, set: usize, aim: Aim, visitor: &mut impl SetVisitor<Aim>) {
        self.stay_within(set);
        let LatticeWalk { lattice, holding, path, .. } = self;
        let level = |set: usize, class: u32, place: u32, sums: Sums, aim: Aim| {
            let (mut next, end) = (lattice.start[set], lattice.start[set + 1]);
            // Steps are sorted by class, the last first; the leading ones were handled along another path.
            while next < end && lattice.places[next as usize] >= place {
                next += 1;
            }
            WalkLevel { next, end, class, sums, aim }
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
                NextStep::Below(aim) => {
                    let onward = level(below as usize, class, lattice.places[next], sums, aim);
                    path.push(std::mem::replace(&mut here, onward));
                }
                NextStep::Past => holding.remove(class as usize),
                NextStep::Stop => {
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
