//! Measured iterations of a Megatron-LM log.

use crate::job::Measured;

/// Number of skipped steps at the beginning, if there are enough: kernels are chosen and memory is allocated.
const WARM_UP: usize = 3;

/// Median iteration time and peak memory of a log; `None` if it has no iterations.
pub(super) fn measured(text: &str) -> Option<Measured> {
    let steps: Vec<f64> =
        text.lines().filter_map(|line| number(after(line, "elapsed time per iteration (ms):")?)).collect();
    let iterations = steps.len();
    let held = text.lines().filter(|line| line.contains("memory (MB)"));
    let peak = held.filter_map(|line| number(after(line, "max allocated:")?)).fold(0.0, f64::max);
    Some(Measured {
        iteration_s: median(steps)? / 1e3,
        // Megabytes as torch counts them, of the fullest rank in the log.
        memory_bytes: (peak > 0.0).then_some(peak * 1024.0 * 1024.0),
        iterations,
    })
}

/// Word after `word`, up to the first blank.
pub(crate) fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    line[line.find(word)? + word.len()..].split_whitespace().next()
}

/// Number at the beginning of a word, with commas between thousands.
pub(crate) fn number(word: &str) -> Option<f64> {
    let digits: String = word.chars().filter(|c| *c != ',').take_while(|c| c.is_ascii_digit() || *c == '.').collect();
    digits.parse().ok().filter(|value: &f64| *value > 0.0)
}

/// Median of the steps after the warm-up.
pub(crate) fn median(mut steps: Vec<f64>) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_leaves_out_the_warm_up() {
        assert_eq!(after("a tps: 5,762  x", "tps:").and_then(number), Some(5762.0));
        assert_eq!(median(vec![9.0, 1.0, 3.0]), Some(2.0));
        assert_eq!(median(vec![9.0]), Some(9.0));
        assert_eq!(median(vec![90.0, 80.0, 70.0, 1.0, 2.0, 3.0, 4.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }
}
