//! Layers of each stage in a configuration, and the layers that recompute.

use super::{
    configuration::{JobFormat, PIPELINE, PipelineSplit, RecomputedLayers, number},
    reader::FactReader,
};
use plantui_core::{source::LoadError, workload::model::ModelConfig};

/// Most layers that are believed.
const MOST_LAYERS: usize = 100_000;

impl FactReader<'_> {
    /// Megatron's parts on every rank; several are virtual stages.
    pub(super) fn parts_per_rank(&self) -> usize {
        let parts =
            self.facts.get("pipeline_model_parallel_layout").map_or(1, |layout| expanded(layout).split('|').count());
        let ranks = self.count(&PIPELINE).ok().flatten().unwrap_or(1) as usize;
        parts / ranks.max(1)
    }

    /// Layers of every stage, if they are stated.
    pub(super) fn layers(&self, model: Option<&ModelConfig>) -> Result<Option<Vec<usize>>, LoadError> {
        let (facts, source) = (self.facts, self.source);
        let refuse = |name: &str, problem: String| Err(LoadError::at(source, name, problem, ""));
        if let Some(layout) = facts.get("pipeline_model_parallel_layout") {
            let ranks = self.degree(&PIPELINE)?.unwrap_or(1) as usize;
            let parts: Vec<usize> = expanded(layout).split('|').map(|part| part.matches('t').count()).collect();
            if !parts.len().is_multiple_of(ranks) {
                return refuse(
                    "pipeline_model_parallel_layout",
                    format!("has {} parts, no multiple of {ranks} ranks", parts.len()),
                );
            }
            return Ok(Some((0..ranks).map(|rank| parts.iter().skip(rank).step_by(ranks).sum()).collect()));
        }
        if let Some(division) = facts.get("pp_division") {
            let counts: Option<Vec<usize>> = division.split(',').map(|part| part.trim().parse().ok()).collect();
            return counts.map_or_else(
                || refuse("pp_division", format!("is `{division}`, must be numbers with commas")),
                |counts| Ok(Some(counts)),
            );
        }
        if let Some(names) = facts.list("module_fqns_per_model_part").or_else(|| facts.list("model_parts")) {
            let parts = names.split(']').filter(|part| part.contains(['"', '\'']));
            let blocks = |part: &str| part.split(',').filter(|name| name.contains("layers.")).count();
            return Ok(Some(parts.map(blocks).collect()));
        }
        if let Some(parts) = facts.list("parts") {
            return self.deepspeed_parts(parts).map(Some);
        }
        let first = number(facts, &["decoder_first_pipeline_num_layers"], source)?;
        let last = number(facts, &["decoder_last_pipeline_num_layers"], source)?;
        let (Some(model), Some(ranks)) = (model, self.degree(&PIPELINE)?) else { return Ok(None) };
        if first.is_none() && last.is_none() {
            return Ok(None);
        }
        let ends = u64::from(first.is_some()) + u64::from(last.is_some());
        let between = u64::from(ranks).saturating_sub(ends);
        let left = u64::from(model.layers).checked_sub(first.unwrap_or(0) + last.unwrap_or(0));
        match left {
            Some(left) if between > 0 && left % between == 0 => {
                let each = (left / between) as usize;
                let ends = |count: Option<u64>| count.map(|count| count as usize);
                Ok(Some(ends(first).into_iter().chain((0..between).map(|_| each)).chain(ends(last)).collect()))
            }
            _ => refuse(
                "decoder_first_pipeline_num_layers",
                "and the last leave unequal numbers for the stages between".into(),
            ),
        }
    }

    /// Split points of a module for PyTorch's pipelining, and the parts of each rank.
    pub(super) fn splits(&self) -> Result<Option<PipelineSplit>, LoadError> {
        let numbers = |text: &str| -> Vec<usize> {
            text.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect()
        };
        let Some(spec) = self.facts.list("split_spec") else { return Ok(None) };
        let names = spec.split(['"', '\'']).skip(1).step_by(2);
        let starts: Option<Vec<usize>> = names.map(|name| numbers(name).last().copied()).collect();
        let ranks: Vec<Vec<usize>> = match self.facts.list("stages_of_rank") {
            Some(lists) => lists.split(']').map(numbers).filter(|parts| !parts.is_empty()).collect(),
            None => (0..=starts.as_ref().map_or(0, Vec::len)).map(|part| vec![part]).collect(),
        };
        match starts {
            Some(starts) if starts.is_sorted_by(|a, b| a < b) => Ok(Some((starts, ranks))),
            _ => {
                let problem = "splits in front of modules that are not consecutive numbered layers";
                Err(LoadError::at(self.source, "split_spec", problem, "split in front of whole layers"))
            }
        }
    }

    /// Bounds over the entries of a pipeline module: the first entry is the embedding, those after the blocks are the
    /// head.
    fn deepspeed_parts(&self, parts: &str) -> Result<Vec<usize>, LoadError> {
        let bounds: Option<Vec<usize>> =
            parts.trim_matches(['[', ']', ' ']).split(',').map(|part| part.trim().parse().ok()).collect();
        match bounds {
            Some(bounds) if bounds.len() > 1 && bounds.is_sorted_by(|a, b| a < b) && bounds[0] == 0 => {
                Ok(bounds.windows(2).map(|pair| pair[1] - pair[0]).collect())
            }
            _ => Err(LoadError::at(self.source, "PARTS", format!("is {parts}, must be rising numbers from 0"), "")),
        }
    }

    pub(super) fn recompute(
        &self,
        engine: JobFormat,
        layers: Option<&[usize]>,
        notes: &mut Vec<String>,
    ) -> Result<RecomputedLayers, LoadError> {
        let facts = self.facts;
        if let Some(flags) = facts.get("checkpoint").filter(|_| engine == JobFormat::Galvatron) {
            return Ok(RecomputedLayers::Each(flags.split(',').map(|flag| flag.trim() == "1").collect()));
        }
        if let Some(set) = facts.list("recomputed").filter(|_| engine == JobFormat::DeepSpeed) {
            let total: usize = layers.unwrap_or_default().iter().sum();
            let mut each = vec![false; total];
            for number in set.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse::<usize>().ok()) {
                if let Some(flag) = each.get_mut(number) {
                    *flag = true;
                }
            }
            return Ok(RecomputedLayers::Each(each));
        }
        if let Some(names) = facts.list("recompute").filter(|_| engine == JobFormat::Torch) {
            let numbered = names.split(['"', '\'']).skip(1).step_by(2);
            let again: Vec<usize> = numbered.filter_map(|name| name.rsplit('.').next()?.parse().ok()).collect();
            let count = again.iter().max().map_or(0, |last| (last + 1).min(MOST_LAYERS));
            return Ok(RecomputedLayers::Each((0..count).map(|layer| again.contains(&layer)).collect()));
        }
        let granularity =
            facts.any(&["recompute_granularity", "activation_checkpoint.mode"]).map(|(_, value)| value.to_string());
        let selective = facts.is_set("recompute_activations") || granularity.as_deref() == Some("selective");
        if selective || facts.is_set("megatron_lm_recompute_activations") {
            notes.push("selective recomputation counts as none: with flash attention it frees almost nothing".into());
            return Ok(RecomputedLayers::No);
        }
        let full = granularity.as_deref() == Some("full")
            || facts.is_set("gradient_checkpointing")
            || facts.is_set("activation_checkpointing.partition_activations");
        Ok(match (full, facts.get("recompute_method")) {
            (true, Some("block")) => {
                RecomputedLayers::First(number(facts, &["recompute_num_layers"], self.source)?.unwrap_or(1) as usize)
            }
            (true, _) => RecomputedLayers::All,
            (false, _) => RecomputedLayers::No,
        })
    }
}

/// Layout with `x*n` and `(..)*n` written out. A count that is not a number repeats nothing. At most a million letters.
fn expanded(layout: &str) -> String {
    let letters: Vec<char> = layout.chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
    let mut text = String::new();
    let mut place = 0;
    while place < letters.len() {
        let group: String = if letters[place] == '(' {
            let end = letters[place..].iter().position(|c| *c == ')').map_or(letters.len(), |at| place + at);
            let inner: String = letters[place + 1..end].iter().collect();
            place = end + 1;
            // A group may also contain `x*n`.
            expanded_letters(&inner)
        } else {
            place += 1;
            letters[place - 1].to_string()
        };
        let mut times = 1;
        if letters.get(place) == Some(&'*') {
            let digits: String = letters[place + 1..].iter().take_while(|c| c.is_ascii_digit()).collect();
            place += 1 + digits.len();
            times = digits.parse().unwrap_or(1);
        }
        for _ in 0..times {
            if text.len() > 1_000_000 {
                return text;
            }
            text.push_str(&group);
        }
    }
    text
}

fn expanded_letters(inner: &str) -> String {
    if inner.contains('(') { inner.to_string() } else { expanded(inner) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts_are_written_out() {
        for (layout, all) in [
            ("Et*3|t*2L", "Ettt|ttL"),
            ("E|(t|)*3L", "E|t|t|t|L"),
            ("Et|(tt|)*2,tL", "Et|tt|tt|tL"),
            ("E(t*2|)*2L", "Ett|tt|L"),
            ("(((", "(("),
            ("t*", "t"),
        ] {
            assert_eq!(expanded(layout), all, "{layout}");
        }
    }
}
