//! Contents of the palette, and its commands.

use crate::{
    cluster::{LimitKind, hardware},
    export::formats,
    family::dial,
    planner::OptionSpec,
    study::explain::limits_of,
    tui::{
        action::{Action, TABLE},
        effect::Effects,
        layout_bar::Axis,
        model::{Model, Tone},
        palette::{Assigned, Assignment, Command},
        theme,
        widget::filter::Filter,
    },
    units,
};

impl Model {
    /// Commands that match, best first.
    pub(in crate::tui) fn palette(&self, filter: &Filter) -> Vec<Command> {
        // The palette is open already.
        let entries = (0..TABLE.len()).filter(|&i| TABLE[i].action != Action::Palette).map(Command::Entry);
        let exports = formats::of(&self.session.workload).map(Command::Export);
        let mut all: Vec<Command> = entries.chain(exports).collect();
        let scopes = self.scopes();
        all.sort_by_key(|command| command.rank(&scopes));
        let texts: Vec<String> = all.iter().map(|command| command.text(&self.appearance.keymap)).collect();
        let set = self.assignment(filter.input.value()).map(|own| Command::Set(Box::new(own)));
        set.into_iter().chain(filter.matches(&texts).into_iter().map(|at| all[at].clone())).collect()
    }

    /// Meaning of a typed name and value: `devices 128`, `tp=8`, `hardware b200`, `theme light`. `None` unless the first
    /// word is a name.
    fn assignment(&self, text: &str) -> Option<Assignment> {
        let (name, value) = text.trim().split_once([' ', '=']).unwrap_or((text.trim(), ""));
        let (name, value) = (name.to_lowercase(), value.trim());
        if value.is_empty() {
            // Without a value these names would find another action; their errors tell what is missing.
            let alone = ["tokens", "price", "within"].contains(&name.as_str());
            if !(alone && self.session.workload.training().is_some()) {
                return None;
            }
        }
        let told = |label: &str, now: String, what: Result<Assigned, String>| {
            let help = match &what {
                Ok(_) => format!("now {now}"),
                Err(problem) => format!("✗ {problem}"),
            };
            Some(Assignment { title: format!("{label} {value}"), help, what })
        };
        let limits = limits_of(self.session.current_planner(), &self.session.workload);
        let named = |kind: &&LimitKind| kind.label() == name || kind.flag().trim_start_matches('-') == name;
        if let Some(&kind) = limits.iter().find(named) {
            let what = self.read_limit(kind, value).map(|value| Assigned::Limit(kind, value));
            return told(kind.label(), kind.format(self.session.limits.get(kind)), what);
        }
        if let Some(dial) = self.session.dials.iter().find(|dial| dial.id == name || dial.label == name) {
            let what = dial::turned(&self.session.workload, dial.id, value);
            let what = what.map(|own| Assigned::Workload(Box::new(own))).map_err(|error| error.to_string());
            return told(&dial.label, dial.value.clone(), what);
        }
        let axis = Axis::ALL
            .into_iter()
            .find(|axis| axis.label().to_lowercase() == name || (*axis == Axis::Virtual && name == "vp"));
        let of = |spec: &&OptionSpec| match axis {
            Some(axis) => spec.name == axis.option(),
            None => spec.name == name || spec.label == name,
        };
        if let Some(spec) = self.heeded().into_iter().find(|spec| of(spec)) {
            let what = spec.parse(value).map(|value| Assigned::Option(spec, value)).map_err(|error| error.to_string());
            return told(axis.map_or(spec.label, Axis::name), spec.show(&self.session.option_value(spec)), what);
        }
        match name.as_str() {
            "planner" => {
                let known = |i: &usize| {
                    let info = self.session.planners[*i].info();
                    info.id == value || info.name.eq_ignore_ascii_case(value)
                };
                let found = (0..self.session.planners.len()).find(known);
                let what = match found {
                    Some(i) => match &self.session.refusals[i] {
                        Some(reason) => Err(reason.clone()),
                        None => Ok(Assigned::Planner(i)),
                    },
                    None => Err(format!("there is no planner `{value}`")),
                };
                told("planner", self.session.current_planner().info().name.into(), what)
            }
            "tokens" if self.session.workload.training().is_some() => {
                let what = units::parse_tokens(value).map(Assigned::Tokens);
                told("tokens", units::count_short(self.views.hardware.tokens), what)
            }
            "within" if self.session.workload.training().is_some() => {
                let days =
                    value.trim_end_matches([' ', 'd']).parse::<f64>().ok().filter(|own| *own > 0.0 && own.is_finite());
                let what = days.map(Assigned::Within).ok_or_else(|| "a number of days, such as 90".into());
                let now = self.views.hardware.within.map_or("any time".into(), |days| format!("{days} days"));
                told("finish within days:", now, what)
            }
            "price" if self.session.workload.training().is_some() => {
                // A price alone is that of the hardware in force.
                let (id, value) = match value.split_once(' ') {
                    Some((id, value)) => (id.to_string(), value.trim()),
                    None => (self.hardware().unwrap_or_default(), value),
                };
                let known = hardware::find(&id).is_some() || self.hardware().as_ref() == Some(&id);
                let price =
                    value.trim_start_matches('$').parse::<f64>().ok().filter(|own| *own > 0.0 && own.is_finite());
                let what = price.filter(|_| known).map(|price| Assigned::Price(id.clone(), price));
                let what = what.ok_or_else(|| "a price of a device for an hour, such as 2.40 or b200 4.50".into());
                let now = self.session.prices.get(&id).map_or("none".into(), |price| units::money(*price));
                told(&format!("price of a {id} an hour"), now, what)
            }
            "theme" => {
                let names = theme::names(self.appearance.theme_directory.as_deref());
                let found = names.iter().find(|own| own.as_str() == value).cloned();
                let what = found.map(Assigned::Theme);
                let what = what.ok_or_else(|| format!("there is no such theme; there are {}", names.join(", ")));
                told("theme", self.appearance.theme.name.clone(), what)
            }
            _ => None,
        }
    }

    fn assign(&mut self, own: Assignment) -> Effects {
        match own.what {
            Ok(Assigned::Limit(kind, value)) => self.set_limits(self.session.limits.with(kind, value)),
            Ok(Assigned::Workload(workload)) => self.take_turned(*workload),
            Ok(Assigned::Option(spec, value)) => self.set_option(spec, value),
            Ok(Assigned::Planner(planner)) => self.choose(planner),
            Ok(Assigned::Tokens(tokens)) => {
                self.views.hardware.tokens = tokens;
                vec![]
            }
            Ok(Assigned::Within(days)) => {
                self.views.hardware.within = Some(days);
                vec![]
            }
            Ok(Assigned::Price(id, price)) => {
                self.session.prices.insert(id, price);
                vec![]
            }
            Ok(Assigned::Theme(name)) => {
                self.load_theme(&name);
                vec![]
            }
            Err(problem) => {
                self.message = Some((Tone::Refused, problem));
                vec![]
            }
        }
    }

    /// Runs a command.
    pub(in crate::tui) fn command(&mut self, command: Command) -> Effects {
        match command {
            Command::Set(own) => self.assign(*own),
            Command::Entry(i) => self.run_entry(i),
            Command::Export(format) => self.open_export(Some(format)),
        }
    }
}
