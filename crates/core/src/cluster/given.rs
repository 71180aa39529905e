//! Limits by kind from one source: a file, flags, a topology, a session or a plan. The workload's family, which defines
//! the limits that it needs, combines them.

use std::{borrow::Cow, fmt};

use serde::{
    Deserialize, Deserializer, Serialize, Serializer,
    de::{Error, IgnoredAny, MapAccess, Visitor},
    ser::SerializeMap,
};

use super::{limit_kind::LimitKind, limits::Limits, machines::Machines, topology::PlanTopology};

/// Limits from one source. A limit that is absent is left to other sources.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GivenLimits {
    /// Values by kind, in base units. Infinite if stated as unlimited.
    values: [Option<f64>; LimitKind::COUNT],
    /// Machines of the devices; also gives the number of devices.
    pub machines: Option<Machines>,
    /// Topology of the devices; no file of limits states it.
    pub topology: Option<PlanTopology>,
}

impl GivenLimits {
    /// Kinds of limits that are given.
    pub fn given(&self) -> impl Iterator<Item = LimitKind> {
        LimitKind::ALL.into_iter().filter(|kind| self.get(*kind).is_some())
    }

    /// Value of a limit in its base unit, if given.
    pub fn get(&self, kind: LimitKind) -> Option<f64> {
        self.values[kind as usize]
    }

    /// Sets the value of a limit in its base unit, or removes it.
    pub fn set(&mut self, kind: LimitKind, value: Option<impl Into<f64>>) {
        let value = value.map(Into::into);
        self.values[kind as usize] = if kind.is_count() { value.map(f64::trunc) } else { value };
    }

    /// Same limits with a value for one kind.
    #[must_use]
    pub fn with(self, kind: LimitKind, value: impl Into<f64>) -> Self {
        self.maybe(kind, Some(value))
    }

    /// Same limits with a value for one kind, or without one.
    #[must_use]
    pub fn maybe(mut self, kind: LimitKind, value: Option<impl Into<f64>>) -> Self {
        self.set(kind, value);
        self
    }

    /// Same limits on these machines.
    #[must_use]
    pub fn on(mut self, machines: Option<Machines>) -> Self {
        self.machines = machines;
        self
    }

    /// Same limits on a topology.
    #[must_use]
    pub fn wired(mut self, topology: Option<PlanTopology>) -> Self {
        self.topology = topology;
        self
    }

    /// These limits, completed by `others`.
    #[must_use]
    pub fn or(&self, others: &GivenLimits) -> GivenLimits {
        let mut both = GivenLimits::default().on(self.machines.clone().or_else(|| others.machines.clone()));
        both.topology = self.topology.clone().or_else(|| others.topology.clone());
        for kind in LimitKind::ALL {
            both.set(kind, self.get(kind).or(others.get(kind)));
        }
        both
    }

    /// Limits of this source that `stated` does not have.
    #[must_use]
    pub fn unstated_by(&self, stated: &GivenLimits) -> GivenLimits {
        let mut rest = self.clone();
        for kind in stated.given() {
            rest.set(kind, None::<f64>);
        }
        rest
    }

    fn count(&self, kind: LimitKind) -> Option<u32> {
        self.get(kind).map(|value| value as u32)
    }

    /// Number of devices: accelerators, if CPUs are counted separately. It may then be 0.
    pub fn devices(&self) -> Option<u32> {
        self.count(LimitKind::Devices)
    }

    /// Number of CPUs that can run nodes.
    pub fn cpus(&self) -> Option<u32> {
        self.count(LimitKind::Cpus)
    }

    /// Bytes of memory per device.
    pub fn memory_bytes(&self) -> Option<f64> {
        self.get(LimitKind::Memory)
    }

    /// Number of microbatches in a batch.
    pub fn microbatches(&self) -> Option<u32> {
        self.count(LimitKind::Microbatches)
    }

    /// Bytes per second between devices.
    pub fn bandwidth_bytes_per_s(&self) -> Option<f64> {
        self.get(LimitKind::Bandwidth)
    }

    /// Number of samples in a batch over all devices.
    pub fn batch(&self) -> Option<u32> {
        self.count(LimitKind::Batch)
    }

    /// Operations per second of a device.
    pub fn flops_per_s(&self) -> Option<f64> {
        self.get(LimitKind::Flops)
    }
}

/// Converts limits. Batch, machines and the rate of operations stay absent if nothing depends on them.
impl From<&Limits> for GivenLimits {
    fn from(limits: &Limits) -> Self {
        let mut given =
            GivenLimits::default().on(Some(limits.machines.clone()).filter(|machines| !machines.is_empty()));
        for kind in LimitKind::ALL {
            given.set(kind, limits.stated(kind));
        }
        given.topology.clone_from(&limits.topology);
        given
    }
}

/// Field of machines in a plan document.
const MACHINES: &str = "machines";

impl Serialize for GivenLimits {
    /// Writes the form of a plan document: absent devices and memory are `null`, other absent limits are omitted.
    /// Machines follow the batch that they divide.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for kind in LimitKind::ALL {
            let told = self.get(kind).is_some() || matches!(kind, LimitKind::Devices | LimitKind::Memory);
            match self.count(kind) {
                _ if !told => {}
                Some(count) if kind.is_count() => map.serialize_entry(kind.field(), &count)?,
                _ => map.serialize_entry(kind.field(), &self.get(kind))?,
            }
            if kind == LimitKind::Batch && self.machines.is_some() {
                map.serialize_entry(MACHINES, &self.machines)?;
            }
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for GivenLimits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ByField)
    }
}

struct ByField;

impl<'de> Visitor<'de> for ByField {
    type Value = GivenLimits;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<GivenLimits, A::Error> {
        let mut limits = GivenLimits::default();
        let mut seen = [false; LimitKind::COUNT + 1];
        while let Some(field) = map.next_key::<Cow<'_, str>>()? {
            let kind = LimitKind::ALL.into_iter().find(|kind| kind.field() == field);
            let name = kind.map_or(MACHINES, LimitKind::field);
            if field != name {
                map.next_value::<IgnoredAny>()?;
                continue;
            }
            if std::mem::replace(&mut seen[kind.map_or(LimitKind::COUNT, |kind| kind as usize)], true) {
                return Err(A::Error::duplicate_field(name));
            }
            match kind {
                None => limits.machines = map.next_value()?,
                Some(kind) if kind.is_count() => limits.set(kind, map.next_value::<Option<u32>>()?),
                Some(kind) => limits.set(kind, map.next_value::<Option<f64>>()?),
            }
        }
        Ok(limits)
    }
}

#[cfg(feature = "schema")]
impl schemars::JsonSchema for GivenLimits {
    fn schema_name() -> Cow<'static, str> {
        "GivenLimits".into()
    }

    fn json_schema(generator: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let mut fields = serde_json::Map::new();
        for kind in LimitKind::ALL {
            let kinds = if kind.is_count() { "integer" } else { "number" };
            let field = serde_json::json!({"description": kind.help(), "type": [kinds, "null"], "minimum": 0});
            fields.insert(kind.field().into(), field);
        }
        fields.insert(MACHINES.into(), generator.subschema_for::<Option<Machines>>().to_value());
        schemars::json_schema!({"description": "Limits of a plan.", "type": "object", "properties": fields})
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_given_and_taken_away() {
        let mut limits = GivenLimits::default();
        for kind in LimitKind::ALL {
            limits.set(kind, Some(3.0));
            assert_eq!(limits.get(kind), Some(3.0));
        }
        assert_eq!(limits.given().count(), LimitKind::ALL.len());
        limits.set(LimitKind::Memory, None::<f64>);
        let file = GivenLimits::default().with(LimitKind::Devices, 1);
        let rest: Vec<LimitKind> = limits.unstated_by(&file).given().collect();
        assert!(
            !rest.contains(&LimitKind::Memory) && !rest.contains(&LimitKind::Devices) && rest.len() == 5,
            "{rest:?}"
        );
    }

    #[test]
    fn a_document_writes_them_by_field_and_reads_them_back() {
        let limits = GivenLimits::default()
            .with(LimitKind::Devices, 16)
            .with(LimitKind::Batch, 64)
            .with(LimitKind::Flops, 1e12)
            .on(Machines::new(&[8, 8]));
        let text = serde_json::to_string(&limits).unwrap();
        assert_eq!(
            text,
            r#"{"devices":16,"memory_bytes":null,"batch":64,"machines":[8,8],"flops_per_s":1000000000000.0}"#
        );
        assert_eq!(serde_json::from_str::<GivenLimits>(&text).unwrap(), limits);
        for (bad, why) in [
            (r#"{"devices": 1.5}"#, "expected u32"),
            (r#"{"memory_bytes": "8GiB"}"#, "expected f64"),
            (r#"{"batch": 1, "batch": 2}"#, "duplicate field `batch`"),
        ] {
            let error = serde_json::from_str::<GivenLimits>(bad).unwrap_err().to_string();
            assert!(error.contains(why), "{bad}: {error}");
        }
        assert_eq!(serde_json::from_str::<GivenLimits>(r#"{"other": {}}"#).unwrap(), GivenLimits::default());
    }
}
