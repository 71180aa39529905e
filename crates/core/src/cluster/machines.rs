//! Machines: boxes whose devices share a fast link.

use std::{fmt, sync::Arc};

use crate::units::UnitError;

/// Maximum number of machines in a cluster.
pub const MOST_MACHINES: usize = 256;

/// Number of devices of each machine, in order. Devices are numbered from 0 through all machines. Empty if the machines
/// are not known. A clone shares the list.
#[derive(Clone)]
pub struct Machines(MachineSizes);

#[derive(Clone)]
enum MachineSizes {
    Fixed(&'static [u16]),
    Shared(Arc<[u16]>),
}

impl Default for Machines {
    fn default() -> Self {
        Machines::NONE
    }
}

impl PartialEq for Machines {
    fn eq(&self, other: &Self) -> bool {
        self.sizes() == other.sizes()
    }
}

impl Eq for Machines {}

impl fmt::Debug for Machines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Machines({self})")
    }
}

impl Machines {
    /// Unknown machines.
    pub const NONE: Machines = Machines::fixed(&[]);

    /// Machines that are known at compile time: not too many, and none of them empty.
    pub(crate) const fn fixed(sizes: &'static [u16]) -> Self {
        Machines(MachineSizes::Fixed(sizes))
    }

    /// Machines of the given sizes. `None` if there are too many, or one is empty.
    pub fn new(sizes: &[u16]) -> Option<Self> {
        (sizes.len() <= MOST_MACHINES && !sizes.contains(&0)).then(|| Machines(MachineSizes::Shared(sizes.into())))
    }

    /// `count` machines of one size.
    ///
    /// # Panics
    /// If there are too many of them.
    pub fn even(count: usize, size: u16) -> Self {
        Machines::new(&vec![size; count]).expect("as many machines as can be planned, none of them empty")
    }

    /// Default machine: eight devices, as in most machines.
    pub fn of_eight() -> Self {
        Machines::fixed(&[8])
    }

    /// One machine with all devices.
    pub fn one(devices: u32) -> Self {
        Machines::new(&[u16::try_from(devices).unwrap_or(u16::MAX)]).unwrap_or_default()
    }

    /// Number of devices of each machine.
    #[inline]
    pub fn sizes(&self) -> &[u16] {
        match &self.0 {
            MachineSizes::Fixed(sizes) => sizes,
            MachineSizes::Shared(sizes) => sizes,
        }
    }

    /// Number of devices of a machine if only whole machines start: the greatest common divisor of all sizes. Eight, as
    /// in most machines, if machines are not known.
    pub fn whole(&self) -> u32 {
        let divisor = |a: u32, b: u32| {
            let (mut a, mut b) = (a, b);
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        match self.sizes().iter().fold(0, |sum, &size| divisor(sum, size.into())) {
            0 => 8,
            size => size,
        }
    }

    /// True if the machines are not known.
    pub fn is_empty(&self) -> bool {
        self.sizes().is_empty()
    }

    /// Total number of devices.
    pub fn devices(&self) -> u32 {
        self.sizes().iter().map(|&size| u32::from(size)).sum()
    }

    /// Machine of a device. `None` if no machine has the device.
    #[inline]
    pub fn machine_of(&self, device: u32) -> Option<usize> {
        let mut end = 0;
        self.sizes().iter().position(|&size| {
            end += u32::from(size);
            device < end
        })
    }

    /// First device of a machine.
    pub fn first_of(&self, machine: usize) -> u32 {
        self.sizes()[..machine].iter().map(|&size| u32::from(size)).sum()
    }

    /// Machines of the same kind with another number of devices: as many of the largest size as fit, and the rest in
    /// one more. If that needs too many machines, the last one takes the rest.
    #[must_use]
    pub fn with_devices(&self, devices: u32) -> Self {
        let size = u32::from(self.sizes().iter().copied().max().unwrap_or(u16::MAX));
        if self.is_empty() || devices == 0 {
            return Machines::one(devices.max(1));
        }
        let mut sizes = vec![];
        let mut left = devices;
        while left > 0 {
            let last = sizes.len() + 1 == MOST_MACHINES;
            let next = if last { left } else { left.min(size) };
            sizes.push(u16::try_from(next).unwrap_or(u16::MAX));
            left -= next;
        }
        Machines::new(&sizes).unwrap_or_else(|| self.clone())
    }

    /// Reads `8,8`, `2x8`, or the published form `[8,16]`, which numbers devices up to the end of each machine.
    ///
    /// # Errors
    /// [`UnitError`] with an example.
    pub fn parse(text: &str) -> Result<Self, UnitError> {
        const FORM: &str = "not a list of machines: write the devices of each, such as 8,8 or 2x8, or running totals \
            [8,16]";
        let refuse = |why| UnitError::new(text, why);
        let inner = text.trim();
        let (list, counted_through) = match inner.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(list) => (list, true),
            None => (inner, false),
        };
        let number = |word: &str| word.trim().parse::<u32>().map_err(|_| refuse(FORM));
        let mut sizes: Vec<u32> = vec![];
        for word in list.split(',') {
            match word.split_once(['x', '*']) {
                Some((times, size)) if !counted_through => {
                    let (times, size) = (number(times)?, number(size)?);
                    if times as usize > MOST_MACHINES {
                        return Err(refuse("too many machines: at most 256"));
                    }
                    sizes.extend(std::iter::repeat_n(size, times as usize));
                }
                _ => {
                    let value = number(word)?;
                    let before: u32 =
                        if counted_through { sizes.iter().fold(0, |a, &b| a.saturating_add(b)) } else { 0 };
                    let Some(size) = value.checked_sub(before) else {
                        return Err(refuse("not running totals: every number must be larger than the one before"));
                    };
                    sizes.push(size);
                }
            }
        }
        if sizes.is_empty() || sizes.contains(&0) {
            return Err(refuse("a machine without devices: give each at least one"));
        }
        if sizes.iter().fold(0u32, |a, &b| a.saturating_add(b)) > super::MOST_LISTED_DEVICES {
            return Err(refuse("too many devices: at most 10000"));
        }
        let sizes: Vec<u16> = sizes.into_iter().map(|size| size as u16).collect();
        Machines::new(&sizes).ok_or_else(|| refuse("too many machines: at most 256"))
    }
}

impl serde::Serialize for Machines {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.sizes().serialize(serializer)
    }
}

impl<'de> serde::Deserialize<'de> for Machines {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let sizes = Vec::<u16>::deserialize(deserializer)?;
        let known = Machines::new(&sizes).filter(|machines| machines.devices() <= super::MOST_LISTED_DEVICES);
        known.ok_or_else(|| {
            serde::de::Error::custom("must list the devices of at most 256 machines, none of them empty")
        })
    }
}

impl fmt::Display for Machines {
    /// Writes the form that `--machines` reads: `2x8`, `8,4`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sizes = self.sizes();
        let mut at = 0;
        while at < sizes.len() {
            let run = sizes[at..].iter().take_while(|&&size| size == sizes[at]).count();
            let comma = if at > 0 { "," } else { "" };
            match run {
                1 => write!(f, "{comma}{}", sizes[at])?,
                _ => write!(f, "{comma}{run}x{}", sizes[at])?,
            }
            at += run;
        }
        Ok(())
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for Machines {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Machines".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Devices of each machine.",
            "type": "array", "minItems": 1, "maxItems": 256, "items": {"type": "integer", "minimum": 1},
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_to_write_machines() {
        for (text, sizes) in [
            ("8,8", vec![8, 8]),
            ("2x8", vec![8, 8]),
            ("[8,16]", vec![8, 8]),
            ("[8, 12]", vec![8, 4]),
            ("3x1,4", vec![1, 1, 1, 4]),
            (" 16 ", vec![16]),
        ] {
            let machines = Machines::parse(text).unwrap();
            assert_eq!(machines.sizes(), sizes, "{text}");
            assert_eq!(Machines::parse(&machines.to_string()), Ok(machines));
        }
        for bad in ["", "8,", "0", "x", "[8,8]", "[8,4]", "257x1", "9999,9999", "-1", "99999999999", "1x99999999"] {
            assert!(Machines::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn devices_are_counted_through_the_machines() {
        let machines = Machines::new(&[8, 4]).unwrap();
        assert_eq!((machines.devices(), machines.first_of(1)), (12, 8));
        assert_eq!([0, 7, 8, 11, 12].map(|d| machines.machine_of(d)), [Some(0), Some(0), Some(1), Some(1), None]);
        assert_eq!(machines.with_devices(20).sizes(), [8, 8, 4]);
        assert_eq!(machines.with_devices(3).sizes(), [3]);
        assert_eq!(Machines::new(&[1]).unwrap().with_devices(1000).devices(), 1000);
        assert_eq!(Machines::of_eight().with_devices(1024).sizes(), [8; 128]);
    }
}
