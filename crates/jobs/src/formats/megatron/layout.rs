//! Layers of the stages in Megatron-Core's arguments.

use plantui_core::source::LoadError;

use crate::{
    job::Draft,
    setting::{Fact, Settings},
};

/// Most letters of a layout that is written out.
const LONGEST: usize = 1_000_000;

/// Sets the stages of the pipeline, the virtual stages, and their layers.
///
/// # Errors
/// [`LoadError`] for stages that do not hold the model's layers.
pub(super) fn stages(settings: &Settings, draft: &mut Draft<'_>, layers: Option<&Fact<u64>>) -> Result<(), LoadError> {
    let pipeline = draft.degree("pp");
    let layout = settings.text("pipeline_model_parallel_layout")?;
    let each = settings.count("num_layers_per_virtual_pipeline_stage")?;
    let parts = settings.count_of(&["num_virtual_stages_per_pipeline_rank", "virtual_pipeline_model_parallel_size"])?;
    let first = settings.count("decoder_first_pipeline_num_layers")?;
    let last = settings.count("decoder_last_pipeline_num_layers")?;
    let embedding = settings.flag("account_for_embedding_in_pipeline_split")?.filter(|fact| fact.value);
    let loss = settings.flag("account_for_loss_in_pipeline_split")?.filter(|fact| fact.value);
    // Megatron-DeepSpeed counts the embedding at both ends as a layer.
    let method = settings.text("pp_partition_method")?.filter(|fact| fact.value.contains("embedding"));
    let counted = method.map(|fact| fact.with(true));
    let (embedding, loss) = (embedding.or(counted.clone()), loss.or(counted));
    if let Some(layout) = layout {
        return of_layout(&layout, draft, pipeline, layers);
    }
    let virtual_stages = match (&parts, &each, layers) {
        (Some(parts), ..) => parts.value.max(1),
        (None, Some(each), Some(layers)) if pipeline > 1 => {
            let inner = layers.value + u64::from(embedding.is_some()) + u64::from(loss.is_some());
            let stage = inner / pipeline;
            if each.value == 0 || !stage.is_multiple_of(each.value) {
                let problem = format!("is {}, which does not divide the {stage} layers of a stage", each.value);
                return Err(each.place.error("num_layers_per_virtual_pipeline_stage", problem, "correct it"));
            }
            stage / each.value
        }
        _ => 1,
    };
    if pipeline > 1
        && virtual_stages > 1
        && let Some(fact) = parts.as_ref().or(each.as_ref())
    {
        draft.set("vp", fact.with(virtual_stages));
    }
    let Some(layers) = layers else { return Ok(()) };
    let ends = [(&first, "decoder_first_pipeline_num_layers"), (&last, "decoder_last_pipeline_num_layers")];
    for (fact, name) in ends {
        if let Some(fact) = fact
            && pipeline < 2
        {
            let problem = format!(
                "is {}, and the pipeline has one stage: it would train {} of {} layers",
                fact.value, fact.value, layers.value
            );
            return Err(fact.place.error(name, problem, "leave it out, or give --pipeline-model-parallel-size"));
        }
    }
    let counts = if let Some(end) = first.as_ref().or(last.as_ref()) {
        let taken = first.as_ref().map_or(0, |fact| fact.value) + last.as_ref().map_or(0, |fact| fact.value);
        let between = pipeline - u64::from(first.is_some()) - u64::from(last.is_some());
        let left = layers.value.checked_sub(taken);
        let Some(left) = left.filter(|left| if between == 0 { *left == 0 } else { left % between == 0 }) else {
            let problem = format!(
                "and the last leave {} of {} layers for {between} stages between them",
                layers.value.saturating_sub(taken),
                layers.value
            );
            return Err(end.place.error("decoder_first_pipeline_num_layers", problem, "correct them"));
        };
        let inner = std::iter::repeat_n(left / between.max(1), between as usize);
        let ends = |fact: &Option<Fact<u64>>| fact.as_ref().map(|fact| fact.value);
        Some((end.clone(), ends(&first).into_iter().chain(inner).chain(ends(&last)).collect::<Vec<u64>>()))
    } else {
        None
    };
    if let Some((place, stages)) = counts {
        if let Some(odd) = stages.iter().find(|count| *count % virtual_stages != 0) {
            let problem = format!("leaves a stage with {odd} layers for {virtual_stages} virtual stages");
            return Err(place.place.error("decoder_first_pipeline_num_layers", problem, "correct it"));
        }
        let parts = (0..virtual_stages).flat_map(|_| stages.iter().map(|count| (count / virtual_stages).to_string()));
        draft.set("layers", place.with(parts.collect::<Vec<_>>().join(",")));
    } else if let Some(account) = embedding.as_ref().or(loss.as_ref())
        && pipeline > 1
    {
        let all = layers.value + u64::from(embedding.is_some()) + u64::from(loss.is_some());
        let parts = pipeline * virtual_stages;
        if all % parts != 0 {
            let problem = format!("gives {all} layers with the ends, no multiple of {parts} stages");
            return Err(account.place.error("account_for_embedding_in_pipeline_split", problem, "correct the stages"));
        }
        let mut counts = vec![all / parts; parts as usize];
        counts[0] -= u64::from(embedding.is_some());
        counts[parts as usize - 1] -= u64::from(loss.is_some());
        let counts: Vec<String> = counts.iter().map(u64::to_string).collect();
        draft.set("layers", account.with(counts.join(",")));
    } else if !layers.value.is_multiple_of(pipeline * virtual_stages) {
        let problem = format!(
            "is {}, no multiple of {} stages, and nothing states the layers of each",
            layers.value,
            pipeline * virtual_stages
        );
        return Err(layers.place.error("num_layers", problem, "give --pipeline-model-parallel-layout with --with"));
    }
    Ok(())
}

fn of_layout(layout: &Fact, draft: &mut Draft<'_>, pipeline: u64, layers: Option<&Fact<u64>>) -> Result<(), LoadError> {
    let refuse = |problem: String| Err(layout.place.error("pipeline_model_parallel_layout", problem, "correct it"));
    let expanded = expanded(&layout.value);
    let parts: Vec<&str> = expanded.split('|').collect();
    if let Some(letter) = expanded.chars().find(|c| !"EtmL|".contains(*c)) {
        return refuse(format!("has the letter `{letter}`; known are E, t, m, L and |"));
    }
    if pipeline == 0 || !(parts.len() as u64).is_multiple_of(pipeline) {
        return refuse(format!("has {} parts, no multiple of {pipeline} stages", parts.len()));
    }
    let count = |part: &str| part.matches('t').count();
    let all: usize = parts.iter().map(|part| count(part)).sum();
    if let Some(layers) = layers.filter(|layers| layers.value != all as u64) {
        return refuse(format!("has {all} layers, num_layers is {}", layers.value));
    }
    if expanded.matches('E').count() != 1 || !parts[0].contains('E') {
        return refuse("must have one E, in the first part".into());
    }
    if expanded.matches('L').count() != 1 || !parts[parts.len() - 1].contains('L') {
        return refuse("must have one L, in the last part".into());
    }
    let virtual_stages = parts.len() as u64 / pipeline;
    if virtual_stages > 1 {
        draft.set("vp", layout.with(virtual_stages));
    }
    if pipeline > 1 {
        let words: Vec<String> =
            parts.iter().map(|part| format!("{}{}", count(part), if part.contains('m') { "m" } else { "" })).collect();
        draft.set("layers", layout.with(words.join(",")));
    }
    Ok(())
}

/// Layout with `x*n` and `(..)*n` written out. A count that is no number repeats nothing.
fn expanded(layout: &str) -> String {
    let letters: Vec<char> = layout.chars().filter(|c| !c.is_whitespace() && *c != ',').collect();
    let mut text = String::new();
    let mut place = 0;
    while place < letters.len() {
        let group: String = if letters[place] == '(' {
            let end = letters[place..].iter().position(|c| *c == ')').map_or(letters.len(), |at| place + at);
            let inner: String = letters[place + 1..end].iter().collect();
            place = end + 1;
            if inner.contains('(') { inner } else { expanded(&inner) }
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
            if text.len() > LONGEST {
                return text;
            }
            text.push_str(&group);
        }
    }
    text
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
