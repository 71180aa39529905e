//! Models that jobs name: a published name, a folder's last part, or a `config.json` beside the job.

use plantui_core::workload::training::{Model, from_hugging_face, published};

use crate::{format::Context, job::Draft, setting::Fact};

/// Endings of names that do not change the sizes.
const ENDINGS: [&str; 22] = [
    "-instruct",
    "-chat",
    "-base",
    "-hf",
    "-it",
    "-pt",
    "-mcore",
    "-bnb-4bit",
    "-4bit",
    "-unsloth",
    "-awq",
    "-gptq",
    "-int4",
    "-nf4",
    "-bnb",
    "-bf16",
    "-v0.1",
    "-v0.2",
    "-v0.3",
    "-2507",
    "-thinking",
    "-distill",
];

/// Published model of a name, without endings that do not change its sizes.
fn find(name: &str) -> Option<Model> {
    if let Some(model) = published::find(name) {
        return Some(model);
    }
    let last = name.trim_end_matches('/').rsplit(['/', '\\']).next()?.to_ascii_lowercase().replace('_', "-");
    let mut short = last.strip_prefix("meta-").unwrap_or(&last).to_string();
    loop {
        if let Some(model) = published::find(&short) {
            return Some(model);
        }
        let ending = ENDINGS.iter().find(|ending| short.ends_with(*ending))?;
        short.truncate(short.len() - ending.len());
    }
}

/// Sets the model of a job by the name that the job gives it.
pub(crate) fn set(draft: &mut Draft<'_>, name: Fact, context: &Context<'_>) {
    if draft.model.is_some() {
        return;
    }
    let beside = [format!("{}/config.json", name.value.trim_end_matches('/')), name.value.clone()];
    for file in beside.iter().filter(|file| file.ends_with(".json")) {
        if let Some((text, source)) = context.file(file)
            && let Ok(model) = from_hugging_face(&text, &source)
        {
            draft.model = Some(name.with(model));
            return;
        }
    }
    match find(&name.value) {
        Some(model) => {
            let last = name.value.rsplit('/').next().unwrap_or_default();
            if !last.eq_ignore_ascii_case(&model.name) && draft.options.model.is_none() {
                draft.note(format!(
                    "{} names the model {}: its sizes are those of {}",
                    name.place, name.value, model.name
                ));
            }
            let lower = name.value.to_ascii_lowercase();
            draft.four_bits = ["4bit", "awq", "gptq", "int4", "nf4"].iter().any(|word| lower.contains(word));
            draft.model = Some(name.with(model));
        }
        None => draft.model_name = Some(name),
    }
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn names_are_found_in_the_forms_of_hubs_and_folders() {
        for (name, model) in [
            ("meta-llama/Meta-Llama-3-8B-Instruct", "llama-3-8b"),
            ("/data/models/Llama-2-13b-hf", "llama-2-13b"),
            ("some/llama-3-70b", "llama-3-70b"),
            ("Qwen/Qwen3-30B-A3B-Base", "qwen3-30b-a3b"),
            ("unsloth/Meta-Llama-3.1-8B-bnb-4bit", "llama-3.1-8b"),
        ] {
            assert_eq!(find(name).map(|model| model.name).as_deref(), Some(model), "{name}");
        }
        assert!(find("my/own-7b").is_none() && find("").is_none());
    }
}
