//! Use of plantui as a library, without its screen: load a workload, plan it, check the plan, simulate an iteration,
//! write JSON.
//!
//! `cargo run --release --no-default-features --example plan_as_library [WORKLOAD]`

use std::{error::Error, path::Path, sync::Arc};

use plantui::{
    cluster::{GivenLimits, LimitKind},
    export::plan_json,
    family,
    planner::{self, Options, Problem, Search},
    run::Run,
    simulate::Schedule,
    units, workload,
};

fn main() -> Result<(), Box<dyn Error>> {
    let workload = Arc::new(match std::env::args().nth(1) {
        Some(path) => workload::load(Path::new(&path))?,
        None => workload::builtin(),
    });
    // Limits that the file does not state; the rest stays as in the file.
    let overrides = GivenLimits::default().with(LimitKind::Devices, 32);
    let limits = family::resolve(&workload, &overrides)?;
    let planner = planner::all().iter().find(|planner| planner.is_native(&workload)).ok_or("nothing plans this")?;
    let options = Options::defaults(planner.options());

    // Plans, measures with code independent of the planner, and simulates.
    let search = Search::default();
    let mut run = Run::new(*planner, Problem { workload, limits, options }, &search)?;
    run.simulate(Schedule::OneForwardOneBackward, &search);

    let (Some(score), Some(simulation)) = (&run.score, &run.simulation) else {
        return Err(run.outcome.infeasible.map_or("no plan".into(), |story| story.explanation.into()));
    };
    eprintln!("{}: {}", planner.info().name, score.measure.show(score.value));
    eprintln!("a simulated batch takes {}", units::seconds(simulation.timeline.iteration_s));
    println!("{}", plan_json::to_json(&plan_json::of_run(&run)));
    Ok(())
}
