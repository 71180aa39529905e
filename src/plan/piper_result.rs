//! Piper's own result format: `{"stages": [{"nodes", "dataParallelDegree", "tensorParallelDegree", "TMPCids"}]}`.
//!
//! `TMPCids` maps node ids to mode ids. The published program writes it as an array of `[node, id]` pairs (its JSON
//! library spells integer-keyed maps so), its README as an object: both are read, the object is written.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    Plan, Stage,
    document::{LimitsPart, LoadedPlan, indices, sorted},
};
use crate::workload::{LoadError, NodeId, Workload};

#[derive(Debug, Serialize, Deserialize)]
struct ResultFile {
    stages: Vec<StageResult>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StageResult {
    nodes: Vec<NodeId>,
    data_parallel_degree: u32,
    tensor_parallel_degree: u32,
    #[serde(rename = "TMPCids")]
    tmpc_ids: Choices,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
enum Choices {
    Object(Map<String, Value>),
    Pairs(Vec<(NodeId, String)>),
}

impl Choices {
    fn get(&self, id: NodeId) -> Option<&str> {
        match self {
            Choices::Object(map) => map.get(&id.to_string()).and_then(Value::as_str),
            Choices::Pairs(pairs) => pairs.iter().find(|(node, _)| *node == id).map(|(_, mode)| mode.as_str()),
        }
    }
}

/// The plan in Piper's format, node ids those of the workload's file.
pub fn to_json(workload: &Workload, plan: &Plan) -> String {
    let stage = |stage: &Stage| StageResult {
        nodes: stage.nodes.iter().map(|&v| workload.nodes[v].id).collect(),
        data_parallel_degree: stage.data_parallel,
        tensor_parallel_degree: stage.tensor_parallel,
        tmpc_ids: Choices::Object(
            stage
                .nodes
                .iter()
                .zip(&stage.choices)
                .map(|(&v, c)| (workload.nodes[v].id.to_string(), c.clone().into()))
                .collect(),
        ),
    };
    let result = ResultFile { stages: plan.stages.iter().map(stage).collect() };
    serde_json::to_string_pretty(&result).expect("strings and numbers serialise") + "\n"
}

/// Reads a plan in Piper's format.
///
/// # Errors
/// [`LoadError`] if the text is something else or names nodes that the workload has not.
pub fn read(workload: &Workload, text: &str, source: &str) -> Result<LoadedPlan, LoadError> {
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let result: ResultFile = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let message = error.inner().to_string();
        let problem = format!("is no plan: {}", message.split(" at line ").next().unwrap_or_default());
        LoadError::at(source, error.path().to_string(), problem, "give a plantui plan or a result of Piper")
            .on_line(Some(error.inner().line()).filter(|&l| l > 0))
    })?;
    let mut plan = Plan::default();
    for (i, part) in result.stages.iter().enumerate() {
        let nodes = indices(workload, &part.nodes, source, &format!("stages[{i}].nodes"))?;
        let choice = |&v: &usize| {
            let id = workload.nodes[v].id;
            part.tmpc_ids.get(id).map(str::to_string).ok_or_else(|| {
                LoadError::at(
                    source,
                    format!("stages[{i}].TMPCids"),
                    format!("has no choice for node {id}"),
                    "name a mode for every node",
                )
            })
        };
        let choices = nodes.iter().map(choice).collect::<Result<_, _>>()?;
        plan.stages.push(sorted(Stage {
            nodes,
            choices,
            data_parallel: part.data_parallel_degree,
            tensor_parallel: part.tensor_parallel_degree,
            devices: vec![],
        }));
    }
    Ok(LoadedPlan {
        plan: plan.with_consecutive_devices(),
        limits: LimitsPart::default(),
        claimed: None,
        kind: "Piper result",
    })
}
