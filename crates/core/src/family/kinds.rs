//! Requests for devices of several kinds, such as `16xh100,32xa100-80`.
//!
//! A model to be trained takes any kinds of the hardware; a workload that has kinds takes those that it has costs for.

use super::{
    dial::{Dial, DialError},
    of,
};
use crate::{
    cluster::MOST_DEVICES,
    text::printable,
    units,
    workload::{Workload, mixed::MOST_KINDS},
};

/// Number of devices of a kind.
#[derive(Debug, Clone, PartialEq)]
pub struct KindCount {
    /// Kind: a preset of the hardware, or a kind of the workload.
    pub id: String,
    /// Number of devices, at most.
    pub count: u32,
    /// Price of a device for an hour, if given.
    pub price_per_hour: Option<f64>,
}

impl KindCount {
    /// Reads a request: `16xh100,32xa100-80`, or with prices `16xh100:2.50,32xa100-80:1.20`. `None` if the text is a
    /// number or a list of numbers.
    ///
    /// # Errors
    /// A sentence with the form.
    pub fn parse(text: &str) -> Option<Result<Vec<KindCount>, String>> {
        // A range may have a factor as its step: `8..64:x2`.
        let is_kind = |part: &str| {
            let parts = part.split_once(['x', 'X', '*']).filter(|(count, _)| !count.contains(".."));
            parts.is_some_and(|(_, id)| id.contains(char::is_alphabetic))
        };
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        parts.iter().any(|part| is_kind(part)).then(|| Self::parse_all(&parts))
    }

    /// Refusal of a request by a command that takes a number of devices alone; `None` for a number.
    pub fn misplaced(text: &str) -> Option<String> {
        let told = "names kinds of devices, and this takes one number; `plantui plan` takes kinds";
        Self::parse(text).map(|_| format!("`{}` {told}", printable(text)))
    }

    /// Request as text: `16xh100,32xa100-80`.
    pub fn list(kinds: &[KindCount]) -> String {
        let one = |kind: &KindCount| {
            let price = kind.price_per_hour.map_or_else(String::new, |price| format!(":{price}"));
            format!("{}x{}{price}", kind.count, kind.id)
        };
        kinds.iter().map(one).collect::<Vec<_>>().join(",")
    }

    /// Place of the devices, if the name has one: `east` of `h100@east`.
    pub fn place(&self) -> Option<&str> {
        self.id.split_once('@').map(|(_, place)| place)
    }

    /// Name without the place.
    pub fn hardware(&self) -> &str {
        self.id.split('@').next().unwrap_or_default()
    }

    /// Numbers of devices of a workload's kinds; empty if there is one kind.
    pub fn of(workload: &Workload) -> Vec<KindCount> {
        of(workload).kind_counts()
    }

    /// True if there are kinds, and all that have devices have a price.
    pub fn have_prices(kinds: &[KindCount]) -> bool {
        !kinds.is_empty() && kinds.iter().all(|kind| kind.count == 0 || kind.price_per_hour.is_some())
    }

    /// Number of devices of all kinds together.
    pub fn sum(kinds: &[KindCount]) -> u32 {
        kinds.iter().fold(0, |sum, kind| sum.saturating_add(kind.count))
    }

    /// Kinds that have devices, in words: `16 h100, 32 a100-80`.
    pub fn text(kinds: &[KindCount]) -> String {
        let own = kinds.iter().filter(|kind| kind.count > 0);
        own.map(|kind| format!("{} {}", kind.count, kind.id)).collect::<Vec<_>>().join(", ")
    }

    fn parse_all(parts: &[&str]) -> Result<Vec<KindCount>, String> {
        let mut kinds: Vec<KindCount> = vec![];
        for part in parts {
            let form = || format!("`{}` is no number of devices of a kind; write 16xh100,32xa100-80", printable(part));
            let (count, id) = part.split_once(['x', 'X', '*']).ok_or_else(form)?;
            let (id, price) = id.split_once(':').map_or((id, None), |(id, price)| (id, Some(price)));
            let price_per_hour = price.map(|price| {
                let form =
                    || format!("`{}` is no price of a device for an hour: write {count}x{id}:2.50", printable(price));
                price.trim().parse().ok().filter(price_is_possible).ok_or_else(form)
            });
            kinds.push(KindCount {
                id: id.trim().to_ascii_lowercase(),
                count: units::parse_count(count.trim()).map_err(|_| form())?,
                price_per_hour: price_per_hour.transpose()?,
            });
        }
        Self::checked(kinds)
    }

    /// True if a kind can have this name: letters, digits, `-`, `_` and `.`, and a place after `@`.
    pub fn is_name(id: &str) -> bool {
        let (kind, place) = id.split_once('@').map_or((id, "here"), |(kind, place)| (kind, place));
        let is_word = |word: &str| {
            !word.is_empty() && word.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
        };
        is_word(kind) && is_word(place) && kind.contains(char::is_alphabetic)
    }

    /// Kinds with possible numbers and prices, each named once.
    ///
    /// # Errors
    /// A sentence for the first that is not.
    pub fn checked(kinds: Vec<KindCount>) -> Result<Vec<KindCount>, String> {
        if kinds.len() > MOST_KINDS {
            return Err(format!("names {} kinds of devices; at most {MOST_KINDS} are planned", kinds.len()));
        }
        for (index, kind) in kinds.iter().enumerate() {
            let id = printable(&kind.id);
            if !Self::is_name(&kind.id) {
                return Err(format!(
                    "names the kind `{id}`: a name has letters, digits, `-`, `_`, `.`, and a place after `@`"
                ));
            }
            if !(1..=MOST_DEVICES).contains(&kind.count) {
                return Err(format!("names {} devices of {id}; give 1 to {MOST_DEVICES}", kind.count));
            }
            if !kind.price_per_hour.as_ref().is_none_or(price_is_possible) {
                return Err(format!("names an impossible price of {id}"));
            }
            if kinds[..index].iter().any(|own| own.id.eq_ignore_ascii_case(&kind.id)) {
                return Err(format!("names {id} twice; add both numbers"));
            }
        }
        Ok(kinds)
    }
}

fn price_is_possible(price: &f64) -> bool {
    *price > 0.0 && *price < 1e9
}

/// Workload on these kinds of devices.
///
/// # Errors
/// [`DialError`] if the workload has costs of one kind alone, or lacks one of these.
pub fn over(workload: &Workload, kinds: &[KindCount]) -> Result<Workload, DialError> {
    of(workload).on_kinds(workload, kinds)
}

/// Names of the dials, one for each kind.
const IDS: [&str; MOST_KINDS] = ["kind-1", "kind-2", "kind-3", "kind-4"];

/// Dials of the numbers of devices by kind. A step is a machine, or four; `machines` has their devices.
pub(super) fn dials(kinds: &[KindCount], machines: impl Iterator<Item = u32>) -> Vec<Dial> {
    let of_kind = |(id, (kind, machine)): (&'static str, (&KindCount, u32))| {
        let step = |count: u32| {
            let step = machine.max(1).saturating_mul(count);
            [kind.count.saturating_sub(step), kind.count.saturating_add(step).min(MOST_DEVICES)].map(|n| n.to_string())
        };
        Dial {
            id,
            label: kind.id.clone().into(),
            help: "devices of this kind, at most",
            value: kind.count.to_string(),
            steps: [step(1), step(4)],
        }
    };
    IDS.into_iter().zip(kinds.iter().zip(machines)).map(of_kind).collect()
}

/// Kinds after a dial was set. `None` if the dial is not of a kind.
///
/// # Errors
/// [`DialError`] with the allowed values.
pub(super) fn turned(mut kinds: Vec<KindCount>, id: &str, value: &str) -> Option<Result<Vec<KindCount>, DialError>> {
    let kind = IDS.iter().position(|own| *own == id).filter(|&kind| kind < kinds.len())?;
    let count = match value.trim() {
        "0" => Ok(0),
        value => units::parse_count(value).map_err(|error| DialError(error.to_string())),
    };
    Some(count.and_then(|count| {
        if count > MOST_DEVICES {
            return Err(DialError(format!("{count} devices are more than {MOST_DEVICES}")));
        }
        kinds[kind].count = count;
        match KindCount::sum(&kinds) {
            0 => Err(DialError("one device at least must be left".into())),
            _ => Ok(kinds),
        }
    }))
}
