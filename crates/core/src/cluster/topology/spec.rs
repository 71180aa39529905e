//! Text form of a topology: `dgx-1`, `8xmine.txt+ib-ndr`, `box.txt,pcie=gen4`.
//!
//! `[N x] NAME or FILE [+NETWORK] [,nvlink=RATE] [,pcie=RATE]`: machines of a preset or a file, and the network between
//! them. The rates are the assumed bandwidths of links in a table without bandwidths.

use std::fmt;

use crate::units;

/// Assumed bandwidths of links whose bandwidth a text does not state, bytes per second and direction.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AssumedBandwidths {
    /// Bandwidth of one NVLink.
    pub nvlink: Option<f64>,
    /// Bandwidth of a device's PCIe link.
    pub pcie: Option<f64>,
    /// Bandwidth of a NIC.
    pub nic: Option<f64>,
}

/// Bandwidths of x16 PCIe slots per direction, by generation, as in NCCL's model.
const GENERATIONS: [(&str, f64); 3] = [("gen3", 12e9), ("gen4", 24e9), ("gen5", 48e9)];

/// Reads the value of `--pcie`: a generation, or a rate in GB/s.
///
/// # Errors
/// One sentence.
pub fn pcie(text: &str) -> Result<f64, String> {
    let lower = text.trim().to_ascii_lowercase();
    if let Some((_, rate)) = GENERATIONS.iter().find(|(id, _)| *id == lower) {
        return Ok(*rate);
    }
    gigabytes(text).map_err(|_| {
        format!("`{}` is neither gen3, gen4, gen5 nor a rate in GB/s such as 25", crate::text::printable(text))
    })
}

/// Reads a rate. A bare number is in GB/s.
///
/// # Errors
/// One sentence.
pub fn gigabytes(text: &str) -> Result<f64, String> {
    let rate = match text.trim().parse::<f64>() {
        Ok(number) => Ok(number * 1e9),
        Err(_) => units::parse_bandwidth(text).map_err(|error| error.to_string()),
    }?;
    if (1e3..=1e15).contains(&rate) {
        return Ok(rate);
    }
    Err(format!("`{}` is not the rate of a link in GB/s", crate::text::printable(text)))
}

impl AssumedBandwidths {
    /// These assumptions, completed by `others`.
    #[must_use]
    pub fn or(self, others: AssumedBandwidths) -> AssumedBandwidths {
        AssumedBandwidths {
            nvlink: self.nvlink.or(others.nvlink),
            pcie: self.pcie.or(others.pcie),
            nic: self.nic.or(others.nic),
        }
    }

    fn set(&mut self, text: &str) -> Option<()> {
        let (key, value) = text.split_once('=')?;
        match key {
            "nvlink" => self.nvlink = Some(gigabytes(value).ok()?),
            "pcie" => self.pcie = Some(pcie(value).ok()?),
            "nic" => self.nic = Some(gigabytes(value).ok()?),
            _ => return None,
        }
        Some(())
    }
}

/// Topology as the user wrote it.
#[derive(Debug, Clone, PartialEq)]
pub struct Spec {
    /// Number of machines, if stated.
    pub machines: Option<String>,
    /// Preset, or file of a machine.
    pub base: String,
    /// Network between machines, if named.
    pub network: Option<String>,
    /// Assumed bandwidths of links whose bandwidth the file does not state.
    pub assumed: AssumedBandwidths,
}

impl Spec {
    /// Parses a text. A part for which `is_file` is true is a file, even if its name has special characters.
    pub fn parse(text: &str, is_file: &dyn Fn(&str) -> bool) -> Self {
        let mut rest = text.trim();
        let mut assumed = AssumedBandwidths::default();
        while !is_file(rest)
            && let Some((before, setting)) = rest.rsplit_once(',')
            && assumed.set(setting).is_some()
        {
            rest = before;
        }
        let mut spec = Spec { machines: None, base: rest.into(), network: None, assumed };
        if is_file(rest) {
            return spec;
        }
        let (counted, network) = match rest.rsplit_once('+') {
            Some((before, network)) => (before, Some(network.to_string())),
            None => (rest, None),
        };
        let digits = counted.len() - counted.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let copies = counted[digits..].strip_prefix(['x', 'X']).filter(|_| digits > 0 && !is_file(counted));
        spec.network = network;
        match copies {
            Some(base) => (spec.machines, spec.base) = (Some(counted[..digits].into()), base.into()),
            None => spec.base = counted.into(),
        }
        spec
    }
}

impl fmt::Display for Spec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(machines) = &self.machines {
            write!(f, "{machines}x")?;
        }
        f.write_str(&self.base)?;
        if let Some(network) = &self.network {
            write!(f, "+{network}")?;
        }
        let AssumedBandwidths { nvlink, pcie, nic } = self.assumed;
        for (key, value) in [("nvlink", nvlink), ("pcie", pcie), ("nic", nic)] {
            if let Some(value) = value {
                write!(f, ",{key}={}", value / 1e9)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_has_its_parts_and_reads_back() {
        let file = |text: &str| matches!(text, "mine.txt" | "2x+odd,name.txt");
        for (text, machines, base, network) in [
            ("dgx-1", None, "dgx-1", None),
            ("4xdgx-h100", Some("4"), "dgx-h100", None),
            ("8xmine.txt+ib-ndr", Some("8"), "mine.txt", Some("ib-ndr")),
            ("mine.txt", None, "mine.txt", None),
            ("2x+odd,name.txt", None, "2x+odd,name.txt", None),
            ("mine.txt+eth-10g,pcie=24,nic=50", None, "mine.txt", Some("eth-10g")),
        ] {
            let spec = Spec::parse(text, &file);
            assert_eq!((spec.machines.as_deref(), &*spec.base, spec.network.as_deref()), (machines, base, network));
            assert_eq!(spec.to_string(), text);
        }
        let spec = Spec::parse("mine.txt,nvlink=14.0625GB/s,pcie=gen5", &file);
        assert_eq!((spec.assumed.nvlink, spec.assumed.pcie), (Some(14.0625e9), Some(48e9)));
    }

    #[test]
    fn rates() {
        assert_eq!((pcie("gen4"), pcie("31.5"), pcie("Gen5")), (Ok(24e9), Ok(31.5e9), Ok(48e9)));
        assert_eq!(gigabytes("400Gb/s"), Ok(50e9));
        for wrong in ["gen9", "-1", "0", "fast", "nan"] {
            assert!(pcie(wrong).is_err(), "{wrong}");
        }
    }
}
