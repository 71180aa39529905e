//! Requests for devices of several kinds, such as `16xh100,32xa100-80`.
//!
//! A model to be trained takes any kinds of the hardware; a workload that has kinds takes those that it has costs for.

use super::{dial::DialError, of};
use crate::{
    cluster::MOST_DEVICES,
    text::printable,
    units,
    workload::{
        Workload,
        mixed::{DeviceKind, MOST_KINDS, MixedProfile},
    },
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
    /// Reads a request: `16xh100,32xa100-80`, or with prices `16xh100:2.50,32xa100-80:1.20`. `None` if the text is a number or a list of numbers.
    ///
    /// # Errors
    /// A sentence with the form.
    pub fn parse(text: &str) -> Option<Result<Vec<KindCount>, String>> {
        let is_kind =
            |part: &str| part.split_once(['x', 'X', '*']).is_some_and(|(_, id)| id.contains(char::is_alphabetic));
        let parts: Vec<&str> = text.split(',').map(str::trim).collect();
        parts.iter().any(|part| is_kind(part)).then(|| Self::parse_all(&parts))
    }

    /// Request as text: `16xh100,32xa100-80`.
    pub fn list(kinds: &[KindCount]) -> String {
        let one = |kind: &KindCount| {
            let price = kind.price_per_hour.map_or_else(String::new, |price| format!(":{price}"));
            format!("{}x{}{price}", kind.count, kind.id)
        };
        kinds.iter().map(one).collect::<Vec<_>>().join(",")
    }

    /// Numbers of devices of a workload's kinds.
    pub fn of(profile: &MixedProfile) -> Vec<KindCount> {
        let own = |kind: &DeviceKind| KindCount {
            id: kind.id.clone(),
            count: kind.count,
            price_per_hour: kind.price_per_hour,
        };
        profile.kinds.iter().map(own).collect()
    }

    fn parse_all(parts: &[&str]) -> Result<Vec<KindCount>, String> {
        let mut kinds: Vec<KindCount> = vec![];
        for part in parts {
            let form = || format!("`{}` is no number of devices of a kind; write 16xh100,32xa100-80", printable(part));
            let (count, id) = part.split_once(['x', 'X', '*']).ok_or_else(form)?;
            let (id, price) = id.split_once(':').map_or((id, None), |(id, price)| (id, Some(price)));
            let price_per_hour =
                price.map(|price| price.trim().parse().ok().filter(price_is_possible).ok_or_else(form));
            kinds.push(KindCount {
                id: id.trim().to_ascii_lowercase(),
                count: units::parse_count(count.trim()).map_err(|_| form())?,
                price_per_hour: price_per_hour.transpose()?,
            });
        }
        Self::checked(kinds)
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
