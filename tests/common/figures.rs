//! Published figures, kept as tables in `tests/figures`.

use plantui::cluster::Limits;

/// One value of the published Piper program.
#[derive(Debug, Clone)]
pub(crate) struct PiperCase {
    /// Path of the input below the reference folder.
    pub(crate) input: String,
    /// Limits of the run.
    pub(crate) limits: Limits,
    /// Which experiment: `Piper`, `noDP`, `equi-sep`, ..
    pub(crate) variant: String,
    /// Seconds; `None` where no plan was feasible.
    pub(crate) time_per_sample: Option<f64>,
}

/// All of them.
pub(crate) fn piper_cases() -> impl Iterator<Item = PiperCase> {
    include_str!("../figures/piper.tsv").lines().filter(|line| !line.starts_with('#')).skip(1).map(|line| {
        let fields: Vec<&str> = line.split('\t').collect();
        let number = |i: usize| fields[i].parse::<f64>().ok();
        PiperCase {
            input: fields[1].into(),
            limits: Limits {
                cpus: 0,
                devices: fields[2].parse().unwrap(),
                memory_bytes: Some(number(3).unwrap()),
                microbatches: fields[4].parse().unwrap(),
                bandwidth_bytes_per_s: Some(number(5).unwrap()),
                ..Limits::NEUTRAL
            },
            variant: fields[6].into(),
            time_per_sample: number(7),
        }
    })
}
