//! Runs HiGHS on a thread of its own, so that whoever waits can stop waiting at any time.
//!
//! HiGHS looks at its limits between the steps of its search, and a step can take seconds. A cancelled run is therefore
//! told to stop and then left behind: the caller is free after [`PATIENCE`], the thread ends at HiGHS' next look.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use crossbeam_channel::RecvTimeoutError;
use highs::{Model, Sense};

use super::{
    FEASIBILITY, GAP, SCALE,
    callback::{Ended, Line, Report, run},
    program::Program,
};
use crate::planner::Search;

/// How often it is asked whether to stop.
const GLANCE: Duration = Duration::from_millis(10);
/// How long a run that was told to stop is waited for.
const PATIENCE: Duration = Duration::from_millis(30);

/// Minimises a program, from a solution if one is given (the value of every variable). `told` hears of better solutions and
/// bounds; once `enough` holds there is no need to go on. `None` if it was stopped before HiGHS said how it ended.
pub(crate) fn solve(
    program: Program,
    start: Option<Vec<f64>>,
    handle: &Search,
    enough: &dyn Fn() -> bool,
    told: &mut dyn FnMut(Report),
) -> Option<Ended> {
    let (reports, heard) = crossbeam_channel::unbounded();
    let stop = Arc::new(AtomicBool::new(false));
    let line = Line { reports, stop: Arc::clone(&stop) };
    let seconds = handle.remaining().map(|remaining| remaining.as_secs_f64());
    let worker = move || {
        let ended = prepare(program, start.as_deref(), seconds).map(|model| run(model, &line));
        if let Some(ended) = ended {
            let _ = line.reports.send(Report::Ended(ended));
        }
    };
    thread::Builder::new().name("highs".into()).spawn(worker).ok()?;
    let mut given_up: Option<Instant> = None;
    loop {
        match heard.recv_timeout(GLANCE) {
            Ok(Report::Ended(ended)) => return Some(ended),
            Ok(report) => told(report),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => return None,
        }
        if handle.cancelled() || enough() {
            stop.store(true, Ordering::Relaxed);
            if given_up.get_or_insert_with(Instant::now).elapsed() >= PATIENCE {
                return None;
            }
        }
    }
}

/// The model with its settings and its start. The time limit is for the heuristics inside HiGHS, which ask nobody else.
fn prepare(program: Program, start: Option<&[f64]>, seconds: Option<f64>) -> Option<Model> {
    let mut model = program.into_problem().try_optimise(Sense::Minimise).ok()?;
    model.make_quiet();
    // One thread: the answer then depends on nothing but the program.
    model.set_option("threads", 1);
    model.set_option("parallel", "off");
    model.set_option("mip_rel_gap", GAP);
    model.set_option("mip_abs_gap", GAP * SCALE);
    for tolerance in ["mip_feasibility_tolerance", "primal_feasibility_tolerance", "dual_feasibility_tolerance"] {
        model.set_option(tolerance, FEASIBILITY);
    }
    if let Some(seconds) = seconds {
        model.set_option("time_limit", seconds);
    }
    // Reports more often than every five seconds.
    model.set_option("mip_min_logging_interval", 1.0);
    if let Some(start) = start {
        // A start that HiGHS refuses costs time, not correctness.
        let _ = model.try_set_solution(Some(start), None, None, None);
    }
    Some(model)
}
