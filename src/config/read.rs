//! Parses the text of a configuration file to a [`Config`], or to an error with its line.

use serde::Deserialize;
use toml::{
    Spanned,
    de::{DeTable, DeValue},
};

use super::{
    Config, ConfigError,
    settings::{self, ConfigSetting},
};
use crate::{
    cluster::hardware::{self, HardwareSheet},
    source::error::{printable, single_line},
};

/// Names of the tables beside the general settings.
const TABLES: [&str; 5] = ["limits", "simulator", "hardware", "prices", "keys"];

pub(super) fn parse(text: &str, file: &str) -> Result<Config, ConfigError> {
    let reader = ConfigReader { text, file };
    let table = DeTable::parse(text).map_err(|error| {
        let at = error.span().map_or(0, |span| span.start);
        reader.error(at, &printable(error.message()), "a configuration is TOML: `plantui --print-config` shows one")
    })?;
    let mut config = Config::default();
    let general = settings::general();
    for (key, value) in in_order(table.get_ref()) {
        match (key.get_ref().as_ref(), value.get_ref()) {
            ("limits", DeValue::Table(limits)) => {
                reader.settings(&mut config, limits, &settings::limits(), "limits.")?;
            }
            ("simulator", DeValue::Table(given)) => {
                reader.settings(&mut config, given, &settings::simulator(), "simulator.")?;
            }
            #[cfg(feature = "screen")]
            ("keys", DeValue::Table(scopes)) => reader.keys(&mut config, scopes)?,
            #[cfg(not(feature = "screen"))]
            ("keys", DeValue::Table(_)) => {}
            ("hardware", DeValue::Table(sheets)) => reader.hardware(&mut config, sheets)?,
            ("prices", DeValue::Table(prices)) => reader.prices(&mut config, prices)?,
            ("limits" | "simulator" | "hardware" | "prices" | "keys", _) => {
                let problem = format!("`{}` is not a table", key.get_ref());
                return Err(reader.error(key.span().start, &problem, &format!("write [{}] above it", key.get_ref())));
            }
            (name, _) if general.iter().any(|setting| setting.name == name) => {
                reader.setting(&mut config, key, value, &general, "")?;
            }
            (name, _) => {
                let known = general.iter().map(|setting| setting.name).chain(TABLES);
                return Err(reader.unknown(key.span().start, "setting", name, &known.collect::<Vec<_>>()));
            }
        }
    }
    Ok(config)
}

pub(super) struct ConfigReader<'a> {
    text: &'a str,
    file: &'a str,
}

pub(super) type TomlEntry<'a, 'i> = (&'a Spanned<std::borrow::Cow<'i, str>>, &'a Spanned<DeValue<'i>>);

/// Entries of a table in file order, so that the first mistake is reported first.
pub(super) fn in_order<'a, 'i>(table: &'a DeTable<'i>) -> Vec<TomlEntry<'a, 'i>> {
    let mut entries: Vec<TomlEntry<'a, 'i>> = table.iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    entries
}

impl ConfigReader<'_> {
    pub(super) fn error(&self, at: usize, problem: &str, repair: &str) -> ConfigError {
        let line = self.text.get(..at).unwrap_or(self.text).matches('\n').count() + 1;
        // Values are quoted, and may be as long as the file.
        let (problem, repair) = (single_line(problem), single_line(repair));
        ConfigError { file: self.file.into(), line: Some(line), problem, repair }
    }

    pub(super) fn unknown(&self, at: usize, what: &str, word: &str, known: &[&str]) -> ConfigError {
        let word = printable(word);
        let repair = match crate::text::nearest(&word, known.iter().copied()) {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("there are {}", known.join(", ")),
        };
        self.error(at, &format!("there is no {what} `{word}`"), &repair)
    }

    fn settings(
        &self,
        config: &mut Config,
        table: &DeTable<'_>,
        known: &[ConfigSetting],
        prefix: &str,
    ) -> Result<(), ConfigError> {
        for (key, value) in in_order(table) {
            self.setting(config, key, value, known, prefix)?;
        }
        Ok(())
    }

    fn setting(
        &self,
        config: &mut Config,
        key: &Spanned<std::borrow::Cow<'_, str>>,
        value: &Spanned<DeValue<'_>>,
        known: &[ConfigSetting],
        prefix: &str,
    ) -> Result<(), ConfigError> {
        let name = key.get_ref().as_ref();
        let Some(setting) = known.iter().find(|setting| setting.name == name) else {
            let known: Vec<&str> = known.iter().map(|setting| setting.name).collect();
            let what = if prefix == "simulator." { "setting of the simulator" } else { "limit" };
            return Err(self.unknown(key.span().start, what, name, &known));
        };
        (setting.read)(config, value.get_ref()).map_err(|repair| {
            let span = value.span();
            let shown = printable(self.text.get(span.clone()).unwrap_or_default());
            self.error(span.start, &format!("{prefix}{name} cannot be {shown}"), &repair)
        })
    }

    /// Reads the user's own hardware, a table for each.
    fn hardware(&self, config: &mut Config, sheets: &DeTable<'_>) -> Result<(), ConfigError> {
        for (name, value) in in_order(sheets) {
            let at = name.span().start;
            let repair = "a table has peak_16, memory_gib, memory_bandwidth, inner_link and outer_link";
            let refuse = |problem: &str| self.error(at, &format!("hardware.{}: {problem}", name.get_ref()), repair);
            let DeValue::Table(figures) = value.get_ref() else { return Err(refuse("is not a table")) };
            let deserializer = toml::de::ValueDeserializer::from(Spanned::new(0..0, DeValue::Table(figures.clone())));
            let mut sheet =
                HardwareSheet::deserialize(deserializer).map_err(|error| refuse(&printable(error.message())))?;
            sheet.id = name.get_ref().to_string();
            if let Some(problem) = sheet.problem() {
                return Err(refuse(&problem));
            }
            if hardware::sheets().iter().any(|known| known.id == sheet.id) {
                return Err(refuse("is the name of a preset; choose another"));
            }
            config.hardware.push(sheet);
        }
        Ok(())
    }

    /// Reads the prices of devices.
    fn prices(&self, config: &mut Config, prices: &DeTable<'_>) -> Result<(), ConfigError> {
        for (name, value) in in_order(prices) {
            let price = match value.get_ref() {
                DeValue::Float(number) => number.as_str().parse().ok(),
                DeValue::Integer(number) => number.as_str().parse().ok(),
                _ => None,
            };
            let Some(price) = price.filter(|price: &f64| *price > 0.0 && *price < 1e9) else {
                let problem = format!("prices.{} is no price above 0", printable(name.get_ref()));
                return Err(self.error(
                    name.span().start,
                    &problem,
                    "write the price of a device for an hour, such as h100 = 2.49",
                ));
            };
            config.prices.insert(name.get_ref().to_string(), price);
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "screen"))]
mod tests {
    use super::*;
    use crate::tui::Keymap;

    fn error(text: &str) -> (String, String) {
        let error = parse(text, "c.toml").unwrap_err();
        (error.to_string(), error.repair)
    }

    #[test]
    fn every_mistake_names_its_line_and_its_repair() {
        for (text, told, repair) in [
            ("theme = \"dark\"\ntheem = 1", "c.toml:2: there is no setting `theem`", "did you mean `theme`?"),
            ("\nmouse = \"no\"", "c.toml:2: mouse cannot be \"no\"", "write true or false"),
            ("ascii = 3", "c.toml:1: ascii cannot be 3", "\"auto\""),
            ("theme = 5", "c.toml:1: theme cannot be 5", "\"dark\""),
            ("schedule = 5", "c.toml:1: schedule cannot be 5", "\"1f1b\""),
            ("theme = \"drak\"", "c.toml:1: theme cannot be \"drak\"", "high-contrast"),
            ("planner = \"pipper\"", "c.toml:1: planner cannot be", "did you mean `piper`?"),
            ("planner = [1]", "c.toml:1: planner cannot be [1]", "in quotes"),
            ("schedule = \"x\"", "c.toml:1: schedule cannot be", "1f1b"),
            ("deadline = 60", "c.toml:1: deadline cannot be 60", "in quotes"),
            ("deadline = \"1 year\"", "c.toml:1: deadline", "1 year"),
            ("limits = 3", "c.toml:1: `limits` is not a table", "[limits]"),
            ("[limits]\ndevice = 4", "c.toml:2: there is no limit `device`", "did you mean `devices`?"),
            ("[limits]\ndevices = -4", "c.toml:2: limits.devices cannot be -4", "-4"),
            ("[limits]\nmemory = true", "c.toml:2: limits.memory cannot be true", "16GiB"),
            ("[simulator]\noverlap = 3", "c.toml:2: simulator.overlap cannot be 3", "yes or no"),
            (
                "[simulator]\nbucket = 3",
                "c.toml:2: there is no setting of the simulator `bucket`",
                "did you mean `buckets`?",
            ),
            ("[simulator]\nlinks = \"fair\"", "c.toml:2: simulator.links cannot be", "exclusive"),
            ("[keys.everywhere]\nquitt = \"x\"", "c.toml:2: there is no action of [keys.everywhere]", "`quit`"),
            ("[keys.tree]\nquit = \"x\"", "c.toml:2: [keys.tree] has no `quit`", "[keys.everywhere]"),
            ("[keys.everwhere]\nquit = \"x\"", "c.toml:1: there is no scope of keys `everwhere`", "`everywhere`"),
            ("[keys]\neverywhere = 3", "c.toml:2: `keys.everywhere` is not a table", "[keys.everywhere]"),
            ("[keys.everywhere]\nquit = \"qq\"", "c.toml:2: `qq` is not a key", "ctrl-x"),
            ("[keys.everywhere]\nquit = 3", "c.toml:2: keys.everywhere.quit is not a key", "in quotes"),
            ("[keys.everywhere]\nopen = \"ctrl-c\"", "c.toml:2: `ctrl-c` is reserved for `quit`", "another key"),
            (
                "[keys.everywhere]\nquit = \"e\"",
                "c.toml:2: the key `e` is bound to both `quit` and `export` in [keys.everywhere]",
                "export = []",
            ),
            ("theme = ", "c.toml:1: ", "TOML"),
            ("theme = \"dark\"\ntheme = \"light\"", "c.toml:2: ", "TOML"),
        ] {
            let (message, hint) = error(text);
            assert!(message.contains(told) && hint.contains(repair), "{text}\n{message}\n{hint}");
        }
    }

    #[test]
    fn the_first_mistake_is_told_first() {
        assert!(error("[limits]\nzzz = 1\n[keys.tree]\naaa = \"x\"").0.starts_with("c.toml:2:"));
    }

    #[test]
    fn keys_may_change_places() {
        let config = parse("[keys.everywhere]\nexport = \"o\"\nopen = [\"e\", \"ctrl-o\", \"e\"]", "c").unwrap();
        let open = Keymap::find("everywhere", "open").unwrap();
        assert_eq!(config.keymap.all_shown(open), "e Ctrl-O");
    }
}
