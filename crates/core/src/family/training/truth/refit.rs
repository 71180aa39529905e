//! Constants fitted again on the published runs, and the errors of runs whose source was left out of the fit.
//!
//! Each row of the constants' table is fitted on its own dense runs, with its shipped constants as the prior. Then each
//! source is left out in turn and predicted from the others. A class that is nearly all of one source leaves out models in
//! place of sources. `O(runs · factors · rounds)` predictions for each group.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;

use super::rows::PublishedRun;
use crate::{
    family::training::{
        check::Refusal,
        fit::{Factor, FittedFactors, Observation, TimedRun},
        truth::{RunClass, Trust},
    },
    workload::training::{
        constants::{Constants, ConstantsRow, ROWS},
        run::Stack,
    },
};

/// Factors of a fit, with priors of 15 %: constants that the runs do not identify stay. Where a row has one constant for several lengths, precisions or links, so has the factor.
pub const FACTORS: [Factor; 10] = [
    Factor { name: "products in 16 bits", constants: &["gemm_16"], prior: 0.15 },
    Factor { name: "products in 8 bits", constants: &["gemm_8"], prior: 0.15 },
    Factor { name: "products in 4 bits", constants: &["gemm_4"], prior: 0.15 },
    Factor { name: "attention", constants: &["attention", "attention_long"], prior: 0.15 },
    Factor { name: "elementwise kernels", constants: &["memory"], prior: 0.15 },
    Factor { name: "links", constants: &["links"], prior: 0.15 },
    Factor { name: "exposed gradients", constants: &["data_exposed"], prior: 0.15 },
    Factor { name: "exposed gathers of FSDP", constants: &["fsdp_exposed", "fsdp_exposed_across"], prior: 0.15 },
    Factor { name: "latency of a step", constants: &["hop_s"], prior: 0.15 },
    Factor { name: "launch of a kernel", constants: &["launch_s"], prior: 0.15 },
];

/// Factors of mixtures of experts, which are the same for all generations.
pub const EXPERT_FACTORS: [Factor; 4] = [
    Factor { name: "grouped products", constants: &["experts"], prior: 0.15 },
    Factor { name: "exponent of their width", constants: &["experts_width"], prior: 0.5 },
    Factor { name: "exposed dispatch", constants: &["expert_exposed"], prior: 0.15 },
    Factor { name: "launch by the host", constants: &["host_s"], prior: 0.15 },
];

/// Published run with its errors under three sets of constants, relative, above 0 if predicted too slow.
#[derive(Debug, Clone)]
pub struct RefitRun<'a> {
    /// Published run.
    pub published: &'a PublishedRun,
    /// Class of the run with the shipped constants.
    pub class: Option<&'static RunClass>,
    /// Error with the shipped constants.
    pub shipped: f64,
    /// Error with constants fitted on all runs of the row.
    pub fitted: f64,
    /// Error with constants fitted on the runs of other sources or models.
    pub left_out: f64,
}

/// Row of the constants' table with its fit; the mixtures of experts of all rows have one together.
#[derive(Debug, Clone)]
pub struct RowFit<'a> {
    /// Row, or one of the rows.
    pub row: &'static ConstantsRow,
    /// Runs in words.
    pub evidence: &'static str,
    /// Constants fitted on all runs.
    pub constants: Constants,
    /// Factors of the fit.
    pub of: &'static [Factor],
    /// Fitted factors, in the order of `of`.
    pub factors: FittedFactors,
    /// Runs.
    pub runs: Vec<RefitRun<'a>>,
}

/// Fits every row of the table that has at least five dense runs, and the mixtures of experts of NVIDIA's stacks together.
/// The fit of these leaves out runs with a named release, and predicts them.
///
/// # Errors
/// First [`Refusal`] with the run's name.
pub fn all(runs: &[PublishedRun]) -> Result<Vec<RowFit<'_>>, (String, Refusal)> {
    let row_of = |run: &PublishedRun| Constants::row(run.accelerator.generation, run.run.stack);
    let dense = |run: &&PublishedRun| !run.model.has_experts() && run.run.settings.adapter.is_none();
    let own = |row| runs.iter().filter(dense).filter(|run| row_of(run) == row).collect::<Vec<_>>();
    let rows: Vec<_> = ROWS.iter().map(|row| (row, own(row))).filter(|(_, own)| own.len() >= 5).collect();
    let of_nvidia = |run: &&PublishedRun| matches!(run.run.stack, Stack::Megatron2025 | Stack::Nemo24);
    let experts: Vec<&PublishedRun> = runs.iter().filter(|run| !dense(run)).filter(of_nvidia).collect();
    let experts: Vec<&PublishedRun> = experts.into_iter().filter(|run| run.model.has_experts()).collect();
    let mut fits: Vec<_> = rows.into_iter().map(|(row, own)| (row, row.evidence, &FACTORS[..], own)).collect();
    if experts.len() >= 5 {
        let row = row_of(experts[0]);
        fits.push((row, "mixtures of experts of NVIDIA's Megatron-Bridge and NeMo", &EXPERT_FACTORS[..], experts));
    }
    fits.into_par_iter().map(|(row, evidence, factors, own)| fit_of(row, evidence, factors, &own)).collect()
}

fn fit_of<'a>(
    row: &'static ConstantsRow,
    evidence: &'static str,
    of: &'static [Factor],
    runs: &[&'a PublishedRun],
) -> Result<RowFit<'a>, (String, Refusal)> {
    let time = |run: &&'a PublishedRun| {
        let constants = Constants::shipped(run.accelerator.generation, run.run.stack);
        TimedRun::new(&run.model, &run.run, &run.accelerator, run.run.layout.devices(), constants)
            .map_err(|refusal| (run.name.clone(), refusal))
    };
    let timed: Vec<TimedRun<'_>> = runs.iter().map(time).collect::<Result<_, _>>()?;
    let observed: Vec<Observation<'_>> =
        timed.iter().zip(runs).map(|(timed, run)| Observation { timed, log: run.measured_s.ln() }).collect();
    let fit = |observed: &[Observation<'_>]| FittedFactors::of(observed, of, &vec![true; of.len()]);
    let unnamed = |run: &Observation<'_>| run.timed.run.settings.release.is_none();
    let factors = fit(&observed.iter().copied().filter(unnamed).collect::<Vec<_>>());
    let classes: Vec<Option<&'static RunClass>> =
        timed.iter().map(|run| Trust::of(run.model, run.run, run.accelerator, &run.constants).class()).collect();
    let groups = groups(runs, &classes);
    let without: BTreeMap<&String, FittedFactors> = groups
        .iter()
        .collect::<BTreeSet<_>>()
        .into_par_iter()
        .map(|group| {
            let others = observed.iter().zip(&groups).filter(|(_, own)| *own != group).map(|(run, _)| *run);
            (group, fit(&others.filter(unnamed).collect::<Vec<_>>()))
        })
        .collect();
    let error = |run: &TimedRun<'_>, logs: &[f64], measured: f64| run.log_time(of, logs).exp() / measured - 1.0;
    let runs = runs
        .iter()
        .enumerate()
        .map(|(index, run)| RefitRun {
            published: run,
            class: classes[index],
            shipped: error(&timed[index], &vec![0.0; of.len()], run.measured_s),
            fitted: error(&timed[index], &factors.logs, run.measured_s),
            left_out: error(&timed[index], &without[&groups[index]].logs, run.measured_s),
        })
        .collect();
    let constants = Factor::apply(of, &factors.logs, &row.constants);
    Ok(RowFit { row, evidence, constants, of, factors, runs })
}

/// Group of each run that is left out with it: its publication, or its model if one publication has more than three
/// quarters of the runs of its class.
fn groups(runs: &[&PublishedRun], classes: &[Option<&'static RunClass>]) -> Vec<String> {
    let publication = |run: &PublishedRun| run.source.split([',', ' ']).next().unwrap_or_default().to_string();
    let class_of = |class: &Option<&'static RunClass>| class.map(|class| class.class);
    let mut sources: BTreeMap<Option<&str>, BTreeMap<String, usize>> = BTreeMap::new();
    for (run, class) in runs.iter().zip(classes) {
        *sources.entry(class_of(class)).or_default().entry(publication(run)).or_default() += 1;
    }
    let of = |(run, class): (&&PublishedRun, &Option<&'static RunClass>)| {
        let publication = publication(run);
        let counts = &sources[&class_of(class)];
        let (most, all) = (counts.values().max().copied().unwrap_or(0), counts.values().sum::<usize>());
        if 4 * most > 3 * all { format!("{publication}, {} parameters", run.model.parameters()) } else { publication }
    };
    runs.iter().zip(classes).map(of).collect()
}
