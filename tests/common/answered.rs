//! Points of a sweep answered in a test.

use std::sync::Mutex;

use plantui::{
    planner::Search,
    study::sweep::{PointResult, Sweep, run},
};

/// Answers what is open, one thread or more; `enough` may stop it.
pub(crate) fn answered(
    sweep: &Sweep,
    mut answers: Vec<Option<PointResult>>,
    threads: usize,
    enough: impl Fn(usize) -> bool + Sync,
) -> Vec<Option<PointResult>> {
    let wanted: Vec<usize> = (0..answers.len()).filter(|&place| answers[place].is_none()).collect();
    let found = Mutex::new(vec![]);
    let search = Search::default();
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    pool.install(|| {
        run::run(sweep, &wanted, None, &search, &|place, answer| {
            let mut found = found.lock().unwrap();
            found.push((place, answer));
            if enough(found.len()) {
                search.cancel();
            }
        });
    });
    for (place, answer) in found.into_inner().unwrap() {
        assert!(answers[place].replace(answer).is_none(), "point {place} was answered twice");
    }
    answers
}

/// No point answered yet.
pub(crate) fn open(sweep: &Sweep) -> Vec<Option<PointResult>> {
    vec![None; sweep.points.len()]
}
