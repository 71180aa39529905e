//! Remedies on the screen where no layout of a model fits.

use std::sync::Arc;

use super::shown::ShownRun;
use crate::study::remedies::{Remedy, RemedyResult};

/// Changes that were tried so far.
#[derive(Debug, Default)]
pub(super) struct Remedies {
    /// Result without a plan that they belong to.
    pub of: Option<Arc<ShownRun>>,
    /// Results so far.
    pub tried: Vec<RemedyResult>,
    /// True after the last one.
    pub done: bool,
    /// Selected remedy.
    pub selected: usize,
    /// True while the screen opens on the fewest devices that hold a layout, because nobody asked for a number.
    pub opening: bool,
    /// Fewest devices that hold a layout, and fewest that make sense, when the screen opened without a number.
    pub sensible: Option<(u32, u32)>,
}

impl Remedies {
    /// Changes that are enough, those of one subject together.
    pub(super) fn rows(&self) -> impl Iterator<Item = &Remedy> {
        let mut rows: Vec<&Remedy> = self.tried.iter().filter_map(remedy).collect();
        let first = |own: &Remedy| self.tried.iter().filter_map(remedy).position(|other| other.subject == own.subject);
        rows.sort_by_key(|own| first(own));
        rows.into_iter()
    }

    /// Number of changes that are enough.
    pub(super) fn count(&self) -> usize {
        self.rows().count()
    }

    /// Changes that are not enough, and how far they get.
    pub(super) fn refused(&self) -> impl Iterator<Item = (&str, &str)> {
        self.tried.iter().filter_map(|tried| match tried {
            RemedyResult::Short(what, why) => Some((what.as_str(), why.as_str())),
            RemedyResult::Enough(_) => None,
        })
    }
}

fn remedy(tried: &RemedyResult) -> Option<&Remedy> {
    match tried {
        RemedyResult::Enough(remedy) => Some(remedy),
        RemedyResult::Short(..) => None,
    }
}
