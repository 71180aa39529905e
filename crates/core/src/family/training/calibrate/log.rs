//! Measured runs from torchtitan's logs, and the parts of a line that other engines' logs share.
//!
//! torchtitan prints its device mesh, batch and sequence, and `tps: 1,234` per device. The result is the median of the
//! steps without the first ones, in which kernels are chosen and memory is allocated.

use super::{MeasuredRun, RunError};
use crate::{family::training::request::Request, units::GIB, workload::training::model::Model};

/// Number of skipped steps at the beginning, if there are enough.
const WARM_UP: usize = 3;

pub(super) fn is_torchtitan(text: &str) -> bool {
    text.contains("tps:") && text.contains("Training starts at step")
}

/// Word after `word`, up to the first blank.
pub fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let behind = &line[line.find(word)? + word.len()..];
    behind.split_whitespace().next()
}

/// Number at the beginning of a word, with commas between thousands.
pub fn number(word: &str) -> Option<f64> {
    let digits: String = word.chars().filter(|c| *c != ',').take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().ok().filter(|value: &f64| *value > 0.0)
}

/// Median of the steps after the warm-up.
pub fn median(mut steps: Vec<f64>) -> Option<f64> {
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
    fn the_median_leaves_out_the_warm_up() {
        assert_eq!(after("a tps: 5,762  x", "tps:").and_then(number), Some(5762.0));
        assert_eq!(median(vec![9.0, 1.0, 3.0]), Some(2.0));
        assert_eq!(median(vec![90.0, 80.0, 70.0, 1.0, 2.0, 3.0, 4.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn numbers_and_meshes_are_read() {
        assert_eq!(after("a tps: 5,762  x", "tps:").and_then(number), Some(5762.0));
        assert_eq!(median(vec![9.0, 1.0, 3.0]), Some(2.0));
        assert_eq!(median(vec![9.0]), Some(9.0));
        assert_eq!(median(vec![90.0, 80.0, 70.0, 1.0, 2.0, 3.0, 4.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
        let both = mesh("x Building 2-D device mesh with ['dp_shard', 'tp'], [4, 2]");
        assert_eq!(both, Some((vec!["dp_shard".into(), "tp".into()], vec![4, 2])));
    }
}
