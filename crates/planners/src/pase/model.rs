//! Converts an operator graph to the pairwise model.
//!
//! Operators of the same kind and shape share their configurations and costs, and links between equal pairs share their
//! tables. A network of hundreds of layers has a few dozen distinct ones. `O(labels)`, plus one transfer cost for each
//! cell of a distinct table.

use std::{collections::hash_map::Entry, sync::Arc};

use rustc_hash::FxHashMap;
use thiserror::Error;

use super::{
    PaseSettings, cost,
    pairwise::{Classes, Factor, Pairwise},
    space::{MOST_CONFIGURATIONS, Space},
};
use plantui_core::workload::operators::{Dimension, Operator, OperatorEdge, OperatorKind, OperatorProfile, Tensor};

/// Largest number of cells of all distinct tables; 0.8 GB.
const MOST_CELLS: usize = 100_000_000;

/// Reason why the costs of a graph were not computed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Unpriced {
    /// An operator has too many configurations.
    #[error(
        "operator {node} (counted from 0) has more than {MOST_CONFIGURATIONS} configurations; use fewer devices or a \
        higher cutoff"
    )]
    Operator {
        /// Index of the node.
        node: usize,
    },
    /// The transfer tables take too much memory.
    #[error(
        "the tables of transfers up to operator {node} (counted from 0) have more than {MOST_CELLS} cells; use fewer \
        devices or a higher cutoff"
    )]
    Tables {
        /// Index of the node.
        node: usize,
    },
    /// The search was stopped.
    #[error("stopped before the cost of every split was known")]
    Stopped,
}

/// An operator graph with all costs computed.
#[derive(Debug, Clone)]
pub struct PaseModel {
    /// Configurations of each operator.
    pub spaces: Vec<Arc<Space>>,
    /// Index of each operator's kind among the distinct ones.
    pub kinds: Vec<usize>,
    /// Pairwise model of the costs.
    pub pairwise: Pairwise,
}

/// Key of operators that share configurations and costs.
type Shape<'a> = (&'a OperatorKind, Vec<(u64, bool)>, Vec<&'a [u64]>);

fn shape(operator: &Operator) -> Shape<'_> {
    let extents = operator.dims.iter().map(|dim: &Dimension| (dim.extent, dim.splittable)).collect();
    (&operator.kind, extents, operator.inputs.iter().map(|input| input.tensor.shape.as_slice()).collect())
}

/// Classes of an operator kind's labels: two labels are in one class if they split the given tensors equally.
#[derive(Debug)]
struct Projected {
    classes: Arc<Classes>,
    /// Split of the tensor's axes, by class and tensor.
    splits: Vec<Vec<Vec<u32>>>,
}

impl Projected {
    fn new(space: &Space, tensors: &[&Tensor]) -> Self {
        let mut known: FxHashMap<Vec<Vec<u32>>, u32> = FxHashMap::default();
        let mut splits: Vec<Vec<Vec<u32>>> = vec![];
        let of = space.iter().map(|configuration| {
            let seen: Vec<Vec<u32>> = tensors.iter().map(|tensor| cost::project(&tensor.axes, configuration)).collect();
            match known.entry(seen) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    splits.push(entry.key().clone());
                    *entry.insert(splits.len() as u32 - 1)
                }
            }
        });
        let of = of.collect();
        Projected { classes: Arc::new(Classes { of, count: splits.len() }), splits }
    }
}

/// Returns the consumer slots of a link whose tensors are charged. The published program charges only the last slot.
pub fn paid(link: &OperatorEdge, settings: &PaseSettings) -> Vec<usize> {
    match link.slots.as_slice() {
        [.., last] if !settings.rules.parallel_edges => vec![*last],
        slots => slots.to_vec(),
    }
}

impl PaseModel {
    /// Computes the cost of every configuration of every operator on at most `settings.devices` devices.
    ///
    /// # Errors
    /// [`Unpriced`] if an operator has too many configurations, or if the tables take too much memory.
    pub fn new(profile: &OperatorProfile, settings: &PaseSettings) -> Result<Self, Unpriced> {
        Self::unless_stopped(profile, settings, &|| false)
    }

    /// Same as [`PaseModel::new`], but ends early once `stopped` returns true.
    ///
    /// # Errors
    /// [`Unpriced`].
    pub fn unless_stopped(
        profile: &OperatorProfile,
        settings: &PaseSettings,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Unpriced> {
        let enumerate = |_: usize, operator: &Operator| Space::new(operator, settings.devices, settings.cutoff);
        Self::with_spaces(profile, settings, enumerate, stopped)
    }

    /// Builds the model with the configurations that `enumerate` returns. Operators of the same kind and shape must get
    /// equal ones.
    ///
    /// # Errors
    /// [`Unpriced`] if `enumerate` returns `None`, if the tables take too much memory, or if `stopped` returns true.
    pub fn with_spaces(
        profile: &OperatorProfile,
        settings: &PaseSettings,
        enumerate: impl Fn(usize, &Operator) -> Option<Space>,
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Unpriced> {
        let mut known: FxHashMap<Shape<'_>, usize> = FxHashMap::default();
        let mut distinct: Vec<(Arc<Space>, Arc<Vec<f64>>)> = vec![];
        let mut kinds = Vec::with_capacity(profile.operators.len());
        for (v, operator) in profile.operators.iter().enumerate() {
            if v % 64 == 0 && stopped() {
                return Err(Unpriced::Stopped);
            }
            let kind = match known.entry(shape(operator)) {
                Entry::Occupied(entry) => *entry.get(),
                Entry::Vacant(entry) => {
                    let space = enumerate(v, operator).ok_or(Unpriced::Operator { node: v })?;
                    let price = |splits: &[u32]| {
                        cost::operator(operator, splits, settings.rules.batch_norm).total(settings.ratio())
                    };
                    let costs = space.iter().map(price).collect();
                    distinct.push((Arc::new(space), Arc::new(costs)));
                    *entry.insert(distinct.len() - 1)
                }
            };
            kinds.push(kind);
        }
        let spaces: Vec<Arc<Space>> = kinds.iter().map(|&kind| Arc::clone(&distinct[kind].0)).collect();
        let factors = Tables { profile, settings, spaces: &spaces, kinds: &kinds, ..Tables::empty(profile, settings) }
            .factors(stopped)?;
        let unary = kinds.iter().map(|&kind| Arc::clone(&distinct[kind].1)).collect();
        Ok(PaseModel { pairwise: Pairwise::new(unary, factors), spaces, kinds })
    }
}

/// Key of a class list: operator kind, true if it is the consumer, and slots.
type SideKey = (usize, bool, Vec<usize>);

/// Builder of the transfer tables; each distinct table is made once.
struct Tables<'a> {
    profile: &'a OperatorProfile,
    settings: &'a PaseSettings,
    spaces: &'a [Arc<Space>],
    kinds: &'a [usize],
    sides: FxHashMap<SideKey, Arc<Projected>>,
    tables: FxHashMap<[SideKey; 2], Arc<Vec<f64>>>,
    cells: usize,
}

impl<'a> Tables<'a> {
    fn empty(profile: &'a OperatorProfile, settings: &'a PaseSettings) -> Self {
        let (sides, tables) = (FxHashMap::default(), FxHashMap::default());
        Tables { profile, settings, spaces: &[], kinds: &[], sides, tables, cells: 0 }
    }

    fn factors(mut self, stopped: &dyn Fn() -> bool) -> Result<Vec<Factor>, Unpriced> {
        let links = self.profile.links();
        links.iter().map(|link| if stopped() { Err(Unpriced::Stopped) } else { self.factor(link) }).collect()
    }

    fn factor(&mut self, link: &OperatorEdge) -> Result<Factor, Unpriced> {
        let profile = self.profile;
        let consumer = &profile.operators[link.consumer];
        let slots = paid(link, self.settings);
        let outputs: Vec<usize> =
            slots.iter().filter_map(|&slot| consumer.inputs[slot].source).map(|source| source.output).collect();
        let written: Vec<&Tensor> =
            outputs.iter().map(|&output| &profile.operators[link.producer].outputs[output]).collect();
        let read: Vec<&Tensor> = slots.iter().map(|&slot| &consumer.inputs[slot].tensor).collect();
        let ends = [link.producer.index(), link.consumer.index()];
        let keys = [(self.kinds[ends[0]], false, outputs), (self.kinds[ends[1]], true, slots)];
        let sides = [self.side(&keys[0], ends[0], &written), self.side(&keys[1], ends[1], &read)];
        let ratio = self.settings.ratio();
        let cells = sides[0].splits.len() * sides[1].splits.len();
        if !self.tables.contains_key(&keys) {
            self.cells += cells;
            if self.cells > MOST_CELLS {
                return Err(Unpriced::Tables { node: ends[1] });
            }
        }
        let table = self.tables.entry(keys).or_insert_with(|| {
            let mut table = Vec::with_capacity(cells);
            for from in &sides[0].splits {
                for to in &sides[1].splits {
                    let words = read.iter().zip(from).zip(to);
                    let words = words.map(|((tensor, from), to)| cost::transfer_words(&tensor.shape, from, to));
                    table.push(ratio * words.sum::<f64>());
                }
            }
            Arc::new(table)
        });
        Ok(Factor { ends, classes: sides.map(|side| Arc::clone(&side.classes)), table: Arc::clone(table) })
    }

    fn side(&mut self, key: &SideKey, operator: usize, tensors: &[&Tensor]) -> Arc<Projected> {
        if let Some(side) = self.sides.get(key) {
            return Arc::clone(side);
        }
        let side = Arc::new(Projected::new(&self.spaces[operator], tensors));
        self.sides.insert(key.clone(), Arc::clone(&side));
        side
    }
}
