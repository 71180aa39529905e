//! Closed sets of classes (the sets that a prefix of the pipeline may hold), and the steps between them.
//!
//! [`SuccessorSets`] enumerates sets closed under successors; here sets are closed under predecessors, so the order is
//! reversed. A step leads to a closed set with one class less and stores that class, so that a walk needs no bit sets.
//! A walk removes classes from the last to the first of one topological order. It reaches each set below along exactly
//! one path, so it needs no marks of visited sets. The last class is removed first, so that large differences come
//! early.

use std::{cmp::Reverse, ops::Range};

use super::load::{ClassCosts, Holding, Sums};
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
    /// Range of the sets of each size.
    levels: Vec<Range<usize>>,
    /// All sets but the empty one, each after the set that it grows from (`grows_from`), depth first.
    grown: Vec<u32>,
}

/// Maximum memory of the sets during enumeration, bytes.
const MOST_BYTES: usize = 1 << 28;

/// Reason why there is no lattice.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// More closed sets than this number.
    TooMany(usize),
    /// The search was cancelled.
    Cancelled,
}

impl Lattice {
    /// Enumerates the closed sets of an order over classes, at most `limit` of them.
    ///
    /// # Errors
    /// [`Refused`] if there are more, or the search was cancelled.
    pub fn new(order: &Dag, limit: usize, search: &Search) -> Result<Self, Refused> {
        // A set takes a bit per class, and there is at least one set of every size.
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

    /// Prefixes of one order of all classes, without enumeration.
    pub fn chain(order: &[u32]) -> Self {
        let steps = order.iter().enumerate().map(|(below, &class)| (below as u32, class)).collect();
        let start = [0].into_iter().chain(0..=order.len() as u32).collect();
        Lattice::of(start, steps, (0..order.len() as u32).collect())
    }

    /// Derives the other fields from the steps of all sets.
    fn of(start: Vec<u32>, steps: Vec<(u32, u32)>, places: Vec<u32>) -> Self {
        let mut lattice = Lattice { start, steps, places, levels: vec![], grown: vec![] };
        let mut size = vec![0u32; lattice.len()];
        lattice.levels.push(0..1);
        // By set: number of sets that grow from it; then the start of these sets in the list of all.
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

    /// Set and class from which a non-empty set grows.
    #[inline]
    fn grows_from(&self, set: usize) -> (usize, u32) {
        let (below, class) = self.steps[self.start[set] as usize];
        (below as usize, class)
    }

    /// Writes the sums of every closed set, as one device, into `sums`. Each set grows by one class from a set below
    /// it, depth first, so one counter per net suffices. `O(sets · nets of a class)`.
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

    /// Range of the closed sets of each size.
    pub fn levels(&self) -> &[Range<usize>] {
        &self.levels
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
pub(crate) struct Walk<'a, Aim> {
    lattice: &'a Lattice,
    holding: Holding,
    /// Levels above the current one.
    path: Vec<Level<Aim>>,
    /// Closed set within which the held classes lie.
    within: usize,
}

/// Visitor of a walk.
pub(crate) trait Visit<Aim> {
    /// True if a closed set, or a set below it, needs a visit.
    fn is_worth(&mut self, set: usize, aim: Aim) -> bool;

    /// Visits a closed set and returns where to go next. `held` sums the classes above it.
    fn visit(&mut self, set: usize, held: &Sums) -> Onward<Aim>;
}

/// A closure is a visitor without an aim that visits every set.
impl<F: FnMut(usize, &Sums) -> Onward<()>> Visit<()> for F {
    fn is_worth(&mut self, _set: usize, (): ()) -> bool {
        true
    }

    fn visit(&mut self, set: usize, held: &Sums) -> Onward<()> {
        self(set, held)
    }
}

/// Next step of a walk after a visit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Onward<Aim> {
    /// Descend to the sets below, with an aim.
    Below(Aim),
    /// Skip the sets below along this path.
    Past,
    /// End the walk.
    Stop,
}

/// Position of a walk among the steps of one set.
#[derive(Debug)]
struct Level<Aim> {
    next: u32,
    end: u32,
    /// Class that was removed last.
    class: u32,
    /// Sums of the held classes.
    sums: Sums,
    aim: Aim,
}

impl<'a, Aim: Copy> Walk<'a, Aim> {
    /// Creates a walk over a lattice.
    pub(crate) fn new(lattice: &'a Lattice, costs: &ClassCosts) -> Self {
        Walk { lattice, holding: Holding::confined(costs), path: vec![], within: 0 }
    }

    /// Changes the closed set within which the held classes lie. Both sets are followed down to where they meet, which
    /// is near when closed sets are walked in order.
    fn stay_within(&mut self, set: usize) {
        let (mut old, mut new) = (std::mem::replace(&mut self.within, set), set);
        while old != new {
            // The set with the larger number has at least as many classes.
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

    /// Visits closed sets strictly below `set` for which `Visit::is_worth` is true, with the sums of the classes
    /// between. The visitor decides to descend or not: differences further down contain this one.
    pub(crate) fn down(&mut self, set: usize, aim: Aim, visitor: &mut impl Visit<Aim>) {
        self.stay_within(set);
        let Walk { lattice, holding, path, .. } = self;
        let level = |set: usize, class: u32, place: u32, sums: Sums, aim: Aim| {
            let (mut next, end) = (lattice.start[set], lattice.start[set + 1]);
            // Steps are sorted by class, the last first; the leading ones were handled along another path.
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
