//! Results and proofs of the integer program's own search on the published throughput inputs. The table also has the
//! best known values of the published programs and of HiGHS.
//!
//! `PLANTUI_REFERENCE=.. cargo bench --bench placement_ip [WORD..]`. Every word must occur in the input's name, with
//! some exceptions: `contiguous`, `separate-maxima`, `deadline=SECONDS` and `rounds=N` change the problem, and `loads`
//! shows every device.

use std::{path::PathBuf, time::Duration};

use plantui::{
    planner::{
        Search,
        placement::{
            PlacementLimits,
            ip::{Contiguity, IpSettings, Objective, ThroughputProblem, search},
        },
    },
    workload::formats::placement::read,
};

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with("--")).collect();
    let Some(root) = std::env::var_os("PLANTUI_REFERENCE").map(PathBuf::from) else {
        println!("PLANTUI_REFERENCE is not set: the published inputs are not measured");
        return;
    };
    let has = |word: &str| words.iter().any(|w| w == word);
    let number = |name: &str| words.iter().find_map(|w| w.strip_prefix(name)?.parse::<f64>().ok());
    let contiguity = if has("contiguous") { Contiguity::Contiguous } else { Contiguity::Free };
    let objective = if has("separate-maxima") { Objective::SeparateMaxima } else { Objective::MaxLoad };
    let deadline = Duration::from_secs_f64(number("deadline=").unwrap_or(60.0));
    let mut settings = IpSettings::default();
    settings.rounds = number("rounds=").map_or(settings.rounds, |rounds| rounds as usize);
    let asked =
        |word: &String| !matches!(word.as_str(), "contiguous" | "separate-maxima" | "loads") && !word.contains('=');
    println!(
        "{:38} {:>12} {:>12} {:>7} {:>7} {:>6} {:>12} {:>9}",
        "input", "value", "bound", "gap %", "s", "rounds", "best known", "to it %"
    );
    for row in include_str!("../tests/figures/placement-ip.tsv").lines().filter(|l| !l.starts_with('#')).skip(1) {
        let (input, known) = row.split_once('\t').expect("two columns");
        let name = input.trim_start_matches("dnn-partitioning/throughput-inputs/").trim_end_matches(".json");
        if !words.iter().filter(|word| asked(word)).all(|word| name.contains(word.as_str())) {
            continue;
        }
        let text = std::fs::read_to_string(root.join(input)).expect("a published input is there");
        let file = read(&text, input, input).expect("a published input loads");
        let limits = PlacementLimits {
            accelerators: file.accelerators.expect("published inputs have limits"),
            cpus: file.cpus.expect("published inputs have limits"),
            memory_bytes: file.memory_bytes.expect("published inputs have limits"),
        };
        let question = ThroughputProblem { dag: &file.dag, profile: &file.profile, limits, contiguity, objective };
        let handle = Search::new(Some(deadline), 0);
        let best = search(&question, &settings, &handle, &|_, _| {});
        let value = best.split.as_ref().map_or(f64::NAN, |(value, _)| *value);
        let known: f64 = known.parse().expect("a number");
        println!(
            "{name:38} {value:>12.6} {:>12.6} {:>7.3} {:>7.1} {:>6} {known:>12.6} {:>12.8}",
            best.lower_bound,
            100.0 * (value - best.lower_bound) / value,
            handle.elapsed().as_secs_f64(),
            best.rounds,
            100.0 * (value / known - 1.0),
        );
        if has("loads") {
            let split = &best.split.as_ref().unwrap().1;
            let score = split.score(&file.dag, &file.profile);
            for (d, l) in split.devices.iter().zip(&score.loads) {
                println!(
                    "   {:?} n {} total {:.6} compute {:.4} in {:.4} out {:.4} mem {:.3}",
                    d.kind,
                    d.nodes.len(),
                    l.total(),
                    l.forward + l.backward,
                    l.received,
                    l.sent,
                    l.size_bytes / limits.memory_bytes
                );
            }
        }
    }
}
