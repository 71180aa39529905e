//! The JSON of operator graphs: every rule has a message, and every kind of operator can be planned.

use std::sync::Arc;

use plantui::{
    cluster::GivenLimits,
    export::{jax_sharding, operator_dot},
    family,
    planner::{self, Options, Problem, Search, Status},
    run,
    source::LoadError,
    workload::{self, Workload, lint},
};
use serde_json::{Value, json};

fn valid() -> Value {
    serde_json::from_str(include_str!("../common/every_operator.json")).unwrap()
}

fn load(document: &Value) -> Result<Workload, LoadError> {
    workload::load_bytes(document.to_string().as_bytes(), "graph.json", "graph")
}

#[test]
fn every_rule_has_a_message() {
    let cases: &[(&str, Value, &str)] = &[
        (
            "/schema",
            json!("plantui.operators/9"),
            "schema is `plantui.operators/9`; this version reads plantui.operators/1",
        ),
        ("/devices", json!(0), "devices is 0, must be a whole number from 1 to 10000"),
        ("/memory", json!(-1), "memory is -1, must be at least 1e-9"),
        ("/flops", json!(0), "flops is 0, must be at least 1e-9"),
        ("/bandwidth", json!(5e-324), "bandwidth is 5e-324, must be at least 1e-9"),
        ("/cutoff", json!(0.5), "cutoff is 0.5, must be a whole number from 1 to 1000000000"),
        ("/operators", json!([]), "operators has 0 operators, must have 1 to 100000"),
        ("/operators/1/id", json!(0), "operators[1].id is 0, which operators[0] has already"),
        ("/operators/1/id", json!(0.5), "operators[1].id is 0.5, must be a whole number"),
        (
            "/operators/1/kind",
            json!("batchnorm"),
            "operators[1].kind is `batchnorm`, which is not known; it may be conv, ",
        ),
        ("/operators/1/units", json!(3), "operators[1].units is nothing that `norm` takes; remove it"),
        ("/operators/1/axis", Value::Null, "operators[1].axis is missing: `norm` needs it; for example \"axis\": 1"),
        ("/operators/1/axis", json!(4), "operators[1] has axis 4, but its input has 4 axes, counted from 0"),
        ("/operators/1/inputs/0/from", json!(2), "operators[1].inputs[0].from is 2, which no operator before has"),
        ("/operators/1/inputs/0/from", json!(1), "operators[1].inputs[0].from is 1, the operator itself"),
        ("/operators/1/inputs/0/output", json!(1), "operators[1].inputs[0].output is 1, but operator 0 writes 1"),
        ("/operators/1/inputs/0/shape", json!([2]), "operators[1].inputs[0] must have either `shape` or `from`"),
        ("/operators/1/inputs", json!([]), "operators[1] has 0 inputs, needs 1"),
        ("/operators/0/inputs/0/output", json!(0), "operators[0].inputs[0].output is given for a tensor from outside"),
        (
            "/operators/0/inputs/0/shape/1",
            json!(0),
            "operators[0].inputs[0].shape[1] is 0, must be a whole number from 1",
        ),
        ("/operators/0/inputs/0/shape", json!([4, 3]), "operators[0] reads a tensor of 2 axes, needs b, c, h and w"),
        ("/operators/0/inputs/0/shape", json!(vec![1; 16]), "operators[0].inputs[0].shape has 16 axes, may have 15"),
        ("/operators/0/window", json!([30, 3]), "operators[0] has a window of 30 on an extent of 8 with 1 of padding"),
        ("/operators/0/window", json!([3]), "operators[0].window"),
        ("/operators/0/pointwise", json!(-1), "operators[0].pointwise is -1, must be a whole number from 0 to 1000"),
        (
            "/operators/3/inputs/1",
            json!({"shape": [1, 1]}),
            "operators[3] reads tensors of shapes [4, 6, 4, 4] and [1, 1]",
        ),
        ("/operators/4/axis", json!(0), ""),
        ("/operators/5/axes", json!([3, 2]), "operators[5] has axes that are not ascending"),
        (
            "/operators/7/shape",
            json!([5, 5]),
            "operators[7] folds a tensor of shape [48] to [5, 5]; it needs one axis of 25",
        ),
        ("/operators/10/equation", json!("ble,ef"), "operators[10] has the equation `ble,ef`; write two operands"),
        (
            "/operators/10/equation",
            json!("ble,ef->blz"),
            "operators[10] has the letter `f` in one operand and nowhere else",
        ),
        ("/operators/10/inputs/1/shape", json!([4, 6]), "operators[10] gives the letter `e` the extents 3 and 4"),
        ("/operators/12/units", json!(7), "operators[12] has 7 units and reads 6 features, which must be equal"),
        (
            "/operators/13/units",
            json!(1e10),
            "operators[13].units is 10000000000, must be a whole number from 1 to 1e9",
        ),
    ];
    for (pointer, value, message) in cases {
        let mut document = valid();
        let (parent, key) = pointer.rsplit_once('/').unwrap();
        match (document.pointer_mut(parent).unwrap(), value) {
            (Value::Object(map), Value::Null) => drop(map.remove(key)),
            (Value::Object(map), value) => drop(map.insert(key.into(), value.clone())),
            (Value::Array(list), value) => list[key.parse::<usize>().unwrap()] = value.clone(),
            _ => panic!("{pointer} is in no document"),
        }
        match load(&document) {
            Ok(_) => assert!(message.is_empty(), "{pointer} = {value} was read, not refused: {message}"),
            Err(error) => {
                let told = error.to_string();
                assert!(!message.is_empty() && told.contains(message), "{pointer} = {value}: {told}");
                assert!(told.starts_with("graph.json:"), "{told}");
            }
        }
    }
}

#[test]
fn every_kind_of_operator_is_planned_checked_and_exported() {
    let workload = Arc::new(load(&valid()).unwrap());
    assert_eq!((workload.nodes.len(), workload.format), (15, workload::WorkloadFormat::Operators));
    assert!(lint::lint(&workload).is_empty());
    let limits = family::resolve(&workload, &GivenLimits::default()).unwrap();
    for id in ["pase", "pase-data-parallel"] {
        let planner = planner::find(id).unwrap();
        let options = Options::defaults(planner.options());
        let problem = Problem { workload: workload.clone(), limits: limits.clone(), options };
        let (outcome, score) = run::plan(planner, &problem, &Search::default()).unwrap();
        assert_eq!(outcome.status == Status::Optimal, id == "pase");
        let (plan, score) = (outcome.plan.unwrap(), score.unwrap());
        let dot = operator_dot::to_dot(&workload, &plan, &score).unwrap();
        assert_eq!(dot.matches("fillcolor").count(), 15, "{dot}");
        assert_eq!(dot.matches(" -> ").count(), workload.dag.edges().len(), "{dot}");
        let jax = jax_sharding::to_python(&workload, &plan);
        let (written, left_out) = (jax.matches("\"outputs\": ").count(), jax.matches("does not factor").count());
        assert_eq!(written + left_out, 15, "{jax}");
        assert!(jax.contains("MESH_SHAPE = (3,)"), "{jax}");
    }
}

#[test]
fn splits_become_mesh_axes_where_they_factor() {
    let workload = load(&valid()).unwrap();
    let operators = &workload.operators().unwrap().operators;
    let mesh = jax_sharding::Mesh::new(12);
    assert_eq!(mesh.sizes, [2, 2, 3]);
    // The convolution's b c h w r s n.
    let assigned = mesh.assign(&operators[0], &[2, 3, 1, 1, 1, 1, 2]).unwrap();
    assert_eq!(assigned, [vec![0], vec![2], vec![], vec![], vec![], vec![], vec![1]]);
    assert_eq!(mesh.assign(&operators[0], &[4, 1, 1, 1, 1, 1, 2]), None);
}
