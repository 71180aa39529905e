//! Branch and price: refutes in pieces a threshold that dual values alone do not refute.
//!
//! Two classes share a device or not (Ryan and Foster, 1981). If together, they become one class; if apart, no pattern
//! has both. The patterns keep their structure, and usually both pieces are refuted sooner than the whole. The pair to
//! branch on comes from the patterns: one that they hold together about half of the time.
//!
//! The number of pieces is limited. They are handled breadth first. The search ends when more pieces are open than the
//! budget has left.

use std::collections::VecDeque;

use super::{
    model::IpModel,
    prices::{self, Effort},
    slack,
};
use plantui_core::search::Search;

/// A piece: classes that are merged, and pairs that are apart.
struct Piece {
    group: Vec<u32>,
    apart: Vec<(u32, u32)>,
    price: Vec<f64>,
}

/// True if the threshold is refuted with at most `pieces` pieces. `price` is the dual value of each class.
pub fn refute(model: &IpModel, threshold: f64, price: &[f64], effort: &Effort, pieces: usize, search: &Search) -> bool {
    let whole = Piece { group: (0..model.len() as u32).collect(), apart: vec![], price: price.to_vec() };
    let mut open = VecDeque::from([whole]);
    let mut left = pieces;
    while let Some(piece) = open.pop_front() {
        if open.len() >= left || search.cancelled() {
            return false;
        }
        left -= 1;
        match piece.split(model, threshold, effort, search) {
            Split::Refuted => {}
            Split::Into(pieces) => open.extend(pieces),
            Split::Stuck => return false,
        }
    }
    true
}

/// Result for a piece.
enum Split {
    Refuted,
    Into([Piece; 2]),
    Stuck,
}

impl Piece {
    fn split(self, model: &IpModel, threshold: f64, effort: &Effort, search: &Search) -> Split {
        let groups = self.group.iter().max().map_or(0, |&g| g as usize + 1);
        let merged = model.merged(&self.group, groups);
        if merged.homeless().is_some() {
            return Split::Refuted;
        }
        let Some((reduced, joined)) = slack::contract(&merged, threshold) else { return Split::Refuted };
        let group: Vec<u32> = self.group.iter().map(|&g| joined[g as usize]).collect();
        let mut apart: Vec<(u32, u32)> = (self.apart.iter())
            .map(|&(a, b)| (group[a as usize], group[b as usize]))
            .map(|(a, b)| (a.min(b), a.max(b)))
            .collect();
        apart.sort_unstable();
        apart.dedup();
        if apart.iter().any(|(a, b)| a == b) {
            return Split::Refuted;
        }
        let mut price = vec![0.0; reduced.len()];
        for (&g, own) in group.iter().zip(&self.price) {
            price[g as usize] += own;
        }
        let before = price.clone();
        let Some(priced) = prices::refute(&reduced, &apart, threshold, &mut price, effort, search) else {
            return Split::Stuck;
        };
        if priced.refuted >= threshold * (1.0 - 1e-9) {
            return Split::Refuted;
        }
        let Some((a, b)) = priced.undecided else { return Split::Stuck };
        let price = prices::shared_out(&group, &self.price, &before, &price);
        let together = group.iter().map(|&g| if g == b { a } else { g - u32::from(g > b) }).collect();
        let member = |g: u32| group.iter().position(|&of| of == g).map_or(0, |class| class as u32);
        let mut separate = self.apart.clone();
        separate.push((member(a), member(b)));
        Split::Into([
            Piece { group: together, apart: self.apart, price: price.clone() },
            Piece { group, apart: separate, price },
        ])
    }
}
