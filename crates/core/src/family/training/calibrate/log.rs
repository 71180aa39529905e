//! Measured runs from the logs of engines.
//!
//! Megatron-LM prints its arguments, one per line (a name, dots and a value), and
//! `elapsed time per iteration (ms): 123.4`. torchtitan prints its device mesh, batch and sequence, and `tps: 1,234`
//! per device. The result is the median of the steps without the first ones, in which kernels are chosen and memory is
//! allocated.

use super::{MeasuredRun, RunError};
use crate::{family::training::request::Request, units::GIB, workload::training::model::Model};

/// Number of skipped steps at the beginning, if there are enough.
const WARM_UP: usize = 3;

/// Text without colour escapes.
pub(super) fn without_escapes(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text.chars();
    while let Some(c) = rest.next() {
        if c != '\u{1b}' {
            plain.push(c);
        } else if rest.next() == Some('[') {
            // An escape sequence ends with its first letter.
            rest.by_ref().find(char::is_ascii_alphabetic);
        }
    }
    plain
}

pub(super) fn is_megatron(text: &str) -> bool {
    text.contains("elapsed time per iteration (ms)")
}

pub(super) fn is_torchtitan(text: &str) -> bool {
    text.contains("tps:") && text.contains("Training starts at step")
}

/// Word after `word`, up to the first blank.
fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let behind = &line[line.find(word)? + word.len()..];
    behind.split_whitespace().next()
}

/// Number at the beginning of a word, with commas between thousands.
fn number(word: &str) -> Option<f64> {
    let digits: String = word.chars().filter(|c| *c != ',').take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().ok().filter(|value: &f64| *value > 0.0)
}

/// Median of the steps after the warm-up.
fn median(mut steps: Vec<f64>) -> Option<f64> {
    if steps.len() > 2 * WARM_UP {
        steps.drain(..WARM_UP);
    } else if steps.len() > 1 {
        steps.remove(0);
    }
    steps.sort_by(f64::total_cmp);
    let middle = steps.len() / 2;
    if steps.len() % 2 == 1 {
        steps.get(middle).copied()
    } else {
        Some((steps.get(middle)? + steps.get(middle.checked_sub(1)?)?) / 2.0)
    }
}

/// Argument in Megatron-LM's list.
fn argument<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (before, behind) = line.split_once(" ..")?;
        let value = behind.trim_start_matches('.').trim();
        (before.split_whitespace().next_back() == Some(name) && !value.is_empty() && value != "None").then_some(value)
    })
}

/// Run of a Megatron-LM log.
pub(super) fn megatron(text: &str, source: &str, model: &Model, defaults: &Request) -> Result<MeasuredRun, RunError> {
    for (name, expected) in [("hidden_size", model.hidden), ("num_layers", model.layers.len() as u64)] {
        let found = argument(text, name).and_then(|value| value.parse::<u64>().ok());
        if let Some(found) = found.filter(|found| *found != expected) {
            let problem = format!("{name} is {found}, but {} has {expected}", model.name);
            return Err(RunError::new(source, problem, "give the model of the run, or its config.json"));
        }
    }
    let mut request = Request::default();
    let mut set = |name: &str, value: &str| {
        request.set(name, value).map_err(|problem| RunError::new(source, problem, "give it with its flag"))
    };
    for (argument_name, name) in [
        ("world_size", "devices"),
        ("tensor_model_parallel_size", "tp"),
        ("pipeline_model_parallel_size", "pp"),
        ("virtual_pipeline_model_parallel_size", "vp"),
        ("context_parallel_size", "cp"),
        ("expert_model_parallel_size", "ep"),
        ("micro_batch_size", "mbs"),
        ("global_batch_size", "global_batch"),
        ("seq_length", "sequence_length"),
    ] {
        if let Some(value) = argument(text, argument_name) {
            set(name, value)?;
        }
    }
    for (argument_name, name) in [
        ("sequence_parallel", "sequence_parallel"),
        ("use_distributed_optimizer", "distributed_optimizer"),
        ("overlap_grad_reduce", "dp_overlap"),
        ("tp_comm_overlap", "tp_overlap"),
        ("cross_entropy_loss_fusion", "fused_cross_entropy"),
    ] {
        if let Some(value) = argument(text, argument_name).filter(|value| ["True", "False"].contains(value)) {
            set(name, &value.to_ascii_lowercase())?;
        }
    }
    let is_true = |name: &str| argument(text, name) == Some("True");
    let fp8 = argument(text, "fp8").is_some_and(|format| format != "False");
    let scaled = argument(text, "fp8_recipe") == Some("mxfp8");
    match (fp8, scaled) {
        (true, true) => set("precision", "mxfp8")?,
        (true, false) => set("precision", "fp8")?,
        _ if is_true("bf16") => set("precision", "bf16")?,
        _ if is_true("fp16") => set("precision", "fp16")?,
        _ => {}
    }
    match (argument(text, "recompute_granularity"), argument(text, "recompute_num_layers")) {
        (Some("full"), Some(layers)) if argument(text, "recompute_method") == Some("block") => {
            set("recompute", &format!("full:{layers}"))?;
        }
        (Some(what @ ("full" | "selective")), _) => set("recompute", what)?,
        _ => {}
    }
    if argument(text, "transformer_impl") == Some("local") && argument(text, "use_flash_attn") == Some("False") {
        set("attention", "unfused")?;
    }
    let steps = text.lines().filter_map(|line| number(after(line, "elapsed time per iteration (ms):")?)).collect();
    let Some(milliseconds) = median(steps) else {
        return Err(RunError::new(source, "has no elapsed time per iteration", "give a log with some iterations"));
    };
    // Megabytes as torch counts them, of the fullest rank in the log.
    let held = text.lines().filter(|line| line.contains("memory (MB)"));
    let peak = held.filter_map(|line| number(after(line, "max allocated:")?)).fold(0.0, f64::max);
    let resolved = request.or(defaults).resolve(model).map_err(|refusal| RunError::of(source, refusal))?;
    Ok(MeasuredRun {
        place: source.into(),
        resolved,
        measured_s: milliseconds / 1e3,
        measured_bytes: (peak > 0.0).then_some(peak * 1024.0 * 1024.0),
    })
}

/// Run of a torchtitan log.
pub(super) fn torchtitan(text: &str, source: &str, model: &Model, defaults: &Request) -> Result<MeasuredRun, RunError> {
    let mut request = Request::default();
    let mut set = |name: &str, value: &str| {
        request.set(name, value).map_err(|problem| RunError::new(source, problem, "give it with its flag"))
    };
    set("stack", "torchtitan")?;
    let mut devices = None;
    if let Some((names, sizes)) = text.lines().find_map(mesh) {
        devices = Some(sizes.iter().product::<u64>());
        for (name, size) in names.iter().zip(&sizes) {
            let degree = match name.as_str() {
                "tp" => "tp",
                "pp" => "pp",
                "cp" => "cp",
                "ep" => "ep",
                _ => continue,
            };
            set(degree, &size.to_string())?;
        }
        set("devices", &sizes.iter().product::<u64>().to_string())?;
    }
    let start = text.lines().find(|line| line.contains("Training starts at step")).unwrap_or_default();
    for (word, name) in
        [("local batch size ", "mbs"), ("global batch size ", "global_batch"), ("sequence length ", "sequence_length")]
    {
        if let Some(value) = after(start, word).and_then(number) {
            set(name, &value.to_string())?;
        }
    }
    if text.contains("Float8") {
        set("precision", "fp8")?;
    }
    if text.contains("Applied full activation checkpointing") {
        set("recompute", "full")?;
    }
    set("fused_elementwise", if text.contains("torch.compile") { "true" } else { "false" })?;
    let rates = text.lines().filter_map(|line| number(after(line, "tps:")?)).collect();
    let peak = text.lines().filter_map(|line| number(after(line, "memory:")?)).fold(0.0, f64::max);
    let resolved = request.or(defaults).resolve(model).map_err(|refusal| RunError::of(source, refusal))?;
    let devices = devices.unwrap_or(resolved.devices);
    let Some(rate) = median(rates) else {
        return Err(RunError::new(source, "has no tokens per second (tps)", "give a log with some steps"));
    };
    let tokens = resolved.run.global_batch as f64 * resolved.run.sequence as f64;
    Ok(MeasuredRun {
        place: source.into(),
        resolved,
        measured_s: tokens / (rate * devices as f64),
        measured_bytes: (peak > 0.0).then_some(peak * GIB),
    })
}

/// Names and sizes in `Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]`.
fn mesh(line: &str) -> Option<(Vec<String>, Vec<u64>)> {
    let behind = &line[line.find("device mesh with ")?..];
    let lists: Vec<&str> = behind.split(['[', '(']).skip(1).filter_map(|part| part.split([']', ')']).next()).collect();
    let [names, sizes] = lists[..] else { return None };
    let names: Vec<String> = names.split(',').map(|name| name.trim().trim_matches(['\'', '"']).to_string()).collect();
    let sizes: Vec<u64> = sizes.split(',').filter_map(|size| size.trim().parse().ok()).collect();
    let names: Vec<String> = names.into_iter().filter(|name| !name.is_empty()).collect();
    (names.len() == sizes.len()).then_some((names, sizes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_are_taken_out_and_numbers_read() {
        assert_eq!(without_escapes("\u{1b}[31mtps: 5,762\u{1b}[0m  x"), "tps: 5,762  x");
        assert_eq!(after("a tps: 5,762  x", "tps:").and_then(number), Some(5762.0));
        assert_eq!(median(vec![9.0, 1.0, 3.0]), Some(2.0));
        assert_eq!(median(vec![9.0]), Some(9.0));
        assert_eq!(median(vec![90.0, 80.0, 70.0, 1.0, 2.0, 3.0, 4.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
        let both = mesh("x Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]");
        assert_eq!(both, Some((vec!["dp_shard".into(), "tp".into()], vec![4, 2])));
    }

    #[test]
    fn arguments_are_found_behind_dots_and_prefixes() {
        let text =
            "[default0]:  micro_batch_size ....................... 2\n  fp8 .... None\n  tp_comm_overlap .. True";
        assert_eq!(argument(text, "micro_batch_size"), Some("2"));
        assert_eq!(argument(text, "fp8"), None);
        assert_eq!(argument(text, "tp_comm_overlap"), Some("True"));
    }
}
