//! Fits the constants of `estimate` again on published runs, and prints the errors of runs left out of the fit.
//!
//! A fitted value is shipped only if runs that were left out are predicted better with it than with the shipped value.
//!
//! ```text
//! PLANTUI_REFERENCE=path/to/published/inputs cargo run --release --example fit_constants
//! ```

use std::{collections::BTreeMap, error::Error, path::PathBuf};

use plantui::family::training::truth::{
    refit::{self, RefitRun},
    rows, summary,
};

fn main() -> Result<(), Box<dyn Error>> {
    let root =
        std::env::var_os("PLANTUI_REFERENCE").ok_or("PLANTUI_REFERENCE names the folder of the published inputs")?;
    let (runs, _) = rows::read(&PathBuf::from(root).join("truth"))?;
    let fits = refit::all(&runs).map_err(|(name, refusal)| format!("{name}: {refusal}"))?;
    for fit in &fits {
        println!("## {}\n", fit.evidence);
        println!("| constant | shipped | fitted | within |\n|---|---|---|---|");
        for (index, factor) in fit.of.iter().enumerate() {
            let (mut own, mut fitted) = (fit.row.constants, fit.constants);
            for name in factor.constants {
                let [own, fitted] = [&mut own, &mut fitted].map(|set| set.by_name(name).map_or(f64::NAN, |v| *v));
                let within = 100.0 * fit.factors.covariance[index][index].sqrt();
                let within =
                    if fit.factors.identified[index] { format!("{within:.0} %") } else { "not identified".into() };
                println!("| {name} | {own:.3e} | {fitted:.3e} | {within} |");
            }
        }
        println!();
        println!("| class | runs | shipped: mean | 9 of 10 | fitted: mean | 9 of 10 | left out: mean | 9 of 10 |");
        println!("|---|---|---|---|---|---|---|---|");
        let mut classes: BTreeMap<&str, Vec<&RefitRun<'_>>> = BTreeMap::new();
        for run in &fit.runs {
            classes.entry(run.class.map_or("in no class", |class| class.class)).or_default().push(run);
            classes.entry(run.published.source).or_default().push(run);
        }
        for (class, runs) in classes {
            let errors = |of: fn(&RefitRun<'_>) -> f64| {
                let errors = summary::errors(runs.iter().map(|run| of(run)));
                errors.map_or(String::new(), |e| format!("{:.1} % | {:.1} %", 100.0 * e.mean, 100.0 * e.band))
            };
            let (shipped, fitted, left) = (errors(|r| r.shipped), errors(|r| r.fitted), errors(|r| r.left_out));
            println!("| {class} | {} | {shipped} | {fitted} | {left} |", runs.len());
        }
        println!();
        releases(&fit.runs);
    }
    Ok(())
}

/// Prints the factor of each release on the time of mixtures of experts, fitted after all else, with its spread.
fn releases(runs: &[RefitRun<'_>]) {
    let mut logs: BTreeMap<(String, String), Vec<f64>> = BTreeMap::new();
    for run in runs {
        let Some(release) = run.published.run.settings.release else { continue };
        let generation = run.published.accelerator.generation;
        let log = -(1.0 + run.fitted).ln() + release.factor(generation).ln();
        logs.entry((format!("{generation:?}"), release.to_string())).or_default().push(log);
    }
    for ((generation, release), mut logs) in logs {
        logs.sort_by(f64::total_cmp);
        let factor = logs[logs.len() / 2].exp();
        let spread = logs.iter().map(|log| (log - factor.ln()).abs()).sum::<f64>() / logs.len() as f64;
        println!(
            "{generation}, release {release}: {factor:.2}, mean deviation {:.0} % ({} runs)",
            100.0 * spread,
            logs.len()
        );
    }
}
