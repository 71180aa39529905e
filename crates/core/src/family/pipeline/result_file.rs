//! Piper's own result format: `{"stages": [{"nodes", "dataParallelDegree", "tensorParallelDegree", "TMPCids"}]}`.
//!
//! `TMPCids` maps node ids to mode ids. The published program writes it as an array of `[node, id]` pairs (its JSON
//! library does so for maps with integer keys), its README as an object. Both are read, with ids as numbers or text.
//! The object is written.

use std::{collections::BTreeMap, fmt};

use serde::{
    Deserialize, Deserializer, Serialize,
    de::{Error, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer},
};
use serde_json::{Map, Value};

use crate::{
    cluster::GivenLimits,
    family::{
        self,
        read::{LoadedPlan, check_device_count, nodes_with_modes, parse},
    },
    plan::{
        Plan, Stage,
        figures::{Claims, Figures},
    },
    source::{
        LoadError,
        strict::{JsonPairs, Object},
    },
    workload::{NodeId, NodeIndex, Workload},
};

#[derive(Debug, Serialize)]
struct ResultFile {
    stages: Vec<StageResult>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct StageResult {
    nodes: Vec<NodeId>,
    data_parallel_degree: u32,
    tensor_parallel_degree: u32,
    #[serde(rename = "TMPCids")]
    tmpc_ids: Map<String, Value>,
}

#[derive(Debug, Deserialize)]
struct RawResult {
    stages: Vec<Object<RawResultStage>>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawResultStage {
    nodes: Vec<NodeId>,
    data_parallel_degree: u32,
    tensor_parallel_degree: u32,
    #[serde(rename = "TMPCids")]
    tmpc_ids: Choices,
}

/// Node ids as text with their modes, in file order, from either notation.
#[derive(Debug)]
struct Choices(Vec<(String, String)>);

/// Id in a pair, as a number or as text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum PairId {
    Number(i64),
    Text(String),
}

impl<'de> Deserialize<'de> for Choices {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ChoicesVisitor;
        impl<'de> Visitor<'de> for ChoicesVisitor {
            type Value = Choices;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of node ids and modes, or an array of such pairs")
            }
            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Choices, A::Error> {
                JsonPairs::deserialize(MapAccessDeserializer::new(map)).map(|JsonPairs(pairs)| Choices(pairs))
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Choices, A::Error> {
                let mut pairs = vec![];
                while let Some(pair) = list.next_element::<Value>()? {
                    let (id, mode): (PairId, String) = serde_json::from_value(pair).map_err(|_| {
                        A::Error::custom("every element must be a pair of a node's id and its mode: [0, \"vanilla\"]")
                    })?;
                    let id = match id {
                        PairId::Number(id) => id.to_string(),
                        PairId::Text(id) => id,
                    };
                    pairs.push((id, mode));
                }
                Ok(Choices(pairs))
            }
        }
        deserializer.deserialize_any(ChoicesVisitor)
    }
}

/// Plan in Piper's format, with the node ids of the workload's file.
pub fn to_json(workload: &Workload, plan: &Plan) -> String {
    let id = |v: NodeIndex| workload.nodes[v].id;
    let stage = |stage: &Stage| StageResult {
        nodes: stage.nodes.iter().map(|&v| id(v)).collect(),
        data_parallel_degree: stage.data_parallel,
        tensor_parallel_degree: stage.tensor_parallel,
        tmpc_ids: stage
            .nodes
            .iter()
            .zip(&stage.choices)
            .map(|(&v, c)| (id(v).to_string(), c.to_string().into()))
            .collect(),
    };
    let result = ResultFile { stages: plan.stages.iter().map(stage).collect() };
    serde_json::to_string_pretty(&result).expect("strings and numbers serialise") + "\n"
}

/// Reads a plan in Piper's format.
///
/// # Errors
/// [`LoadError`] if the text is something else or names nodes that the workload lacks.
pub(crate) fn read(workload: &Workload, text: &str, source: &str) -> Result<LoadedPlan, LoadError> {
    let result: RawResult = parse(text, source)?;
    let mut plan = Plan { measure: family::measure(workload), ..Plan::default() };
    let by_id = workload.by_id();
    for (i, Object(part)) in result.stages.into_iter().enumerate() {
        let own = (workload, &by_id);
        let (nodes, choices) = nodes_with_modes(own, &part.nodes, part.tmpc_ids.0, source, i, "TMPCids")?;
        plan.stages.push(Stage {
            nodes,
            choices,
            data_parallel: part.data_parallel_degree,
            tensor_parallel: part.tensor_parallel_degree,
            devices: vec![],
        });
    }
    check_device_count(workload, &plan, ("dataParallelDegree", "tensorParallelDegree"), source)?;
    Ok(LoadedPlan {
        plan: family::of(workload).numbered(plan, workload.limits.devices()),
        limits: GivenLimits::default(),
        planner: None,
        recipe: None,
        training: None,
        kinds: vec![],
        options: BTreeMap::new(),
        claims: Claims::default(),
        figures: Figures::default(),
        kind: "Piper result",
        notes: vec![],
        accelerators: workload.limits.devices(),
    })
}
