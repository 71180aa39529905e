//! By set, a list that is written once and read by all.

use std::sync::OnceLock;

/// By set, a list; empty until it is known.
pub(super) struct Lists<T> {
    lists: Vec<OnceLock<Vec<T>>>,
}

impl<T> Lists<T> {
    /// For so many sets, none of them known.
    pub(super) fn new(sets: usize) -> Self {
        Lists { lists: std::iter::repeat_with(OnceLock::new).take(sets).collect() }
    }

    /// What is known of a set.
    #[inline]
    pub(super) fn of(&self, set: usize) -> &[T] {
        self.lists[set].get().map_or(&[], Vec::as_slice)
    }

    #[inline]
    pub(super) fn is_known(&self, set: usize) -> bool {
        self.lists[set].get().is_some()
    }

    /// Makes a set's known. A set has one list, whoever finds it.
    pub(super) fn note(&self, set: usize, list: Vec<T>) {
        let again = self.lists[set].set(list);
        debug_assert!(again.is_ok(), "set {set} is found twice");
    }

    /// Whether there are no sets.
    pub(super) fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    pub(super) fn into_lists(self) -> Vec<Vec<T>> {
        self.lists.into_iter().map(|list| list.into_inner().unwrap_or_default()).collect()
    }
}
