//! Load of a topology's links under a plan, and the gain from a faster link.
//!
//! Loads are seconds per microbatch: the bytes of transfers and of all-reduce rings over the link's bandwidth, per
//! direction. The gain is simulated: the same plan on the same devices, with that link, or all links of its kind, twice
//! as fast and routes computed anew. `O(flows · hops)` for loads, plus a simulation per gain.

use std::sync::Arc;

use plantui_core::{
    cluster::{
        Limits,
        topology::{Link, LinkRule, Topology},
    },
    family,
    mapping::{self, CommunicationKinds, MappingInstance},
    plan::Plan,
    search::Search,
    simulate::{Setup, length_unless},
    workload::Workload,
};

/// Links that are tested individually.
const SINGLE: usize = 3;

/// Load of one direction of a link.
#[derive(Debug, Clone, PartialEq)]
pub struct LinkLoad {
    /// Channel in the topology.
    pub channel: u32,
    /// Ends of the link: `gpu3 -> nvswitch`.
    pub name: String,
    /// Kind of the link: `NVLink 2`.
    pub kind: String,
    /// Bytes per second.
    pub bandwidth: f64,
    /// Busy seconds per microbatch.
    pub seconds: f64,
}

/// Iteration time with one part twice as fast.
#[derive(Debug, Clone, PartialEq)]
pub struct WiderLink {
    /// Link, or kind of links.
    pub what: String,
    /// Iteration time, seconds.
    pub iteration_s: f64,
}

/// Load of each link that the plan uses, the fullest first; empty for a plan without a topology.
pub fn loads(workload: &Workload, limits: &Limits, plan: &Plan) -> Vec<LinkLoad> {
    let Some(topology) = &plan.topology else { return vec![] };
    let setup = Setup::default().of(plan);
    let plain = Plan { topology: None, ..plan.clone() };
    let pipeline = family::pipeline(workload, limits, &plain, &setup.settings);
    let devices: Vec<usize> = plan.devices().map(|device| device as usize).collect();
    if !pipeline.flows() {
        return vec![];
    }
    let demands = mapping::demands(workload, limits, &plain, &pipeline, LinkRule::of(topology).any);
    let known = devices.len() == demands.workers.len() && devices.iter().all(|&device| device < topology.devices());
    if !known {
        return vec![];
    }
    let consider = CommunicationKinds { shared_links: true, ..CommunicationKinds::default() };
    let instance = MappingInstance::new(topology, &demands, consider);
    let load = |(channel, seconds): (u32, f64)| LinkLoad {
        channel,
        name: topology.channel_name(channel),
        kind: link(topology, channel).what.clone(),
        bandwidth: topology.channel_bandwidth(channel),
        seconds,
    };
    let used = (0..).zip(instance.channel_seconds(&devices)).filter(|(_, seconds)| *seconds > 0.0);
    let mut loads: Vec<LinkLoad> = used.map(load).collect();
    loads.sort_by(|a, b| b.seconds.total_cmp(&a.seconds).then(a.channel.cmp(&b.channel)));
    loads
}

fn link(topology: &Topology, channel: u32) -> &Link {
    &topology.links()[channel as usize / 2]
}

/// Current iteration time, and the times with the fullest links, and each used kind of links, twice as fast. Lists only
/// improvements, the largest first. `None` for a plan without a topology, or if the search ends.
pub fn twice_as_fast(
    workload: &Workload,
    limits: &Limits,
    plan: &Plan,
    search: &Search,
) -> Option<(f64, Vec<WiderLink>)> {
    let topology = plan.topology.as_ref()?;
    let setup = Setup::default().of(plan);
    let on = |topology: Arc<Topology>| {
        let plan = Plan { topology: Some(topology), ..plan.clone() };
        let stopped = || search.cancelled();
        let pipeline = family::pipeline_unless(workload, limits, &plan, &setup.settings, &stopped)?;
        length_unless(&pipeline, pipeline.schedule(setup.schedule), &stopped)
    };
    let now = on(Arc::clone(topology))?;
    let loads = loads(workload, limits, plan);
    let mut asked: Vec<(String, Topology)> = vec![];
    for load in &loads {
        let index = load.channel as usize / 2;
        let known = asked.iter().any(|(_, other)| other.links()[index].bandwidth > load.bandwidth);
        if asked.len() < SINGLE && !known {
            asked.push((load.name.clone(), topology.widened(|at, _| at == index, 2.0)));
        }
    }
    let mut kinds: Vec<&str> = loads.iter().map(|load| load.kind.as_str()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    for kind in kinds {
        let of = topology.links().iter().filter(|link| link.what == kind).count();
        if of > 1 {
            let what = if kind.is_empty() { "all links".to_string() } else { format!("all {of} of {kind}") };
            asked.push((what, topology.widened(|_, link| link.what == kind, 2.0)));
        }
    }
    let mut found = vec![];
    for (what, topology) in asked {
        let iteration_s = on(Arc::new(topology))?;
        if iteration_s < now * (1.0 - 1e-9) {
            found.push(WiderLink { what, iteration_s });
        }
    }
    found.sort_by(|a, b| a.iteration_s.total_cmp(&b.iteration_s));
    Some((now, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::Run;
    use plantui_core::{
        cluster::{GivenLimits, LimitKind, topology::named},
        workload,
    };
    use plantui_planners::{self as planner, Options, Problem};

    /// Built-in network on a topology, every stage on its own devices.
    fn planned(name: &str) -> (Arc<Workload>, Limits, Plan) {
        let topology = Arc::new(named(name).unwrap());
        let workload = Arc::new(workload::builtin());
        let asked = GivenLimits::default().with(LimitKind::Devices, topology.devices() as u32);
        let limits = family::resolve(&workload, &asked).unwrap();
        let planner = planner::find("equal-partition").unwrap();
        let problem = Problem { workload, limits: limits.clone(), options: Options::defaults(planner.options()) };
        let run = Run::new(planner, problem, &Search::default()).unwrap();
        let plan = run.outcome.plan.clone().unwrap();
        let devices: Vec<usize> = plan.devices().map(|device| device as usize).collect();
        let plan = plan.on(&topology, &devices);
        (Arc::clone(&run.problem.workload), limits, plan)
    }

    #[test]
    fn links_carry_what_their_plan_sends_and_a_wider_one_shortens_the_batch() {
        let (workload, limits, plan) = planned("2xdgx-1+eth-25g");
        let loads = loads(&workload, &limits, &plan);
        assert!(loads.len() > 1 && loads.windows(2).all(|pair| pair[0].seconds >= pair[1].seconds), "{loads:?}");
        assert!(loads.iter().all(|load| load.seconds > 0.0 && load.name.contains('>')));
        let (now, wider) = twice_as_fast(&workload, &limits, &plan, &Search::default()).unwrap();
        assert!(!wider.is_empty() && wider.iter().all(|wider| wider.iteration_s < now), "{now} {wider:?}");
        assert!(wider.windows(2).all(|pair| pair[0].iteration_s <= pair[1].iteration_s));
        // Doubling all links of a kind gains at least as much as doubling one.
        let all = wider.iter().filter(|wider| wider.what.starts_with("all ")).map(|wider| wider.iteration_s);
        assert!(all.fold(f64::INFINITY, f64::min) <= wider[0].iteration_s * (1.0 + 1e-9), "{wider:?}");
    }

    #[test]
    fn a_plan_on_no_topology_has_no_links() {
        let (workload, limits, plan) = planned("dgx-1");
        let plan = Plan { topology: None, ..plan };
        assert!(loads(&workload, &limits, &plan).is_empty());
        assert_eq!(twice_as_fast(&workload, &limits, &plan, &Search::default()), None);
    }
}
