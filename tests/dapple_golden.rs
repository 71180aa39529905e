//! DAPPLE's published programs: states and totals of every profile they finish.

mod common;

use std::path::Path;

use common::reference;
use plantui::workload::{
    self, Workload,
    states::{MOST_STATES, States, StatesError},
};

fn load(root: &Path, input: &str) -> Workload {
    workload::load(&root.join(input)).unwrap_or_else(|error| panic!("{error}"))
}

fn states(workload: &Workload) -> Result<States, StatesError> {
    States::of(workload, workload.layers().expect("a layer-wise profile"))
}

fn equal(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * b.abs()
}

#[test]
fn states_and_totals_are_those_of_the_published_importer() {
    let Some(root) = reference::root("dapple states") else { return };
    let table = include_str!("figures/dapple-states.tsv").lines().filter(|line| !line.starts_with('#')).skip(1);
    let mut count = 0;
    for line in table {
        let field: Vec<&str> = line.split('\t').collect();
        let workload = load(&root, field[0]);
        let states = states(&workload).unwrap_or_else(|error| panic!("{}: {error}", field[0]));
        assert_eq!(states.len(), field[1].parse::<usize>().unwrap(), "{}", field[0]);
        assert!(states.members.iter().map(Vec::len).sum::<usize>() == workload.nodes.len(), "{}", field[0]);
        count += 1;
        if field[2] == "-" {
            continue;
        }
        let number = |i: usize| field[i].parse::<f64>().unwrap();
        let last = states.len() - 1;
        let (profile_batch, batch) = (number(2), number(3));
        assert!(equal(states.compute_s[last] * batch / profile_batch, number(4)), "{}", field[0]);
        assert!(equal(states.parameter_bytes[last], number(5)), "{}", field[0]);
        assert!(equal(states.activation_bytes[last] / profile_batch, number(6)), "{}", field[0]);
    }
    assert!(count >= 30, "only {count} profiles");
}

#[test]
fn profiles_with_too_many_states_can_be_cut_along_one_order() {
    let Some(root) = reference::root("dapple states of branching networks") else { return };
    for input in ["inception_v3", "nasnetalarge", "nasnetamobile"] {
        let workload = load(&root, &format!("hpgo/profiles/{input}/graph.txt"));
        assert_eq!(states(&workload).unwrap_err(), StatesError::TooMany(MOST_STATES), "{input}");
        let linear = States::along_order(&workload, workload.layers().unwrap()).unwrap();
        assert!(linear.is_chain() && linear.len() > 300, "{input}");
    }
}
