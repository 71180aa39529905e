//! What HiGHS says while it runs, and how it is told to stop: the one place with code that the compiler cannot check.
//!
//! The `highs` crate has no callbacks. Without them a run shows nothing until its end and cannot be stopped: a cancelled
//! run would keep a core busy until its time limit, minutes later, where with them it ends at the solver's next check of
//! its limits. `Highs_setCallback` takes a C function and a pointer, hence the `unsafe` here.

#![expect(unsafe_code, reason = "the callback of a C library")]

use std::{
    ffi::{c_char, c_int, c_void},
    slice,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use crossbeam_channel::Sender;
use highs::{HighsModelStatus, HighsSolutionStatus, Model};
use highs_sys::{
    Highs_setCallback, Highs_startCallback, HighsCallbackDataIn, HighsCallbackDataOut, STATUS_ERROR,
    kHighsCallbackMipImprovingSolution, kHighsCallbackMipInterrupt, kHighsCallbackMipLogging,
    kHighsCallbackSimplexInterrupt,
};

/// What a run reports.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Report {
    /// A better solution: the value of every variable.
    Better(Vec<f64>),
    /// No solution is below this.
    Bound(f64),
    /// The run is over; nothing comes after it.
    Ended(Ended),
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ended {
    /// What is proven.
    pub(crate) status: HighsModelStatus,
    /// No solution is below this; not a number where there is none.
    pub(crate) bound: f64,
    /// The value of every variable in the best solution, if there is one.
    pub(crate) solution: Option<Vec<f64>>,
}

/// Both ends of the line that reach into the run.
#[derive(Debug)]
pub(crate) struct Line {
    /// Where reports go.
    pub(crate) reports: Sender<Report>,
    /// Set from outside to stop the run.
    pub(crate) stop: Arc<AtomicBool>,
}

/// Called by HiGHS, on the thread that runs it.
extern "C" fn heard(
    kind: c_int,
    _: *const c_char,
    out: *const HighsCallbackDataOut,
    answer: *mut HighsCallbackDataIn,
    line: *mut c_void,
) {
    // SAFETY: `run` passes a `Line` that outlives the run; HiGHS passes its own structures or null, for the call alone.
    let (line, out, answer) = unsafe { (&*line.cast::<Line>(), out.as_ref(), answer.as_mut()) };
    if let Some(out) = out {
        if kind == kHighsCallbackMipImprovingSolution && !out.mip_solution.is_null() {
            // SAFETY: HiGHS states the length of the array it points to.
            let values = unsafe { slice::from_raw_parts(out.mip_solution, out.mip_solution_size.max(0) as usize) };
            // Nobody listens any more if the run was given up; then it stops below.
            let _ = line.reports.send(Report::Better(values.to_vec()));
        }
        if kind == kHighsCallbackMipLogging {
            let _ = line.reports.send(Report::Bound(out.mip_dual_bound));
        }
    }
    if let Some(answer) = answer {
        answer.user_interrupt = c_int::from(line.stop.load(Ordering::Relaxed));
    }
}

/// Runs a model to its end or until it is stopped. The model is used up, so the callback cannot outlive the line.
pub(crate) fn run(mut model: Model, line: &Line) -> Ended {
    let data = std::ptr::from_ref(line).cast_mut().cast::<c_void>();
    let kinds = [
        kHighsCallbackMipImprovingSolution,
        kHighsCallbackMipLogging,
        kHighsCallbackMipInterrupt,
        kHighsCallbackSimplexInterrupt,
    ];
    // SAFETY: the pointer is to the model that `model` owns. The line is borrowed until after the model is dropped.
    let refused = unsafe {
        let highs = model.as_mut_ptr();
        let set = Highs_setCallback(highs, Some(heard), data);
        kinds.iter().fold(set == STATUS_ERROR, |bad, &kind| bad | (Highs_startCallback(highs, kind) == STATUS_ERROR))
    };
    debug_assert!(!refused, "HiGHS knows these callbacks");
    let Ok(solved) = model.try_solve() else {
        return Ended { status: HighsModelStatus::SolveError, bound: f64::NAN, solution: None };
    };
    let solution = (solved.primal_solution_status() == HighsSolutionStatus::Feasible)
        .then(|| solved.get_solution().columns().to_vec());
    let bound = solved.double_info_value(c"mip_dual_bound").unwrap_or(f64::NAN);
    Ended { status: solved.status(), bound, solution }
}
