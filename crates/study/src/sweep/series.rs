//! Line of a sweep: a planner with its options.

use std::fmt;

use plantui_core::{
    cluster::GivenLimits,
    source::error::{printable, single_line},
};
use plantui_planners::{self as planner, OptionError, Options, Planner};

/// Planner with its options and label.
#[derive(Clone)]
pub struct Series {
    /// Label in tables and legends, safe for a terminal. Series with the same label form one line of the chart: they
    /// differ in workload, or in the option along the chart.
    pub label: String,
    /// Planner of the series.
    pub planner: &'static dyn Planner,
    /// Options of the planner.
    pub options: Options,
    /// Topology of its plans and the limits it implies, used where nothing else states them.
    pub wiring: Option<GivenLimits>,
}

impl fmt::Debug for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Series").field("label", &self.label).field("planner", &self.planner.info().id).finish()
    }
}

impl Series {
    /// Series of a planner with these options, labelled by the planner and its non-default options.
    pub fn new(planner: &'static dyn Planner, options: Options) -> Self {
        Series { label: label(planner, &options), planner, options, wiring: None }
    }

    /// Reads `[LABEL:]PLANNER[,NAME=VALUE ..]`; `common` are further settings `NAME=VALUE`, which those of the series
    /// override.
    ///
    /// # Errors
    /// Sentence on the part that is not a planner or not a setting.
    pub fn parse(text: &str, common: &[String]) -> Result<Self, SeriesError> {
        let head = text.split(',').next().unwrap_or_default();
        let (name, rest) = match head.find(':') {
            Some(at) => (Some(text[..at].trim()), &text[at + 1..]),
            None => (None, text),
        };
        let mut words = rest.split(',').map(str::trim);
        let id = words.next().unwrap_or_default();
        let planner = planner::find(id).ok_or_else(|| SeriesError::NoPlanner(printable(id)))?;
        let declared = |name: &str| planner.options().iter().any(|spec| spec.name == name);
        let common =
            common.iter().filter(|setting| setting.split_once('=').is_some_and(|(name, _)| declared(name.trim())));
        let settings = common.map(String::as_str).chain(words);
        let options = Options::parse(id, planner.options(), settings)?;
        let mut series = Series::new(planner, options);
        if let Some(name) = name.map(printable).filter(|name| !name.is_empty()) {
            series.label = name;
        }
        Ok(series)
    }

    /// Options that are not at their defaults, as `name=value`, separated by blanks.
    pub fn settings(&self) -> String {
        settings(self.planner, &self.options)
    }
}

fn settings(planner: &dyn Planner, options: &Options) -> String {
    let defaults = Options::defaults(planner.options());
    let changed = options.iter().filter(|(name, value)| defaults.get(name).as_ref() != Some(*value));
    changed.map(|(name, value)| format!("{name}={}", value.text())).collect::<Vec<_>>().join(" ")
}

fn label(planner: &dyn Planner, options: &Options) -> String {
    let settings = settings(planner, options);
    let id = planner.info().id;
    if settings.is_empty() { id.into() } else { single_line(&format!("{id} {settings}")) }
}

/// Reason why a text is not a series.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SeriesError {
    /// No planner has this id.
    #[error("there is no planner `{0}`")]
    NoPlanner(String),
    /// The planner does not accept one of the settings.
    #[error(transparent)]
    Option(#[from] OptionError),
}
