//! By set, a list that is written once and read by all.

use std::sync::OnceLock;

use smallvec::SmallVec;

/// A list of a set; most have one entry, and take nothing from the heap.
pub(super) type List<T> = SmallVec<[T; 2]>;

/// By set, a list; empty until it is known.
pub(super) struct Lists<T> {
    lists: Vec<OnceLock<List<T>>>,
}

impl<T> Lists<T> {
    /// For so many sets, none of them known.
    pub(super) fn new(sets: usize) -> Self {
        Lists { lists: std::iter::repeat_with(OnceLock::new).take(sets).collect() }
    }

    /// What is known of a set.
    #[inline]
    pub(super) fn of(&self, set: usize) -> &[T] {
        self.lists[set].get().map_or(&[], SmallVec::as_slice)
    }

    /// Number of sets.
    pub(super) fn sets(&self) -> usize {
        self.lists.len()
    }

    #[inline]
    pub(super) fn is_known(&self, set: usize) -> bool {
        self.lists[set].get().is_some()
    }

    /// Makes a set's known. A set has one list, whoever finds it.
    pub(super) fn note(&self, set: usize, list: List<T>) {
        let again = self.lists[set].set(list);
        debug_assert!(again.is_ok(), "set {set} is found twice");
    }

    /// The list of a set, to be changed, and that of one with a larger number; `None` unless both are known.
    pub(super) fn with_larger(&mut self, set: usize, larger: usize) -> Option<(&mut List<T>, &[T])> {
        let (smaller, rest) = self.lists.split_at_mut(larger);
        Some((smaller[set].get_mut()?, rest[0].get()?))
    }

    /// Forgets all of them.
    pub(super) fn clear(&mut self) {
        for list in &mut self.lists {
            list.take();
        }
    }
}

/// Memory of lists that are no longer needed: to get it anew takes a good part of the time of a question.
pub(super) struct Spare<T>(Vec<Lists<T>>);

impl<T> Spare<T> {
    pub(super) fn new() -> Self {
        Spare(vec![])
    }

    /// For so many sets, as many as those that were given have, none of them known.
    pub(super) fn take(&mut self, sets: usize) -> Lists<T> {
        let spare = self.0.pop().map(|mut lists| {
            lists.clear();
            lists
        });
        spare.unwrap_or_else(|| Lists::new(sets))
    }

    pub(super) fn give(&mut self, lists: Lists<T>) {
        self.0.push(lists);
    }
}
