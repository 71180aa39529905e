//! Table of settings: name, help, reader and writer of each.

use toml::{Value, de::DeValue};

use super::Config;
#[cfg(feature = "screen")]
use crate::tui::{Depth, theme};
use crate::{
    cluster::{LimitKind, Machines},
    planner,
    simulate::{self, Schedule, SimulatorSettings},
    source::error::printable,
    units,
};

/// Sentence that says how to repair a refused value.
pub(super) type Repair = String;

type Read = Box<dyn Fn(&mut Config, &DeValue<'_>) -> Result<(), Repair>>;
type Write = Box<dyn Fn(&Config) -> Option<Value>>;

/// One setting.
pub(super) struct ConfigSetting {
    /// Name in the file.
    pub(super) name: &'static str,
    /// Comment above it in the printed file.
    pub(super) help: String,
    /// Example value, printed for an unset setting.
    pub(super) example: Value,
    /// Reads the value into a configuration.
    pub(super) read: Read,
    /// Value in a configuration; `None` if unset.
    pub(super) write: Write,
}

/// Settings outside of any table, in the order in which they are printed.
pub(super) fn general() -> Vec<ConfigSetting> {
    vec![
        ConfigSetting {
            name: "theme",
            help: "Colours; `plantui themes` lists them, `auto` fits the terminal: dark or light".into(),
            example: "dark".into(),
            read: Box::new(|config, value| {
                let name = text(value, "dark")?;
                #[cfg(feature = "screen")]
                theme::load(name, theme::user_directory().as_deref(), Depth::True)
                    .map_err(|error| error.to_string())?;
                config.theme = name.into();
                Ok(())
            }),
            write: Box::new(|config| Some(config.theme.clone().into())),
        },
        ConfigSetting {
            name: "mouse",
            help: "Whether clicks and the wheel work; false leaves the mouse to the terminal".into(),
            example: true.into(),
            read: Box::new(|config, value| yes_or_no(value).map(|mouse| config.mouse = mouse)),
            write: Box::new(|config| Some(config.mouse.into())),
        },
        ConfigSetting {
            name: "ascii",
            help: "Whether to draw with ASCII alone: true, false, or \"auto\" for the locale's choice".into(),
            example: "auto".into(),
            read: Box::new(|config, value| {
                config.ascii = match value.as_str() {
                    Some("auto") => None,
                    _ => Some(value.as_bool().ok_or("write true, false or \"auto\"")?),
                };
                Ok(())
            }),
            write: Box::new(|config| Some(config.ascii.map_or_else(|| "auto".into(), Value::from))),
        },
        ConfigSetting {
            name: "restore",
            help: "Whether to restore the last session with a workload; --fresh skips it once".into(),
            example: true.into(),
            read: Box::new(|config, value| yes_or_no(value).map(|restore| config.restore = restore)),
            write: Box::new(|config| Some(config.restore.into())),
        },
        ConfigSetting {
            name: "planner",
            help: "Planners in order of preference; the first that fits the workload plans it".into(),
            example: Value::Array(vec![]),
            read: Box::new(|config, value| {
                config.planners = texts(value)?.into_iter().map(known_planner).collect::<Result<_, _>>()?;
                Ok(())
            }),
            write: Box::new(|config| Some(Value::Array(config.planners.iter().cloned().map(Value::from).collect()))),
        },
        ConfigSetting {
            name: "schedule",
            help: format!(
                "Schedule with which plans are simulated at first: {}",
                Schedule::ALL.map(Schedule::id).join(", ")
            ),
            example: Schedule::ALL[0].id().into(),
            read: Box::new(|config, value| {
                let id = text(value, Schedule::ALL[0].id())?;
                let known = Schedule::ALL.map(Schedule::id);
                config.schedule = Schedule::find(id).ok_or_else(|| one_of("schedule", id, &known))?;
                Ok(())
            }),
            write: Box::new(|config| Some(config.schedule.id().into())),
        },
        ConfigSetting {
            name: "deadline",
            help: "Time limit of a search; then its best plan so far is kept".into(),
            example: "60s".into(),
            read: Box::new(|config, value| {
                let deadline = units::parse_deadline(text(value, "60s")?).map_err(|error| error.to_string())?;
                config.deadline = Some(deadline);
                Ok(())
            }),
            write: Box::new(|config| Some(format!("{}s", config.deadline?.as_secs_f64()).into())),
        },
    ]
}

/// Settings of the table `limits`.
pub(super) fn limits() -> Vec<ConfigSetting> {
    let mut settings: Vec<ConfigSetting> = LimitKind::ALL.into_iter().map(limit).collect();
    settings.push(ConfigSetting {
        name: "machines",
        help: "Devices of each machine, such as 8,8 or 2x8 (layer profiles)".into(),
        example: "8,8".into(),
        read: Box::new(|config, value| {
            let text = written(value)?;
            config.limits.machines = Some(Machines::parse(&text).map_err(|error| error.to_string())?);
            Ok(())
        }),
        write: Box::new(|config| {
            let sizes = config.limits.machines.as_ref()?;
            let sizes: Vec<String> = sizes.sizes().iter().map(ToString::to_string).collect();
            Some(sizes.join(",").into())
        }),
    });
    settings
}

/// Settings of the table `simulator`.
pub(super) fn simulator() -> Vec<ConfigSetting> {
    simulate::SimulatorSetting::ALL.into_iter().map(assumption).collect()
}

fn assumption(setting: simulate::SimulatorSetting) -> ConfigSetting {
    let shown = move |settings: &SimulatorSettings| match setting {
        simulate::SimulatorSetting::Overlap => settings.overlap.into(),
        simulate::SimulatorSetting::VirtualStages => i64::from(settings.virtual_stages).into(),
        simulate::SimulatorSetting::SequenceSlices => i64::from(settings.sequence_slices).into(),
        simulate::SimulatorSetting::Buckets => i64::from(settings.buckets).into(),
        _ => Value::from(setting.text(settings)),
    };
    ConfigSetting {
        name: setting.id(),
        help: setting.help().into(),
        example: shown(&SimulatorSettings::default()),
        read: Box::new(move |config, value| {
            let text = match value.as_bool() {
                Some(yes) => if yes { "yes" } else { "no" }.to_string(),
                None => written(value)?,
            };
            config.simulator = setting.parse(&text, &config.simulator)?;
            Ok(())
        }),
        write: Box::new(move |config| Some(shown(&config.simulator))),
    }
}

fn limit(kind: LimitKind) -> ConfigSetting {
    let count = kind.is_count();
    let shown = move |value: f64| if count { Value::Integer(value as i64) } else { kind.format(value).into() };
    ConfigSetting {
        name: kind.flag().trim_start_matches('-'),
        help: kind.help().into(),
        example: kind.parse(kind.example()).map_or_else(|_| kind.example().into(), shown),
        read: Box::new(move |config, value| {
            let value = kind.parse(&written(value)?).map_err(|error| error.to_string())?;
            config.limits.set(kind, Some(value));
            Ok(())
        }),
        write: Box::new(move |config| config.limits.get(kind).map(shown)),
    }
}

fn text<'a>(value: &'a DeValue<'_>, example: &str) -> Result<&'a str, Repair> {
    value.as_str().ok_or_else(|| format!("write it in quotes, such as \"{example}\""))
}

/// Text of a value that is a number or a string.
fn written(value: &DeValue<'_>) -> Result<String, Repair> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.as_str().to_string()),
        DeValue::Float(number) => Ok(number.as_str().to_string()),
        _ => Err("write a number, or a text with its unit such as \"16GiB\"".into()),
    }
}

/// Strings of a value that is one string or a list of them.
pub(super) fn texts<'a>(value: &'a DeValue<'_>) -> Result<Vec<&'a str>, Repair> {
    let repair = || "write a text in quotes, or a list of them such as [\"a\", \"b\"]".to_string();
    match value {
        DeValue::String(text) => Ok(vec![text]),
        DeValue::Array(list) => list.iter().map(|item| item.get_ref().as_str().ok_or_else(repair)).collect(),
        _ => Err(repair()),
    }
}

fn yes_or_no(value: &DeValue<'_>) -> Result<bool, Repair> {
    value.as_bool().ok_or_else(|| "write true or false".into())
}

fn known_planner(id: &str) -> Result<String, Repair> {
    let known: Vec<&str> = planner::all().iter().map(|planner| planner.info().id).collect();
    if known.contains(&id) { Ok(id.into()) } else { Err(one_of("planner", id, &known)) }
}

/// Message for an unknown word, with the nearest known word or else the list of all.
pub(super) fn one_of(what: &str, word: &str, known: &[&str]) -> Repair {
    let word = &printable(word);
    match crate::text::nearest(word, known.iter().copied()) {
        Some(near) => format!("there is no {what} `{word}`; did you mean `{near}`?"),
        None => format!("there is no {what} `{word}`; there are {}", known.join(", ")),
    }
}
