//! Split of an operator into pieces, one per device.

use std::{fmt, str::FromStr};

use super::{Operator, OperatorError};

/// Text of a split that divides no dimension.
pub const WHOLE: &str = "whole";

/// Number of pieces per dimension, with the text form `b=4 n=8`. A dimension without a name in it is not split.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct DimensionSplit(Vec<(String, u32)>);

impl FromStr for DimensionSplit {
    type Err = OperatorError;

    /// Reads degrees by dimension, or [`WHOLE`]. The operator validates the names of dimensions
    /// ([`Operator::degrees`]).
    fn from_str(text: &str) -> Result<Self, OperatorError> {
        let mut parts: Vec<(String, u32)> = vec![];
        if text.trim() == WHOLE {
            return Ok(DimensionSplit(parts));
        }
        for part in text.split_whitespace() {
            let (name, degree) =
                part.split_once('=').ok_or_else(|| OperatorError(format!("has `{part}`, which is no name=degree")))?;
            if parts.iter().any(|(known, _)| known == name) {
                return Err(OperatorError(format!("names `{name}` twice")));
            }
            let degree = degree.parse().ok().filter(|&degree| degree > 0);
            let wrong = || OperatorError(format!("has `{part}`, whose degree is no whole number from 1 on"));
            parts.push((name.to_string(), degree.ok_or_else(wrong)?));
        }
        if parts.is_empty() {
            Err(OperatorError(format!("is empty; write `{WHOLE}` for no split")))
        } else {
            Ok(DimensionSplit(parts))
        }
    }
}

impl fmt::Display for DimensionSplit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts: Vec<String> = self.0.iter().map(|(name, degree)| format!("{name}={degree}")).collect();
        f.pad(if parts.is_empty() { WHOLE.into() } else { parts.join(" ") }.as_str())
    }
}

impl Operator {
    /// Split with these degrees by dimension.
    pub fn split(&self, degrees: &[u32]) -> DimensionSplit {
        let cut = self.dims.iter().zip(degrees).filter(|(_, degree)| **degree != 1);
        DimensionSplit(cut.map(|(dim, &degree)| (dim.name.clone(), degree)).collect())
    }

    /// Degree of each dimension under a split.
    ///
    /// # Errors
    /// [`OperatorError`], as the end of a sentence whose subject is the split.
    pub fn degrees(&self, split: &DimensionSplit) -> Result<Vec<u32>, OperatorError> {
        let mut degrees = vec![1; self.dims.len()];
        for (name, degree) in &split.0 {
            let Some(dim) = self.dims.iter().position(|dim| dim.name == *name) else {
                let known = self.dims.iter().map(|dim| dim.name.as_str()).collect::<Vec<_>>().join(", ");
                return Err(OperatorError(format!("names `{name}`; the dimensions are {known}")));
            };
            degrees[dim] = *degree;
        }
        Ok(degrees)
    }
}
