//! Models by their published names. Their sizes are read like a `config.json`.
//!
//! A name is plantui's short one (`llama-3.1-8b`) or the hub's (`meta-llama/Llama-3.1-8B`), in either case, with `_` for
//! `-`, and without the format at its end (`-BF16`).

use serde::Deserialize;
use serde_json::value::RawValue;

use super::{config::from_hugging_face, model::Model};
use crate::workload::model;

const TABLE: &str = include_str!("published.jsonl");

#[derive(Deserialize)]
struct PublishedModel<'a> {
    name: &'a str,
    hub: &'a str,
    #[serde(borrow)]
    config: &'a RawValue,
}

/// Entries of the table. It is compiled in, and a test reads all of it.
fn entries() -> impl Iterator<Item = PublishedModel<'static>> {
    TABLE.lines().filter_map(|line| serde_json::from_str(line).ok())
}

/// Short names of all models, including the presets of `generate`.
pub fn names() -> Vec<&'static str> {
    let mut names: Vec<&'static str> = entries().map(|entry| entry.name).collect();
    names.extend(model::presets().iter().copied().filter(|preset| !entries().any(|entry| entry.name == *preset)));
    names
}

/// The `config.json` of a published model by its name, and its source.
pub fn config(name: &str) -> Option<(&'static str, String)> {
    let entry = entry(name)?;
    let source = if entry.hub.is_empty() { "its publication".into() } else { format!("{} config.json", entry.hub) };
    Some((entry.config.get(), source))
}

fn entry(name: &str) -> Option<PublishedModel<'static>> {
    let usual = |name: &str| name.to_ascii_lowercase().replace('_', "-").trim_end_matches("-bf16").to_string();
    let wanted = usual(name);
    let short = wanted.rsplit('/').next().unwrap_or(&wanted);
    entries().find(|entry| {
        let hub = usual(entry.hub);
        !wanted.is_empty()
            && (entry.name == wanted || hub == wanted || hub.rsplit('/').next() == Some(short) && !hub.is_empty())
    })
}

/// Model with this name.
pub fn find(name: &str) -> Option<Model> {
    if let Some((config, source)) = config(name) {
        let mut model = from_hugging_face(config, &source).ok()?;
        model.name = entry(name)?.name.into();
        return Some(model);
    }
    let mut model = Model::from(&model::preset(name)?);
    if OF_A_PROFILE.contains(&model.name.as_str()) {
        model.remarks.push(format!(
            "this is {0} as it is trained, with its optimizer; `plantui generate {0}` makes another run, Piper's published profile of \
             weights alone",
            model.name
        ));
    }
    Some(model)
}

/// Networks that Piper published as a profile under the same name.
const OF_A_PROFILE: [&str; 2] = ["bert-32", "bert-96"];

#[cfg(test)]
mod tests {
    use super::*;

    /// Parameters as the weights' own files or their publications count them, tied matrices once.
    const COUNTS: &[(&str, u64)] = &[
        ("llama-2-7b", 6_738_415_616),
        ("nemotron-3-nano", 31_577_937_344),
        ("nemotron-3-super", 120_668_687_360),
        ("nemotron-3-ultra", 549_308_968_960),
        ("llama-2-13b", 13_015_864_320),
        ("llama-2-70b", 68_976_648_192),
        ("llama-3-8b", 8_030_261_248),
        ("llama-3-70b", 70_553_706_496),
        ("llama-3.1-8b", 8_030_261_248),
        ("llama-3.1-70b", 70_553_706_496),
        ("llama-3.1-405b", 405_853_388_800),
        ("llama-3.2-1b", 1_235_814_400),
        ("llama-3.2-3b", 3_212_749_824),
        ("llama-3.3-70b", 70_553_706_496),
        ("llama-4-maverick", 400_711_848_960),
        ("mistral-7b", 7_241_732_096),
        ("mistral-nemo-12b", 12_247_782_400),
        ("mistral-small-24b", 23_572_403_200),
        ("mistral-large-123b", 122_610_069_504),
        ("mixtral-8x7b", 46_702_792_704),
        ("mixtral-8x22b", 140_620_634_112),
        ("qwen2-7b", 7_615_616_512),
        ("qwen2.5-0.5b", 494_032_768),
        ("qwen2.5-1.5b", 1_543_714_304),
        ("qwen2.5-3b", 3_085_938_688),
        ("qwen2.5-7b", 7_615_616_512),
        ("qwen2.5-14b", 14_770_033_664),
        ("qwen2.5-32b", 32_763_876_352),
        ("qwen2.5-72b", 72_706_203_648),
        ("qwen1.5-moe-a2.7b", 14_315_784_192),
        ("qwen3-0.6b", 596_049_920),
        ("qwen3-1.7b", 1_720_574_976),
        ("qwen3-4b", 4_022_468_096),
        ("qwen3-8b", 8_190_735_360),
        ("qwen3-14b", 14_768_307_200),
        ("qwen3-32b", 32_762_123_264),
        ("qwen3-30b-a3b", 30_532_122_624),
        ("qwen3-235b-a22b", 235_093_634_560),
        ("deepseek-v2-lite", 15_706_484_224),
        ("deepseek-v2", 235_741_434_880),
        ("deepseek-v3", 671_026_419_200),
        ("gemma-2b", 2_506_172_416),
        ("gemma-7b", 8_537_680_896),
        ("gemma-2-2b", 2_614_341_888),
        ("gemma-2-9b", 9_241_705_984),
        ("gemma-2-27b", 27_227_128_320),
        ("gemma-3-1b", 999_885_952),
        ("gemma-3-4b", 3_880_263_168),
        ("gemma-3-12b", 11_766_034_176),
        ("gemma-3-27b", 27_009_346_304),
        ("phi-3-mini", 3_821_079_552),
        ("phi-3-medium", 13_960_238_080),
        ("phi-4", 14_659_507_200),
        ("phi-4-mini", 3_836_021_760),
        ("phi-3.5-moe", 41_873_153_344),
        ("phi-2", 2_779_683_840),
        ("gpt-oss-20b", 20_914_757_184),
        ("gpt-oss-120b", 116_829_156_672),
        ("gpt2", 124_439_808),
        ("gpt2-medium", 354_823_168),
        ("gpt2-large", 774_030_080),
        ("gpt2-xl", 1_557_611_200),
        ("gpt-neox-20b", 20_554_567_680),
        ("pythia-160m", 162_322_944),
        ("pythia-1.4b", 1_414_647_808),
        ("pythia-6.9b", 6_857_302_016),
        ("pythia-12b", 11_846_072_320),
        ("gpt-j-6b", 6_050_882_784),
        ("opt-125m", 125_239_296),
        ("opt-350m", 331_196_416),
        ("opt-1.3b", 1_315_758_080),
        ("opt-6.7b", 6_658_473_984),
        ("opt-13b", 12_853_473_280),
        ("bloom-560m", 559_214_592),
        ("bloom-7b1", 7_069_016_064),
        ("bloom", 176_247_271_424),
        ("falcon-7b", 6_921_720_704),
        ("falcon-40b", 41_303_293_952),
        ("olmo-2-7b", 7_298_617_344),
        ("olmo-2-13b", 13_716_198_400),
        ("olmo-7b", 6_888_095_744),
        ("olmoe-1b-7b", 6_919_161_856),
        ("smollm2-135m", 134_515_008),
        ("smollm2-1.7b", 1_711_376_384),
        ("smollm3-3b", 3_075_098_624),
        ("tinyllama-1.1b", 1_100_048_384),
        ("granite-3.1-2b", 2_533_531_648),
        ("granite-3.1-8b", 8_170_848_256),
        ("granite-3.1-1b-a400m", 1_334_628_352),
        ("command-r-35b", 34_980_831_232),
        ("command-r-plus-104b", 103_810_674_688),
        ("starcoder2-7b", 7_173_923_840),
        ("stablelm-3b", 2_795_443_200),
        ("bert-base", 109_482_240),
        ("bert-large", 335_141_888),
        ("all-minilm-l6", 22_713_216),
        ("roberta-base", 124_697_433),
        ("xlm-roberta-large", 560_142_482),
        ("distilbert-base", 66_985_530),
        ("t5-small", 60_506_624),
        ("t5-base", 222_903_552),
        ("t5-large", 737_668_096),
        ("t5-3b", 2_851_598_336),
        ("t5-11b", 11_307_321_344),
        ("flan-t5-base", 247_577_856),
        ("mt5-small", 300_176_768),
        ("vit-base", 86_567_656),
        ("vit-base-21k", 86_389_248),
        ("vit-large", 304_326_632),
    ];

    /// Models without a published exact count, in billions as published.
    const BILLIONS: &[(&str, f64)] = &[
        ("llama-4-scout", 107.77),
        ("qwen2-57b-a14b", 57.41),
        ("opt-66b", 65.72),
        ("minitron-4b", 4.19),
        ("nemotron-4-15b", 15.63),
        ("nemotron-4-340b", 341.03),
        ("command-r7b", 8.03),
    ];

    #[test]
    fn every_published_model_has_its_published_count() {
        let mut wrong = vec![];
        for &(name, count) in COUNTS {
            let model = find(name).unwrap_or_else(|| panic!("{name} cannot be read"));
            if model.parameters() != count {
                wrong.push(format!(
                    "{name}: {} is not {count} ({:+})",
                    model.parameters(),
                    model.parameters() as i64 - count as i64
                ));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        for &(name, billions) in BILLIONS {
            let parameters = find(name).unwrap().parameters() as f64 / 1e9;
            assert!((parameters - billions).abs() < 0.0051, "{name}: {parameters}");
        }
        assert_eq!(COUNTS.len() + BILLIONS.len(), TABLE.lines().count());
    }
}
