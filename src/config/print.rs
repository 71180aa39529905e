//! Writes a [`Config`] as a TOML file, with a comment above every setting.

use super::{
    Config,
    settings::{self, ConfigSetting},
};
const HEAD: &str = "\
# Start values of plantui's screen. Other commands do not read this file.
# Flags have priority over the last session with a workload, the session over the workload's limits, these over this \
file.
";

const LIMITS: &str = "\
# Limits for workloads that do not state their own.
";

const SIMULATOR: &str = "\
# Start values of the simulator's settings.
";

const PRICES: &str = "\
# Price of a device for an hour, by id of the hardware, for days and costs of a training.
";

pub(super) fn to_toml(config: &Config) -> String {
    let mut text = HEAD.to_string();
    for setting in settings::general() {
        text.push_str(&format!("\n{}", written(&setting, config)));
    }
    text.push_str(&format!("\n{LIMITS}[limits]\n"));
    for setting in settings::limits() {
        text.push_str(&written(&setting, config));
    }
    text.push_str(&format!("\n{SIMULATOR}[simulator]\n"));
    for setting in settings::simulator() {
        text.push_str(&written(&setting, config));
    }
    for sheet in &config.hardware {
        let figures = toml::to_string(sheet).expect("numbers and texts serialise");
        let figures: String =
            figures.lines().filter(|line| !line.starts_with("id = ")).map(|line| format!("{line}\n")).collect();
        text.push_str(&format!("\n[hardware.{}]\n{figures}", sheet.id));
    }
    text.push_str(&format!("\n{PRICES}[prices]\n"));
    if config.prices.is_empty() {
        text.push_str("# One row for each kind of hardware, by its id in `plantui hardware`\n# h100 = 2.49\n");
    }
    for (hardware, price) in &config.prices {
        text.push_str(&format!("{hardware} = {price}\n"));
    }
    #[cfg(feature = "screen")]
    super::keys::write(&config.keymap, &mut text);
    text
}

/// Writes a setting under its comment. An unset one is commented out.
fn written(setting: &ConfigSetting, config: &Config) -> String {
    let line = match (setting.write)(config) {
        Some(value) => format!("{} = {value}", setting.name),
        None => format!("# {} = {}", setting.name, setting.example),
    };
    format!("# {}\n{line}\n", setting.help)
}

#[cfg(all(test, feature = "screen"))]
mod tests {
    use super::*;

    const FULL: &str = r#"
theme = "light"
mouse = false
ascii = true
restore = false
planner = ["dapple", "piper"]
schedule = "gpipe"
deadline = "1.5min"
[limits]
devices = 48
cpus = 2
memory = "12.5GiB"
microbatches = 960
bandwidth = "200Gb/s"
batch = 256
flops = "312T"
machines = "8,8,4"
[simulator]
overlap = false
links = "shared"
virtual-stages = 4
extra-warmup = 3
weight-gradient-share = 0.4
forward-share = "30%"
buckets = 8
optimizer-step = "20ms"
[keys.everywhere]
quit = ["Q", "\"", "\\", "alt-f4"]
export = []
[keys.timeline]
zoom-in = "z"
"#;

    #[test]
    fn what_is_printed_is_read_as_the_same() {
        for text in ["", FULL] {
            let config = Config::parse(text, "given").unwrap();
            let printed = config.to_toml();
            let again = Config::parse(&printed, "printed").unwrap_or_else(|error| panic!("{error}\n{printed}"));
            assert_eq!(again, config, "{printed}");
        }
        assert_eq!(Config::parse("", "given").unwrap(), Config::default());
        assert_ne!(Config::parse(FULL, "given").unwrap(), Config::default());
    }

    #[test]
    fn every_example_that_is_commented_out_would_be_taken() {
        let printed = Config::default().to_toml();
        let taken: Vec<String> = printed
            .lines()
            .map(|line| match line.strip_prefix("# ") {
                Some(setting) if setting.split_once(" = ").is_some_and(|(name, _)| !name.contains(' ')) => setting,
                _ => line,
            })
            .map(str::to_string)
            .collect();
        let config = Config::parse(&taken.join("\n"), "examples").unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(config.limits.devices(), Some(64));
        assert!(config.deadline.is_some() && config.limits.machines.is_some());
    }
}
