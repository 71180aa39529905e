//! Settings of mixtures of experts: the dispatcher of tokens, what overlaps its transfers, the balance of the routing,
//! and the software release.

use std::{fmt, sync::Arc};

use super::hardware::Generation;
use crate::text::printable;

/// Way in which tokens reach the ranks of their experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatcher {
    /// One copy of a token for each of its experts, in an all-to-all of NCCL.
    AllToAll,
    /// One copy of a token for each machine with one of its experts, which spreads it over NVLink (DeepEP).
    DeepEp,
    /// The same for domains of NVLink larger than a machine (HybridEP).
    HybridEp,
}

impl Dispatcher {
    /// Names of all dispatchers, as in settings.
    pub const IDS: [(&'static str, Dispatcher); 3] =
        [("alltoall", Dispatcher::AllToAll), ("deepep", Dispatcher::DeepEp), ("hybridep", Dispatcher::HybridEp)];

    /// Name in settings, and in Megatron-Core.
    pub fn id(self) -> &'static str {
        Dispatcher::IDS.iter().find(|(_, other)| *other == self).map_or("", |(id, _)| id)
    }

    /// True if a token goes once to each machine.
    pub fn is_hierarchical(self) -> bool {
        self != Dispatcher::AllToAll
    }

    /// Streaming multiprocessors that it takes from products while it runs: Megatron-Core's defaults, and the channels
    /// that NCCL uses on a machine.
    pub fn multiprocessors(self) -> f64 {
        match self {
            Dispatcher::AllToAll => 24.0,
            Dispatcher::DeepEp => 20.0,
            Dispatcher::HybridEp => 16.0,
        }
    }
}

/// Work that runs while tokens are on their way to experts and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpertOverlap {
    /// Nothing.
    None,
    /// The shared expert of the same layer (Megatron-Core's `--moe-shared-expert-overlap`).
    Shared,
    /// The other pass of another microbatch (Megatron-Core's `--overlap-moe-expert-parallel-comm`).
    Batch,
}

impl ExpertOverlap {
    /// Names of all kinds, as in settings.
    pub const IDS: [(&'static str, ExpertOverlap); 3] =
        [("none", ExpertOverlap::None), ("shared", ExpertOverlap::Shared), ("batch", ExpertOverlap::Batch)];
}

/// Load of the busiest expert-parallel rank, relative to the mean.
#[derive(Debug, Clone, PartialEq)]
pub enum Imbalance {
    /// Every rank has the mean, as in benchmarks that force it.
    Balanced,
    /// Every token chooses its experts at random: the expected maximum.
    Random,
    /// This factor, whatever the layout.
    Factor(f64),
    /// Every expert is padded to this many times its mean, and drops what exceeds it.
    Capacity(f64),
    /// Tokens of each expert that were counted, one list or one per layer. Ranks hold experts in order.
    Counts(Arc<Vec<Vec<f64>>>),
}

impl Imbalance {
    /// Allowed values in words.
    pub const VALUES: &'static str = "balanced, random, a factor from 1, capacity:FACTOR or counts:N+N+... (one number per expert, `/` between layers)";

    /// Reads a value of the setting; `None` if it is not allowed.
    pub fn parse(text: &str) -> Option<Self> {
        let factor = |text: &str, least: f64| text.parse().ok().filter(|f| (least..=1e3).contains(f));
        match text {
            "balanced" => return Some(Imbalance::Balanced),
            "random" => return Some(Imbalance::Random),
            _ => {}
        }
        if let Some(text) = text.strip_prefix("capacity:") {
            return factor(text, 0.1).map(Imbalance::Capacity);
        }
        if let Some(text) = text.strip_prefix("counts:") {
            let count = |text: &str| text.parse().ok().filter(|n| (0.0..=1e18).contains(n));
            let list = |text: &str| text.split('+').map(count).collect::<Option<Vec<f64>>>();
            return Imbalance::counted(text.split('/').map(list).collect::<Option<_>>()?);
        }
        factor(text, 1.0).map(Imbalance::Factor)
    }

    /// Counts of tokens per expert, a list per layer; `None` without tokens, or if the lists differ in length.
    pub fn counted(layers: Vec<Vec<f64>>) -> Option<Self> {
        let experts = layers.first()?.len();
        let whole = |list: &Vec<f64>| list.len() == experts && list.iter().sum::<f64>() > 0.0;
        layers.iter().all(whole).then(|| Imbalance::Counts(Arc::new(layers)))
    }

    /// Load of the busiest of `ranks` that share `experts`, relative to the mean, if each of `tokens` on every rank chooses
    /// `chosen`. Over counted layers it is the mean.
    pub fn factor(&self, ranks: f64, experts: f64, tokens: f64, chosen: f64) -> f64 {
        match self {
            Imbalance::Balanced => 1.0,
            // All tokens on one rank are the worst.
            Imbalance::Factor(factor) => factor.min(ranks.max(1.0)),
            Imbalance::Capacity(factor) => *factor,
            Imbalance::Random => random_maximum(ranks, experts, tokens, chosen),
            Imbalance::Counts(layers) => {
                let sum: f64 = layers.iter().map(|counts| busiest(counts, ranks as usize)).sum();
                sum / layers.len() as f64
            }
        }
    }
}

impl fmt::Display for Imbalance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Imbalance::Balanced => f.write_str("balanced"),
            Imbalance::Random => f.write_str("random"),
            Imbalance::Factor(factor) => write!(f, "{factor}"),
            Imbalance::Capacity(factor) => write!(f, "capacity:{factor}"),
            Imbalance::Counts(layers) => {
                let list = |counts: &Vec<f64>| counts.iter().map(f64::to_string).collect::<Vec<_>>().join("+");
                write!(f, "counts:{}", layers.iter().map(list).collect::<Vec<_>>().join("/"))
            }
        }
    }
}

/// Load of the busiest of `ranks` with equally many experts each, in order, relative to the mean.
fn busiest(counts: &[f64], ranks: usize) -> f64 {
    let each = (counts.len() / ranks.max(1)).max(1);
    let most = counts.chunks(each).map(|own| own.iter().sum::<f64>()).fold(0.0, f64::max);
    most * ranks.max(1) as f64 / counts.iter().sum::<f64>()
}

/// Expected maximum load of `ranks`, relative to the mean. A rank's load is nearly normal: a token chooses among experts
/// without repetition, so that it sends `chosen / ranks` on average with a hypergeometric variance.
fn random_maximum(ranks: f64, experts: f64, tokens: f64, chosen: f64) -> f64 {
    if ranks <= 1.0 || experts <= chosen {
        return 1.0;
    }
    let share = ranks.recip();
    let of_token = chosen * share * (1.0 - share) * (experts - chosen) / (experts - 1.0);
    let mean = tokens * chosen;
    let deviation = (tokens * ranks * of_token).sqrt();
    1.0 + deviation * normal_maximum(ranks) / mean
}

/// Expected maximum of 1, 2, 4, .., 1,024 standard normal variables.
const NORMAL_MAXIMA: [f64; 11] = [0.0, 0.5642, 1.0294, 1.4236, 1.7660, 2.0697, 2.3437, 2.5946, 2.8266, 3.0443, 3.2482];

/// Expected maximum of `n` standard normal variables, linear in the logarithm of `n` between powers of two.
fn normal_maximum(n: f64) -> f64 {
    let power = n.log2().clamp(0.0, (NORMAL_MAXIMA.len() - 1) as f64);
    let below = (power as usize).min(NORMAL_MAXIMA.len() - 2);
    NORMAL_MAXIMA[below] + (power - below as f64) * (NORMAL_MAXIMA[below + 1] - NORMAL_MAXIMA[below])
}

/// First release whose experts are much faster on Blackwell.
const FUSED: Release = Release([26, 6, 0]);

/// Release of Megatron-Bridge: year, month and patch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Release([u16; 3]);

impl Release {
    /// Reads `26.02` or `26.02.01`; `None` if it is no release.
    pub fn parse(text: &str) -> Option<Self> {
        let numbers: Vec<u16> = text.split('.').map(|part| part.parse().ok()).collect::<Option<_>>()?;
        let release = match numbers[..] {
            [year, month] => [year, month, 0],
            [year, month, patch] => [year, month, patch],
            _ => return None,
        };
        ((20..100).contains(&release[0]) && (1..=12).contains(&release[1]) && release[2] < 100).then_some(Self(release))
    }

    /// True for 25.09 to 26.08: published runs have these releases.
    pub fn is_published(self) -> bool {
        (Release([25, 9, 0])..Release([26, 9, 0])).contains(&self)
    }

    /// True if the recipes of the release launch kernels from CUDA graphs on a generation.
    pub fn has_graphs(self, generation: Generation) -> bool {
        generation == Generation::Blackwell && self >= FUSED
    }

    /// Factor on the time of mixtures of experts that the release has, relative to all: fitted on published runs of
    /// Megatron-Bridge from 25.09 to 26.08. Only one run on Hopper is later than 26.04, and was not faster.
    pub fn factor(self, generation: Generation) -> f64 {
        match () {
            () if self >= FUSED && generation == Generation::Blackwell => 0.78,
            () if self > Release([26, 2, 0]) => 0.98,
            () => 1.04,
        }
    }

    /// Reads a value of the setting, in which `none` is no release.
    pub(super) fn parse_setting(text: &str) -> Option<Option<Self>> {
        if text == "none" { Some(None) } else { Release::parse(text).map(Some) }
    }
}

impl fmt::Display for Release {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [year, month, patch] = self.0;
        write!(f, "{year:02}.{month:02}")?;
        if patch > 0 { write!(f, ".{patch:02}") } else { Ok(()) }
    }
}

/// Reads counted tokens per expert from JSON: a list of numbers, or one list per layer.
///
/// # Errors
/// Sentence, if the text is neither.
pub fn read_counts(text: &str, source: &str) -> Result<Imbalance, String> {
    let wrong = || {
        format!(
            "{}: holds no counts; it must be a JSON list with the tokens of each expert, or one such list per layer, of \
            the same length",
            printable(source)
        )
    };
    if let Err(error) = serde_json::from_str::<serde_json::Value>(text) {
        return Err(format!("{} is no JSON: {error}", printable(source)));
    }
    let layers = serde_json::from_str::<Vec<Vec<f64>>>(text)
        .or_else(|_| serde_json::from_str::<Vec<f64>>(text).map(|list| vec![list]))
        .map_err(|_| wrong())?;
    let counts = Imbalance::counted(layers).ok_or_else(wrong)?;
    // Negative numbers and the like are no counts.
    Imbalance::parse(&counts.to_string()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers in [0, 1) of a congruential generator.
    fn uniform(seed: &mut u64) -> f64 {
        *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*seed >> 11) as f64 / (1u64 << 53) as f64
    }

    #[test]
    fn the_expected_maximum_is_that_of_random_routing() {
        let mut seed = 7;
        for (ranks, experts, tokens, chosen) in [(8, 64, 64, 6), (16, 128, 128, 8), (4, 8, 100, 2)] {
            let rounds = 10_000 / (tokens * ranks / 64);
            let mut sum = 0.0;
            for _ in 0..rounds {
                let mut load = vec![0u32; ranks];
                for _ in 0..tokens * ranks {
                    let mut taken: Vec<usize> = vec![];
                    while taken.len() < chosen {
                        let expert = (uniform(&mut seed) * experts as f64) as usize;
                        if !taken.contains(&expert) {
                            taken.push(expert);
                            load[expert / (experts / ranks)] += 1;
                        }
                    }
                }
                sum += f64::from(*load.iter().max().unwrap()) / (tokens * chosen) as f64;
            }
            let (drawn, own) = (
                sum / rounds as f64,
                Imbalance::Random.factor(ranks as f64, experts as f64, tokens as f64, chosen as f64),
            );
            assert!((drawn / own - 1.0).abs() < 0.01, "{drawn} {own}");
        }
    }

    #[test]
    fn the_maxima_of_normal_variables_are_those_of_the_integral() {
        for (power, known) in NORMAL_MAXIMA.iter().enumerate() {
            // x d(Φ(x)ⁿ) in small steps.
            let (mut below, mut distribution, mut sum) = (0.0, 0.0, 0.0);
            for step in -8000..8000 {
                let x = (f64::from(step) + 0.5) * 1e-3;
                distribution += 1e-3 * (-x * x / 2.0).exp() / std::f64::consts::TAU.sqrt();
                let all = f64::min(distribution, 1.0).powi(1 << power);
                sum += x * (all - below);
                below = all;
            }
            assert!((sum - known).abs() < 1e-3, "{power}: {sum} {known}");
            assert_eq!(normal_maximum(f64::from(1 << power)), *known);
        }
    }

    #[test]
    fn values_are_read_as_they_are_shown() {
        for text in ["balanced", "random", "1.5", "capacity:1.25", "counts:1+2+3+4/4+4+4+4"] {
            assert_eq!(Imbalance::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "0.5", "capacity:0", "counts:", "counts:0+0", "counts:1+2/3", "counts:-1+2", "often"] {
            assert_eq!(Imbalance::parse(text), None, "{text}");
        }
        for text in ["25.09", "26.02.01", "26.04"] {
            assert_eq!(Release::parse(text).unwrap().to_string(), text);
        }
        for text in ["", "26", "26.13", "26.2.1.1", "latest"] {
            assert_eq!(Release::parse(text), None, "{text}");
        }
        let published = |text: &str| Release::parse(text).unwrap().is_published();
        assert_eq!(["25.07", "25.09", "26.08.01", "26.10"].map(published), [false, true, true, false]);
        assert!(Release::parse("26.02") < Release::parse("26.02.01"));
        assert_eq!(Release::parse("26.2"), Release::parse("26.02"));
    }

    #[test]
    fn counts_are_those_of_the_ranks() {
        let counts = read_counts("[10, 30, 20, 20]", "f").unwrap();
        assert_eq!([1.0, 2.0, 4.0].map(|ranks| counts.factor(ranks, 4.0, 1.0, 1.0)), [1.0, 1.0, 1.5]);
        let layers = read_counts("[[1, 1], [3, 1]]", "f").unwrap();
        assert_eq!(layers.factor(2.0, 2.0, 1.0, 1.0), 1.25);
        for text in ["{}", "[]", "[[1], [1, 2]]", "[-1, 2]", "[0]"] {
            assert!(read_counts(text, "f").unwrap_err().starts_with("f: holds no counts"), "{text}");
        }
        assert_eq!(Imbalance::Factor(2.0).factor(1.0, 8.0, 1.0, 1.0), 1.0);
    }
}
