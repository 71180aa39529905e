//! Derives an operator from its kind and input shapes: dimensions, projections, matrix multiplication, weights.
//!
//! Section 3 of the paper gives iteration spaces for a few kinds. The rest follow the published program's operators.
//! `O(axes)` each.

use super::{Dimension, Gemm, Input, InputSpec, Operator, OperatorKind, Tensor, Weights};

/// Maximum number of dimensions of an operator.
const MOST_DIMS: usize = 16;

/// Operator under construction.
struct Draft<'a> {
    inputs: &'a [InputSpec],
    dims: Vec<Dimension>,
    /// Projection of the dimensions, by input slot.
    reads: Vec<Vec<Vec<u8>>>,
    outputs: Vec<Tensor>,
    gemm: Option<Gemm>,
    weights: Option<Weights>,
}

/// Derives an operator, as [`Operator::new`].
pub(super) fn operator(kind: OperatorKind, inputs: &[InputSpec]) -> Result<Operator, String> {
    let mut draft = Draft { inputs, dims: vec![], reads: vec![], outputs: vec![], gemm: None, weights: None };
    match &kind {
        OperatorKind::Convolution { filters, window, stride, padding, pointwise } => {
            draft.convolution(*filters, *window, *stride, *padding, *pointwise)?;
        }
        OperatorKind::Pooling { window, stride, padding } => draft.pooling(*window, *stride, *padding)?,
        OperatorKind::Normalisation { axis } => {
            draft.same_shape(1)?;
            draft.axis(*axis)?;
            draft.weights = Some(Weights { dims: vec![*axis as u8], factor: 2 });
        }
        OperatorKind::Elementwise { .. } => draft.same_shape(2)?,
        OperatorKind::Concatenation { axis } => draft.concatenation(*axis)?,
        OperatorKind::Ravel => draft.ravel()?,
        OperatorKind::Unravel { shape } => draft.unravel(shape)?,
        OperatorKind::Stack => draft.stack()?,
        OperatorKind::Unstack => draft.unstack()?,
        OperatorKind::Dense { units, pointwise } => draft.dense(*units, *pointwise)?,
        OperatorKind::Einsum { equation, pointwise } => draft.einsum(equation, *pointwise)?,
        OperatorKind::Mean { axes } => draft.mean(axes)?,
        OperatorKind::Softmax { axis } => {
            draft.same_shape(1)?;
            draft.axis(*axis)?;
        }
        OperatorKind::CrossEntropy => draft.same_shape(1)?,
        OperatorKind::Lstm { layers, units } => draft.lstm(*layers, *units)?,
    }
    draft.finish(kind)
}

/// Usual names of the axes of a tensor from outside.
fn usual_names(rank: usize) -> Vec<String> {
    let names: &[&str] = match rank {
        1 => &["b"],
        2 => &["b", "c"],
        3 => &["b", "l", "e"],
        4 => &["b", "c", "h", "w"],
        _ => return (0..rank).map(|axis| format!("d{axis}")).collect(),
    };
    names.iter().map(ToString::to_string).collect()
}

/// Projection of every axis onto the dimension at the same position.
fn identity(rank: usize) -> Vec<Vec<u8>> {
    (0..rank).map(|axis| vec![axis as u8]).collect()
}

fn dim(name: &str, extent: u64, splittable: bool) -> Dimension {
    Dimension { name: name.into(), extent, splittable }
}

/// Number of positions of a window.
fn positions(extent: u64, window: u64, stride: u64, padding: u64) -> Result<u64, String> {
    if window == 0 || stride == 0 {
        return Err("has a window or a stride of 0".into());
    }
    let padded = extent.saturating_add(padding.saturating_mul(2));
    let room = padded.checked_sub(window).ok_or_else(|| {
        format!("has a window of {window} on an extent of {extent} with {padding} of padding: it does not fit")
    })?;
    Ok(room / stride + 1)
}

impl Draft<'_> {
    fn wants(&self, count: usize) -> Result<(), String> {
        let given = self.inputs.len();
        if given == count { Ok(()) } else { Err(format!("has {given} inputs, needs {count}")) }
    }

    fn first(&self) -> Result<&InputSpec, String> {
        self.inputs.first().ok_or_else(|| "has no input, needs at least 1".to_string())
    }

    fn names(&self, slot: usize) -> Vec<String> {
        let given = &self.inputs[slot];
        if given.names.len() == given.shape.len() { given.names.clone() } else { usual_names(given.shape.len()) }
    }

    fn image(&self) -> Result<[u64; 4], String> {
        self.wants(1)?;
        let shape = &self.inputs[0].shape;
        shape.as_slice().try_into().map_err(|_| format!("reads a tensor of {} axes, needs b, c, h and w", shape.len()))
    }

    fn axis(&self, axis: usize) -> Result<(), String> {
        let rank = self.inputs[0].shape.len();
        if axis < rank {
            Ok(())
        } else {
            Err(format!("has axis {axis}, but its input has {rank} axes, counted from 0"))
        }
    }

    /// Name that no dimension has yet.
    fn fresh(&self, wanted: &str) -> String {
        let taken = |name: &str| self.dims.iter().any(|dim| dim.name == name);
        if !taken(wanted) {
            return wanted.into();
        }
        (2..).map(|i| format!("{wanted}{i}")).find(|name| !taken(name)).unwrap_or_default()
    }

    /// Sets up `count` inputs of one shape, which is also the iteration space and the output.
    fn same_shape(&mut self, count: usize) -> Result<(), String> {
        self.wants(count)?;
        let shape = self.inputs[0].shape.clone();
        if let Some(other) = self.inputs.iter().find(|given| given.shape != shape) {
            return Err(format!("reads tensors of shapes {shape:?} and {:?}, which must be equal", other.shape));
        }
        let names = self.names(0);
        self.dims = names.iter().zip(&shape).map(|(name, &extent)| dim(name, extent, true)).collect();
        self.reads = vec![identity(shape.len()); count];
        self.outputs = vec![Tensor { axes: identity(shape.len()), shape, names }];
        Ok(())
    }

    fn convolution(
        &mut self,
        filters: u64,
        [r, s]: [u64; 2],
        stride: u64,
        padding: [u64; 2],
        pointwise: u32,
    ) -> Result<(), String> {
        let [b, c, height, width] = self.image()?;
        let (h, w) = (positions(height, r, stride, padding[0])?, positions(width, s, stride, padding[1])?);
        self.dims = vec![
            dim("b", b, true),
            dim("c", c, true),
            dim("h", h, false),
            dim("w", w, false),
            dim("r", r, true),
            dim("s", s, true),
            dim("n", filters, true),
        ];
        self.reads = vec![vec![vec![0], vec![1], vec![2], vec![3]]];
        self.outputs = vec![Tensor {
            shape: vec![b, filters, h, w],
            names: usual_names(4),
            axes: vec![vec![0], vec![6], vec![2], vec![3]],
        }];
        self.gemm = Some(Gemm {
            batch: vec![],
            m: vec![0, 2, 3],
            n: vec![6],
            k: vec![1, 4, 5],
            n_factor: 1,
            k_factor: 1,
            pointwise,
        });
        self.weights = Some(Weights { dims: vec![6, 1, 4, 5], factor: 1 });
        Ok(())
    }

    fn pooling(&mut self, [r, s]: [u64; 2], stride: u64, padding: [u64; 2]) -> Result<(), String> {
        let [b, c, height, width] = self.image()?;
        let (h, w) = (positions(height, r, stride, padding[0])?, positions(width, s, stride, padding[1])?);
        let (names, shape) = (self.names(0), vec![b, c, h, w]);
        self.dims = names.iter().zip(&shape).map(|(name, &extent)| dim(name, extent, true)).collect();
        self.reads = vec![identity(4)];
        self.outputs = vec![Tensor { shape, names, axes: identity(4) }];
        Ok(())
    }

    fn concatenation(&mut self, axis: usize) -> Result<(), String> {
        let mut shape = self.first()?.shape.clone();
        self.axis(axis)?;
        let others = |shape: &[u64]| -> Vec<u64> {
            shape.iter().enumerate().filter(|(i, _)| *i != axis).map(|(_, &extent)| extent).collect()
        };
        if let Some(other) =
            self.inputs.iter().find(|g| g.shape.len() != shape.len() || others(&g.shape) != others(&shape))
        {
            return Err(format!("reads shapes {shape:?} and {:?}, which may differ only on axis {axis}", other.shape));
        }
        let names = self.names(0);
        let extent = |i: usize| if i == axis { 1 } else { shape[i] };
        self.dims = names.iter().enumerate().map(|(i, name)| dim(name, extent(i), i != axis)).collect();
        self.reads = vec![identity(shape.len()); self.inputs.len()];
        shape[axis] = self.inputs.iter().fold(0, |sum, given| sum.saturating_add(given.shape[axis]));
        self.outputs = vec![Tensor { axes: identity(shape.len()), shape, names }];
        Ok(())
    }

    fn ravel(&mut self) -> Result<(), String> {
        self.same_shape(1)?;
        let size = self.inputs[0].shape.iter().fold(1u64, |product, &extent| product.saturating_mul(extent));
        let all = (0..self.dims.len() as u8).collect();
        self.outputs = vec![Tensor { shape: vec![size], names: usual_names(1), axes: vec![all] }];
        Ok(())
    }

    fn unravel(&mut self, shape: &[u64]) -> Result<(), String> {
        self.wants(1)?;
        let flat = &self.inputs[0].shape;
        let size = shape.iter().fold(1u64, |product, &extent| product.saturating_mul(extent));
        if flat.len() != 1 || flat[0] != size {
            return Err(format!("folds a tensor of shape {flat:?} to {shape:?}; it needs one axis of {size}"));
        }
        let names = usual_names(shape.len());
        self.dims = names.iter().zip(shape).map(|(name, &extent)| dim(name, extent, true)).collect();
        self.reads = vec![vec![(0..shape.len() as u8).collect()]];
        self.outputs = vec![Tensor { shape: shape.to_vec(), names, axes: identity(shape.len()) }];
        Ok(())
    }

    fn stack(&mut self) -> Result<(), String> {
        let shape = self.first()?.shape.clone();
        let count = self.inputs.len();
        self.same_shape(count)?;
        let axis = dim(&self.fresh("s"), 1, false);
        let shifted: Vec<Vec<u8>> = (0..shape.len()).map(|i| vec![i as u8 + 1]).collect();
        self.dims.insert(0, axis);
        let names: Vec<String> = self.dims.iter().map(|dim| dim.name.clone()).collect();
        self.reads = vec![shifted; count];
        let shape = std::iter::once(count as u64).chain(shape).collect();
        self.outputs = vec![Tensor { axes: identity(names.len()), shape, names }];
        Ok(())
    }

    fn unstack(&mut self) -> Result<(), String> {
        self.same_shape(1)?;
        let Some(&count) = self.inputs[0].shape.first() else { return Err("reads a tensor without axes".into()) };
        if count > 64 {
            return Err(format!("takes a tensor apart into {count} slices, at most 64"));
        }
        if let Some(axis) = self.dims.first_mut() {
            (axis.extent, axis.splittable) = (1, false);
        }
        let (mut shape, mut names) = (self.inputs[0].shape.clone(), self.names(0));
        shape.remove(0);
        names.remove(0);
        let axes = (0..shape.len()).map(|i| vec![i as u8 + 1]).collect();
        self.outputs = vec![Tensor { shape, names, axes }; count as usize];
        Ok(())
    }

    fn dense(&mut self, units: u64, pointwise: u32) -> Result<(), String> {
        self.wants(1)?;
        let mut shape = self.inputs[0].shape.clone();
        let mut names = self.names(0);
        let (Some(features), Some(_)) = (shape.pop(), names.pop()) else {
            return Err("reads a tensor without axes".into());
        };
        let rows = shape.len();
        self.dims = names.iter().zip(&shape).map(|(name, &extent)| dim(name, extent, true)).collect();
        for (wanted, extent) in [("n", units), ("k", features)] {
            let name = self.fresh(wanted);
            self.dims.push(dim(&name, extent, true));
        }
        let (n, k) = (rows as u8, rows as u8 + 1);
        let mut axes = identity(rows);
        axes.push(vec![k]);
        self.reads = vec![axes];
        shape.push(units);
        names.push(self.dims[rows].name.clone());
        self.outputs = vec![Tensor { shape, names, axes: identity(rows + 1) }];
        let m = (0..rows as u8).collect();
        self.gemm = Some(Gemm { batch: vec![], m, n: vec![n], k: vec![k], n_factor: 1, k_factor: 1, pointwise });
        self.weights = Some(Weights { dims: vec![n, k], factor: 1 });
        Ok(())
    }

    fn einsum(&mut self, equation: &str, pointwise: u32) -> Result<(), String> {
        self.wants(2)?;
        let malformed =
            || format!("has the equation `{equation}`; write two operands and a result, as in `ble,ef->blf`");
        let (operands, result) = equation.split_once("->").ok_or_else(malformed)?;
        let (left, right) = operands.split_once(',').ok_or_else(malformed)?;
        let terms = [left, right, result].map(|term| term.trim().chars().collect::<Vec<char>>());
        for term in &terms {
            let repeated = term.iter().enumerate().any(|(i, letter)| term[..i].contains(letter));
            if repeated || !term.iter().all(char::is_ascii_lowercase) {
                return Err(malformed());
            }
        }
        let [left, right, result] = terms;
        // Letters in the order of the dimensions: those of the result, then those summed over.
        let mut letters = result.clone();
        letters.extend(left.iter().filter(|letter| right.contains(letter) && !result.contains(letter)));
        if let Some(letter) = left.iter().chain(&right).find(|letter| !letters.contains(letter)) {
            return Err(format!("has the letter `{letter}` in one operand and nowhere else"));
        }
        let mut extents: Vec<Option<u64>> = vec![None; letters.len()];
        for (slot, term) in [&left, &right].into_iter().enumerate() {
            let shape = &self.inputs[slot].shape;
            if shape.len() != term.len() {
                let term: String = term.iter().collect();
                return Err(format!("calls operand {slot} `{term}`, but its shape is {shape:?}"));
            }
            for (letter, &extent) in term.iter().zip(shape) {
                let known = letters.iter().position(|l| l == letter).map(|at| &mut extents[at]);
                match known {
                    Some(Some(other)) if *other != extent => {
                        return Err(format!("gives the letter `{letter}` the extents {other} and {extent}"));
                    }
                    Some(slot) => *slot = Some(extent),
                    None => {}
                }
            }
        }
        for (letter, extent) in letters.iter().zip(&extents) {
            let extent = extent.ok_or_else(|| format!("has the letter `{letter}` in the result only"))?;
            self.dims.push(dim(&letter.to_string(), extent, true));
        }
        let at = |letter: &char| letters.iter().position(|l| l == letter).unwrap_or_default() as u8;
        let project = |term: &[char]| term.iter().map(|letter| vec![at(letter)]).collect::<Vec<_>>();
        self.reads = vec![project(&left), project(&right)];
        self.outputs = vec![Tensor {
            shape: self.dims[..result.len()].iter().map(|dim| dim.extent).collect(),
            names: result.iter().map(char::to_string).collect(),
            axes: project(&result),
        }];
        let group = |in_left: bool, in_right: bool, in_result: bool| -> Vec<u8> {
            let wanted = |letter: &&char| {
                (left.contains(letter), right.contains(letter), result.contains(letter))
                    == (in_left, in_right, in_result)
            };
            letters.iter().filter(wanted).map(at).collect()
        };
        self.gemm = Some(Gemm {
            batch: group(true, true, true),
            m: group(true, false, true),
            n: group(false, true, true),
            k: group(true, true, false),
            n_factor: 1,
            k_factor: 1,
            pointwise,
        });
        if self.inputs[1].source.is_none() {
            self.weights = Some(Weights { dims: right.iter().map(at).collect(), factor: 1 });
        }
        Ok(())
    }

    fn mean(&mut self, axes: &[usize]) -> Result<(), String> {
        self.same_shape(1)?;
        for &axis in axes {
            self.axis(axis)?;
        }
        if axes.is_empty() || axes.windows(2).any(|pair| pair[0] >= pair[1]) {
            return Err("has axes that are not ascending".into());
        }
        let kept: Vec<usize> = (0..self.dims.len()).filter(|axis| !axes.contains(axis)).collect();
        self.outputs = vec![Tensor {
            shape: kept.iter().map(|&axis| self.dims[axis].extent).collect(),
            names: kept.iter().map(|&axis| self.dims[axis].name.clone()).collect(),
            axes: kept.iter().map(|&axis| vec![axis as u8]).collect(),
        }];
        Ok(())
    }

    fn lstm(&mut self, layers: u64, units: u64) -> Result<(), String> {
        self.wants(1)?;
        let &[b, s, features] = self.inputs[0].shape.as_slice() else {
            return Err(format!("reads a tensor of {} axes, needs batch, sequence, units", self.inputs[0].shape.len()));
        };
        if features != units {
            return Err(format!("has {units} units and reads {features} features, which must be equal"));
        }
        self.dims = vec![
            dim("l", layers, true),
            dim("s", s, false),
            dim("b", b, true),
            dim("n", units, true),
            dim("k", units, true),
        ];
        self.reads = vec![vec![vec![2], vec![1], vec![4]]];
        let names = ["b", "l", "e"].map(String::from).to_vec();
        self.outputs = vec![Tensor { shape: vec![b, s, units], names, axes: vec![vec![2], vec![1], vec![3]] }];
        self.gemm = Some(Gemm {
            batch: vec![0],
            m: vec![1, 2],
            n: vec![3],
            k: vec![4],
            n_factor: 4,
            k_factor: 2,
            pointwise: 3,
        });
        self.weights = Some(Weights { dims: vec![0, 3, 4], factor: 8 });
        Ok(())
    }

    fn finish(self, kind: OperatorKind) -> Result<Operator, String> {
        if self.dims.is_empty() || self.dims.len() > MOST_DIMS {
            return Err(format!("has {} dimensions, may have 1 to {MOST_DIMS}", self.dims.len()));
        }
        if let Some(dim) = self.dims.iter().find(|dim| dim.extent == 0) {
            return Err(format!("has the dimension {} of extent 0", dim.name));
        }
        // The batch comes from the first input that has it. Later inputs from outside are weights.
        let carried = |(slot, axes): (usize, &Vec<Vec<u8>>)| {
            let given = self.inputs.get(slot).filter(|given| slot == 0 || given.source.is_some())?;
            axes.get(given.batch_axis?)?.first().copied()
        };
        let batch_dim = self.reads.iter().enumerate().find_map(carried);
        let inputs = self.inputs.iter().zip(self.reads).enumerate();
        let inputs = inputs
            .map(|(slot, (given, axes))| {
                let names = if given.names.is_empty() {
                    usual_names(given.shape.len())
                } else {
                    self.inputs[slot].names.clone()
                };
                Input { source: given.source, tensor: Tensor { shape: given.shape.clone(), names, axes } }
            })
            .collect();
        let (dims, outputs, gemm, weights) = (self.dims, self.outputs, self.gemm, self.weights);
        Ok(Operator { kind, dims, inputs, outputs, gemm, weights, batch_dim })
    }
}
