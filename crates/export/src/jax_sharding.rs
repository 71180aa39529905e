//! Splits of operators as JAX `PartitionSpec`s over a device mesh.
//!
//! The mesh has an axis for each prime factor of the number of devices, so every split that divides this number uses
//! whole axes. The batch takes axes from the front, other dimensions from the back. A split with factors that the mesh
//! lacks is left out, with a comment. `O(operators · dimensions · log devices)`.

use std::fmt::Write;

use plantui_core::{
    family,
    plan::Plan,
    text::is_hostile,
    workload::{Operator, Workload, operators::Tensor},
};

/// Axes of a mesh.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mesh {
    /// Size of each axis: the prime factors of the number of devices, ascending.
    pub sizes: Vec<u32>,
}

/// Mesh axes of each dimension of an operator.
pub type AxisAssignment = Vec<Vec<usize>>;

impl Mesh {
    /// Mesh of this many devices.
    pub fn new(devices: u32) -> Self {
        Mesh { sizes: prime_factors(devices) }
    }

    /// Mesh axes for each dimension of a split; `None` if the split does not factor over the mesh.
    pub fn assign(&self, operator: &Operator, splits: &[u32]) -> Option<AxisAssignment> {
        let mut free = vec![true; self.sizes.len()];
        let mut assignment = vec![vec![]; splits.len()];
        let batch = operator.batch_dim.map(usize::from);
        let others = (0..splits.len()).filter(|&dim| Some(dim) != batch);
        for dim in batch.into_iter().chain(others) {
            for prime in prime_factors(splits[dim]) {
                let fits = |axis: &usize| free[*axis] && self.sizes[*axis] == prime;
                let mut axes = 0..self.sizes.len();
                let axis = if Some(dim) == batch { axes.find(fits) } else { axes.rfind(fits) }?;
                free[axis] = false;
                assignment[dim].push(axis);
            }
            assignment[dim].sort_unstable();
        }
        Some(assignment)
    }
}

fn prime_factors(mut number: u32) -> Vec<u32> {
    let mut factors = vec![];
    let mut prime = 2;
    while number > 1 {
        while number.is_multiple_of(prime) {
            factors.push(prime);
            number /= prime;
        }
        prime += 1;
    }
    factors
}

/// Specification of a tensor whose axes are split by these dimensions.
fn spec<'a>(axes: impl Iterator<Item = &'a [u8]>, assignment: &AxisAssignment) -> String {
    let axis = |dims: &[u8]| {
        let over = dims.iter().flat_map(|&dim| &assignment[usize::from(dim)]);
        let names: Vec<String> = over.map(|axis| format!("\"d{axis}\"")).collect();
        match names.as_slice() {
            [] => "None".to_string(),
            [one] => one.clone(),
            _ => format!("({})", names.join(", ")),
        }
    };
    format!("P({})", axes.map(axis).collect::<Vec<_>>().join(", "))
}

/// Python text: the mesh, and the specifications of each operator's inputs, weights and outputs.
pub fn to_python(workload: &Workload, plan: &Plan) -> String {
    let mesh = Mesh::new(plan.devices_used());
    let sizes: Vec<String> = mesh.sizes.iter().map(ToString::to_string).collect();
    let names: Vec<String> = (0..mesh.sizes.len()).map(|axis| format!("\"d{axis}\"")).collect();
    let comma = if names.len() == 1 { "," } else { "" };
    let mut text = format!(
        "# Splits of {} over {} devices.\nfrom jax.sharding import PartitionSpec as P\n\n# jax.make_mesh(MESH_SHAPE, MESH_AXES)\nMESH_SHAPE = ({}{comma})\nMESH_AXES = ({}{comma})\n\n# By node: inputs, weights and outputs, axis by axis.\nSPECS = {{\n",
        quoted(&workload.name),
        plan.devices_used(),
        sizes.join(", "),
        names.join(", "),
    );
    let family = family::of(workload);
    let chosen = plan.stages.iter().flat_map(|stage| stage.nodes.iter().zip(&stage.choices));
    for (&node, choice) in chosen {
        let Some(operator) = family.operator(node) else { continue };
        let (id, label) = (workload.nodes[node].id, quoted(&workload.nodes[node].label()));
        let splits = choice.split().and_then(|split| operator.degrees(split).ok()).unwrap_or_default();
        let entry = match mesh.assign(operator, &splits) {
            Some(assignment) => line(operator, &assignment),
            None => "None".into(),
        };
        let why = if entry == "None" {
            format!(": {} does not factor over the mesh", quoted(&choice.to_string()))
        } else {
            String::new()
        };
        writeln!(text, "    {id}: {entry},  # {label}{why}").expect("a string takes every write");
    }
    text + "}\n"
}

fn line(operator: &Operator, assignment: &AxisAssignment) -> String {
    let of = |tensor: &Tensor| spec(tensor.axes.iter().map(Vec::as_slice), assignment);
    let list = |tensors: Vec<String>| format!("[{}]", tensors.join(", "));
    let inputs = list(operator.inputs.iter().map(|input| of(&input.tensor)).collect());
    let outputs = list(operator.outputs.iter().map(of).collect());
    let weights = operator.weights.as_ref().map(|weights| {
        let dims: Vec<&str> = weights.dims.iter().map(|&dim| operator.dims[usize::from(dim)].name.as_str()).collect();
        let spec = spec(weights.dims.iter().map(std::slice::from_ref), assignment);
        // JSON escapes are valid in Python.
        format!(", \"weights\": {spec}, \"weight_axes\": {}", serde_json::Value::from(dims.join(" ")))
    });
    format!("{{\"inputs\": {inputs}, \"outputs\": {outputs}{}}}", weights.unwrap_or_default())
}

/// Name for a Python comment: on one line.
fn quoted(name: &str) -> String {
    name.chars().filter(|c| !is_hostile(*c)).collect()
}
