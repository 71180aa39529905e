//! Activations that the backward pass recomputes: of whole layers, or of modules in every layer.

use std::fmt;

/// Modules of a layer that run again in the backward pass, so that only their inputs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Modules(u16);

impl Modules {
    /// None of them.
    pub const NONE: Modules = Modules(0);
    /// Attention core. Fused kernels keep no scores, so that this saves memory only without them.
    pub const CORE_ATTENTION: Modules = Modules(1);
    /// Dense feed-forward block.
    pub const MLP: Modules = Modules(1 << 1);
    /// Mixture of experts, with the exchange of its tokens.
    pub const MOE: Modules = Modules(1 << 2);
    /// Activation function of the experts.
    pub const MOE_ACTIVATION: Modules = Modules(1 << 3);
    /// Norms.
    pub const NORM: Modules = Modules(1 << 4);
    /// Projections from latent states to heads (multi-head latent attention).
    pub const LATENT_PROJECTION: Modules = Modules(1 << 5);
    /// Projections to queries, keys and values, and from the attention's output.
    pub const PROJECTIONS: Modules = Modules(1 << 6);
    /// Every second matrix product and all elementwise kernels (torchtitan's selective-op).
    pub const OPERATORS: Modules = Modules(1 << 7);

    /// Names of the modules: Megatron-Core's where it has one.
    pub const NAMES: [(&'static str, Modules); 8] = [
        ("core_attn", Modules::CORE_ATTENTION),
        ("mlp", Modules::MLP),
        ("moe", Modules::MOE),
        ("moe_act", Modules::MOE_ACTIVATION),
        ("layernorm", Modules::NORM),
        ("mla_up_proj", Modules::LATENT_PROJECTION),
        ("proj", Modules::PROJECTIONS),
        ("op", Modules::OPERATORS),
    ];

    /// Policies of MaxText with the modules that they run again. They name what is kept; everything else runs again.
    pub const POLICIES: [(&'static str, Modules); 4] = [
        ("minimal", Modules(1 | 1 << 3 | 1 << 4)),
        ("save_dot_except_mlp", Modules(1 | 1 << 1 | 1 << 2 | 1 << 4)),
        ("save_out_proj", Modules(1 | 1 << 1 | 1 << 2 | 1 << 4 | 1 << 5)),
        ("save_qkv_proj", Modules(1 | 1 << 1 | 1 << 2 | 1 << 4)),
    ];

    /// True if no module is named, which stands for the usual ones of the stack.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// True if all of these modules are among them.
    pub fn has(self, modules: Modules) -> bool {
        self.0 & modules.0 == modules.0
    }

    /// Both together.
    #[must_use]
    pub fn and(self, other: Modules) -> Modules {
        Modules(self.0 | other.0)
    }

    /// Names of the modules.
    pub fn names(self) -> Vec<&'static str> {
        Modules::NAMES.iter().filter(|(_, module)| self.has(*module)).map(|(name, _)| *name).collect()
    }

    fn find(text: &str) -> Option<Self> {
        if let Some((_, modules)) = Modules::POLICIES.iter().find(|(name, _)| *name == text) {
            return Some(*modules);
        }
        let one = |word: &str| Modules::NAMES.iter().find(|(name, _)| *name == word.trim()).map(|(_, module)| *module);
        text.split(',').map(one).try_fold(Modules::default(), |all, module| Some(all.and(module?)))
    }
}

/// Activations that the backward pass recomputes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recompute {
    /// None.
    None,
    /// Activations of modules in every layer; of the stack's usual ones if the set is empty.
    Selective(Modules),
    /// All activations of every layer.
    Full,
    /// All activations of this many layers per virtual stage.
    Layers(u32),
    /// All activations of one layer in this many, from the first of each virtual stage on (torchtitan).
    Every(u32),
}

impl Recompute {
    /// Forms of the text that [`Recompute::parse`] reads.
    pub const FORMS: &'static str = "none, selective, selective:MODULES, full, full:LAYERS or every:N";

    /// Selective recomputation of the stack's usual modules.
    pub const SELECTIVE: Recompute = Recompute::Selective(Modules(0));

    /// Reads a text such as `full:4` or `selective:mlp,layernorm`.
    ///
    /// # Errors
    /// A sentence with the forms, or with the known modules.
    pub fn parse(text: &str) -> Result<Self, String> {
        let shown = || crate::text::printable(text);
        let count = |digits: &str| {
            let count = digits.parse().ok().filter(|count| (1..=1 << 20).contains(count));
            count.ok_or_else(|| format!("recompute is `{}`, must have a whole number from 1", shown()))
        };
        match text.split_once(':') {
            None => match text {
                "none" => Ok(Recompute::None),
                "selective" => Ok(Recompute::SELECTIVE),
                "full" => Ok(Recompute::Full),
                _ => Err(format!("recompute is `{}`, must be {}", shown(), Recompute::FORMS)),
            },
            Some(("full", layers)) => count(layers).map(Recompute::Layers),
            Some(("every", layers)) => count(layers).map(Recompute::Every),
            Some(("selective", modules)) => Modules::find(modules).map(Recompute::Selective).ok_or_else(|| {
                let known: Vec<&str> = Modules::NAMES.iter().chain(&Modules::POLICIES).map(|(name, _)| *name).collect();
                format!("recompute is `{}`; modules are {}", shown(), known.join(", "))
            }),
            Some(_) => Err(format!("recompute is `{}`, must be {}", shown(), Recompute::FORMS)),
        }
    }

    /// True if the layer at this place of a virtual stage runs again as a whole.
    pub fn repeats(self, place: usize) -> bool {
        match self {
            Recompute::None | Recompute::Selective(_) => false,
            Recompute::Full => true,
            Recompute::Layers(count) => place < count as usize,
            Recompute::Every(step) => place.is_multiple_of(step.max(1) as usize),
        }
    }
}

impl fmt::Display for Recompute {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Recompute::None => f.write_str("none"),
            Recompute::Selective(modules) if modules.is_empty() => f.write_str("selective"),
            Recompute::Selective(modules) => write!(f, "selective:{}", modules.names().join(",")),
            Recompute::Full => f.write_str("full"),
            Recompute::Layers(layers) => write!(f, "full:{layers}"),
            Recompute::Every(step) => write!(f, "every:{step}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_read_as_it_is_shown() {
        for text in
            ["none", "selective", "selective:core_attn", "selective:mlp,moe_act,layernorm", "full", "full:3", "every:2"]
        {
            assert_eq!(Recompute::parse(text).map(|read| read.to_string()), Ok(text.to_string()));
        }
        assert!(Recompute::parse("selective:magic").unwrap_err().contains("mla_up_proj"));
        assert!(Recompute::parse("full:0").is_err() && Recompute::parse("some").is_err());
        assert_eq!(Recompute::parse("selective:minimal"), Recompute::parse("selective:core_attn,moe_act,layernorm"));
    }

    #[test]
    fn layers_repeat_by_their_place() {
        let places = |recompute: Recompute| (0..4).map(|place| recompute.repeats(place)).collect::<Vec<_>>();
        assert_eq!(places(Recompute::Layers(2)), [true, true, false, false]);
        assert_eq!(places(Recompute::Every(2)), [true, false, true, false]);
        assert_eq!(places(Recompute::SELECTIVE), [false; 4]);
    }
}
