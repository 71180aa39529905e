//! Bounds for a model that was not read from a `config.json`, checked before anything is computed from it.

use super::model::{Attention, FeedForward, LayerKind, Model, Span};

/// Maximum of any size.
const MOST_SIZE: u64 = 1 << 21;
/// Maximum number of layers.
const MOST_LAYERS: usize = 4096;
/// Maximum number of kinds of layers.
const MOST_KINDS: usize = 64;
/// Maximum number of elements beside the matrices, and of tokens in a sequence.
const MOST_ELEMENTS: u64 = 1 << 40;
/// Maximum number of parameters.
const MOST_PARAMETERS: f64 = 1e15;

/// Position of a problem, and the problem.
type FieldProblem = (String, String);

impl Model {
    /// First value out of bounds: its path below the model, and the problem. `O(layers)`.
    pub fn problem(&self) -> Option<FieldProblem> {
        let ends = &self.ends;
        sized("hidden", self.hidden, 1)
            .or_else(|| sized("ends.vocabulary", ends.vocabulary, 0))
            .or_else(|| sized("ends.token_width", ends.token_width, 0))
            .or_else(|| (self.kinds.len() > MOST_KINDS).then(|| wrong("kinds", format!("are more than {MOST_KINDS}"))))
            .or_else(|| {
                let count = self.layers.len();
                let told = format!("has {count} layers, must have 1 to {MOST_LAYERS}");
                (!(1..=MOST_LAYERS).contains(&count)).then(|| wrong("layers", told))
            })
            .or_else(|| {
                let missing = self.layers.iter().position(|&kind| usize::from(kind) >= self.kinds.len())?;
                Some(wrong(
                    &format!("layers[{missing}]"),
                    format!("is a kind that is not among the {}", self.kinds.len()),
                ))
            })
            .or_else(|| (self.prediction_layers > 64).then(|| wrong("prediction_layers", "is more than 64".into())))
            .or_else(|| {
                let counts = [
                    ("ends.positions", ends.positions),
                    ("ends.before", ends.before),
                    ("ends.after", ends.after),
                    ("longest_sequence", self.longest_sequence),
                ];
                let (place, _) = counts.into_iter().find(|(_, count)| *count > MOST_ELEMENTS)?;
                Some(wrong(place, format!("is more than {MOST_ELEMENTS}")))
            })
            .or_else(|| {
                (self.longest_sequence == 0).then(|| wrong("longest_sequence", "is 0, must be at least 1".into()))
            })
            .or_else(|| self.kinds.iter().enumerate().find_map(|(i, kind)| kind_problem(kind, &format!("kinds[{i}]"))))
            .or_else(|| {
                let count = |&kind: &u16| self.kinds[usize::from(kind)].parameters(self.hidden) as f64;
                let sum: f64 = self.layers.iter().map(count).sum();
                (sum > MOST_PARAMETERS).then(|| wrong("layers", format!("have {sum:.1e} parameters, more than 1e15")))
            })
    }
}

fn wrong(place: &str, problem: String) -> FieldProblem {
    (place.to_string(), problem)
}

fn sized(place: &str, size: u64, least: u64) -> Option<FieldProblem> {
    (!(least..=MOST_SIZE).contains(&size)).then(|| wrong(place, format!("is {size}, must be {least} to {MOST_SIZE}")))
}

fn kind_problem(kind: &LayerKind, place: &str) -> Option<FieldProblem> {
    let sizes = |list: &[(&str, u64, u64)]| {
        list.iter().find_map(|&(name, size, least)| sized(&format!("{place}.{name}"), size, least))
    };
    let attention = match kind.attention {
        Attention::Grouped { heads, key_value_heads, head_size } => {
            sizes(&[("heads", heads, 0), ("key_value_heads", key_value_heads, 0), ("head_size", head_size, 1)]).or_else(
                || {
                    let told = format!("is {key_value_heads}, which does not divide the {heads} heads");
                    (heads % key_value_heads.max(1) != 0).then(|| wrong(&format!("{place}.key_value_heads"), told))
                },
            )
        }
        Attention::Latent { heads, query_rank, key_value_rank, rope, nope, value, head_size } => sizes(&[
            ("heads", heads, 1),
            ("query_rank", query_rank.unwrap_or(0), 0),
            ("key_value_rank", key_value_rank, 1),
            ("rope", rope, 0),
            ("nope", nope, 0),
            ("value", value, 1),
            ("head_size", head_size, 1),
        ]),
    };
    let block = || match kind.feed_forward {
        FeedForward::Dense { width, .. } => sizes(&[("width", width, 0)]),
        FeedForward::Experts(e) => sizes(&[
            ("count", e.count, 1),
            ("chosen", e.chosen, 1),
            ("width", e.width, 1),
            ("shared_width", e.shared_width, 0),
            ("latent", e.latent.unwrap_or(0), 0),
        ])
        .or_else(|| (e.chosen > e.count).then(|| wrong(&format!("{place}.chosen"), "is more than count".into()))),
    };
    let rest = || {
        let vectors = (kind.vectors > MOST_ELEMENTS).then(|| wrong(&format!("{place}.vectors"), "is too many".into()));
        vectors.or_else(|| match kind.span {
            Span::Window(0) | Span::Chunk(0) => {
                Some(wrong(&format!("{place}.span"), "is 0, must be at least 1".into()))
            }
            _ => None,
        })
    };
    let mixer = || {
        let mixer = kind.mixer?;
        let [[a, b], [c, d]] = mixer.inner;
        sizes(&[
            ("mixer.entry", mixer.entry, 0),
            ("mixer.exit", mixer.exit, 0),
            ("mixer.channels", mixer.channels, 0),
            ("mixer.heads", mixer.heads, 0),
            ("mixer.groups", mixer.groups, 0),
            ("mixer.width", mixer.width, 0),
            ("mixer.state", mixer.state, 0),
            ("mixer.chunk", mixer.chunk, 1),
            ("mixer.inner", a.max(b).max(c).max(d), 0),
        ])
    };
    attention.or_else(block).or_else(mixer).or_else(rest)
}
