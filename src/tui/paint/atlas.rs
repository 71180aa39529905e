//! Map of devices: stage, memory fraction and load of every device of a plan, in groups.
//!
//! Devices are grouped by machine if the limits define machines, or by kind if every stage is one device. Those of a
//! model to be trained stand in a grid if stages are whole machines: a column for each stage, a machine in each row.
//! Otherwise they are grouped by stage and within it by replica. `O(devices)`.

use std::ops::Range;

use crate::{
    family,
    plan::{Plan, Score},
    tui::{shown::ShownRun, simulated::Simulated},
    units,
};

/// Memory fraction below which cells are scaled to the fullest device.
const NEARLY_EMPTY: f64 = 0.125;

/// Device on the map.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct Seat {
    /// Number of the device.
    pub device: u32,
    /// Stage on it; `None`: idle. Of several, the one that takes most time.
    pub stage: Option<usize>,
    /// Number on the first cell of the stage: its own, or that of the accelerator or CPU among its kind.
    pub number: usize,
    /// Replica of the stage that it belongs to.
    pub replica: u32,
    /// Memory need as a fraction of the limit; `None` if unlimited.
    pub memory: Option<f64>,
    /// Time relative to that of the busiest device.
    pub load: f64,
    /// True if it is the first of a replica.
    pub begins: bool,
    /// Number of devices it stands for.
    pub stands_for: u32,
}

impl Seat {
    /// Seat that stands for several of one stage.
    pub(super) fn merged(seats: &[Seat], begins: bool) -> Seat {
        let largest = |of: fn(&Seat) -> f64| seats.iter().map(of).fold(0.0, f64::max);
        Seat {
            memory: seats[0].memory.map(|_| largest(|seat| seat.memory.unwrap_or(0.0))),
            load: largest(|seat| seat.load),
            begins,
            stands_for: seats.len() as u32,
            ..seats[0].clone()
        }
    }
}

/// Group of devices.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::tui) struct Group {
    /// Title; may be empty.
    pub name: String,
    /// Range of its seats.
    pub seats: Range<usize>,
    /// True if it must not be split.
    pub whole: bool,
}

/// All devices of a plan.
#[derive(Debug, Clone, PartialEq, Default)]
pub(in crate::tui) struct Atlas {
    /// Seats in the order of the map.
    pub seats: Vec<Seat>,
    /// Groups; every seat is in one.
    pub groups: Vec<Group>,
    /// Number and grouping of the devices, in words.
    pub told: String,
    /// Memory fraction that fills a cell: 1, or that of the fullest device if all are nearly empty.
    pub full: f64,
    /// Number of groups in a column, if groups stand in a grid, and devices in a group.
    pub grid: Option<(usize, usize)>,
}

impl Atlas {
    /// Map of the devices of a plan, idle ones included, with loads as simulated where that is the plan's objective.
    pub(in crate::tui) fn of(shown: &ShownRun, simulated: Option<&Simulated>) -> Atlas {
        let mut atlas = Atlas::grouped(shown, simulated);
        let fullest = atlas.seats.iter().filter_map(|seat| seat.memory).fold(0.0, f64::max);
        atlas.full = if fullest > 0.0 && fullest < NEARLY_EMPTY { fullest } else { 1.0 };
        atlas
    }

    fn grouped(shown: &ShownRun, simulated: Option<&Simulated>) -> Atlas {
        let Some((plan, score)) = shown.plan() else { return Atlas::default() };
        let score = Simulated::loads(simulated, score);
        if shown.names.noun == "device" {
            return by_kind(shown, plan, score);
        }
        let seats = seats(shown, plan, score);
        if let Some(atlas) = by_stage_and_machine(shown, plan, &seats) {
            return atlas;
        }
        let sizes = shown.limits.machines.sizes();
        let numbered = plan.stages.iter().all(|stage| stage.devices.len() == stage.device_count() as usize);
        if sizes.len() > 1 && numbered { by_machine(shown, seats, sizes) } else { by_stage(shown, plan, seats) }
    }

    /// The same with one seat for every `count` devices of a group and stage.
    pub(in crate::tui) fn thinned(&self, count: usize) -> Atlas {
        let mut atlas = Atlas { told: self.told.clone(), full: self.full, ..Atlas::default() };
        for group in &self.groups {
            let first = atlas.seats.len();
            for alike in self.seats[group.seats.clone()].chunk_by(|a, b| a.stage == b.stage) {
                atlas.seats.extend(alike.chunks(count).enumerate().map(|(i, seats)| Seat::merged(seats, i == 0)));
            }
            atlas.groups.push(Group { seats: first..atlas.seats.len(), ..group.clone() });
        }
        atlas
    }
}

/// Seats of all stages in order, then idle devices.
fn seats(shown: &ShownRun, plan: &Plan, score: &Score) -> Vec<Seat> {
    let slowest = score.slowest_s.max(f64::MIN_POSITIVE);
    let mut seats = vec![];
    for (i, stage) in plan.stages.iter().enumerate() {
        let Some(scored) = score.stages.get(i) else { continue };
        let limit = shown.memory_limit(i);
        let degree = stage.tensor_parallel.max(1);
        for at in 0..stage.device_count() {
            let idle = idle_share(shown, at);
            seats.push(Seat {
                device: stage.devices.get(at as usize).copied().unwrap_or(seats.len() as u32),
                stage: Some(i),
                number: i + 1,
                replica: at / degree,
                memory: limit.is_finite().then(|| scored.memory_bytes / limit),
                load: (scored.load_s / slowest) * (1.0 - idle),
                begins: at % degree == 0,
                stands_for: 1,
            });
        }
    }
    let free = shown.limits.devices.saturating_sub(plan.devices_used());
    let next = seats.iter().map(|seat| seat.device + 1).max().unwrap_or(0);
    seats.extend((0..free).map(|i| idle(next + i)));
    seats
}

/// Fraction of a step during which a device waits, because an operator has fewer pieces than devices.
fn idle_share(shown: &ShownRun, at: u32) -> f64 {
    let Some(used) = &shown.operators else { return 0.0 };
    let waited: f64 = used.idle.iter().filter(|idle| f64::from(at) >= idle.pieces).map(|idle| idle.seconds).sum();
    (waited / used.step_s.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0)
}

fn idle(device: u32) -> Seat {
    Seat { device, stage: None, number: 0, replica: 0, memory: Some(0.0), load: 0.0, begins: true, stands_for: 1 }
}

/// Grid of machines for a model to be trained; `None` if a stage is not a number of whole machines.
fn by_stage_and_machine(shown: &ShownRun, plan: &Plan, seats: &[Seat]) -> Option<Atlas> {
    let size = shown.workload.training()?.accelerator.machine() as usize;
    let count = plan.stages.first()?.device_count() as usize;
    let alike = plan.stages.iter().all(|stage| stage.device_count() as usize == count);
    let in_order = seats.iter().enumerate().all(|(i, seat)| seat.device as usize == i);
    if !alike || !in_order || size < 2 || !count.is_multiple_of(size) {
        return None;
    }
    let groups = (0..seats.len()).step_by(size).map(|first| {
        let name = format!("machine {}", first / size);
        Group { name, seats: first..(first + size).min(seats.len()), whole: false }
    });
    let groups = groups.collect();
    let by = if plan.stages.len() > 1 { "by stage and machine" } else { "by machine" };
    let told = format!("{}, {by}", used(shown));
    Some(Atlas { seats: seats.to_vec(), groups, told, full: 1.0, grid: Some((count / size, size)) })
}

fn by_machine(shown: &ShownRun, seats: Vec<Seat>, sizes: &[u16]) -> Atlas {
    let whole: u32 = sizes.iter().map(|&size| u32::from(size)).sum();
    let mut placed: Vec<Seat> = (0..whole).map(idle).collect();
    for seat in seats.into_iter().filter(|seat| seat.stage.is_some()) {
        if let Some(place) = placed.get_mut(seat.device as usize) {
            *place = seat;
        }
    }
    let mut first = 0;
    let groups = sizes.iter().enumerate().map(|(i, &size)| {
        let seats = first..first + usize::from(size);
        first = seats.end;
        Group { name: format!("machine {}", i + 1), seats, whole: true }
    });
    let groups = groups.collect();
    let least = sizes.iter().min().copied().unwrap_or(0);
    let told = if sizes.iter().all(|&size| size == least) {
        format!("{}, machines of {least}", used(shown))
    } else {
        format!("{} in {} machines", used(shown), sizes.len())
    };
    Atlas { seats: placed, groups, told, full: 1.0, grid: None }
}

fn by_stage(shown: &ShownRun, plan: &Plan, seats: Vec<Seat>) -> Atlas {
    let mut groups = vec![];
    let mut first = 0;
    for alike in seats.chunk_by(|a, b| a.stage == b.stage) {
        let range = first..first + alike.len();
        first = range.end;
        groups.push(Group { name: String::new(), seats: range, whole: false });
    }
    let replicas = plan.stages.iter().any(|stage| stage.data_parallel > 1 && stage.tensor_parallel > 1);
    let by = match (shown.operators.is_some(), replicas) {
        (true, _) => "",
        (false, true) => ", by stage and replica",
        (false, false) => ", by stage",
    };
    let kinds = kinds(shown, plan);
    let by = if kinds.is_empty() { by.to_string() } else { format!(": {kinds}") };
    Atlas { seats, groups, told: format!("{}{by}", used(shown)), full: 1.0, grid: None }
}

/// Stages on each kind of device: `1–2 on h100 · 3 on a100-80`; empty if there is one kind.
fn kinds(shown: &ShownRun, plan: &Plan) -> String {
    let family = family::of(&shown.workload);
    let on: Vec<&str> = plan.stages.iter().filter_map(|stage| family.stage_kind(stage)).collect();
    let mut first = 1;
    let runs = on.chunk_by(|a, b| a == b).map(|run| {
        let from = first;
        first += run.len();
        let stages = if run.len() == 1 { from.to_string() } else { format!("{from}–{}", first - 1) };
        format!("{stages} on {}", run[0])
    });
    runs.collect::<Vec<_>>().join(" · ")
}

/// Used devices: `126 of 128 devices`.
fn used(shown: &ShownRun) -> String {
    let used = shown.plan().map_or(0, |(plan, _)| plan.devices_used());
    format!("{used} of {}", units::counted(shown.limits.devices as usize, "device"))
}

/// Groups accelerators, then CPUs. A device may have several stages.
fn by_kind(shown: &ShownRun, plan: &Plan, score: &Score) -> Atlas {
    let on_kinds = kinds(shown, plan);
    let mut kinds: [Vec<Seat>; 2] = [vec![], vec![]];
    // Time of the stage that each seat is shown with.
    let mut most: [Vec<f64>; 2] = [vec![], vec![]];
    for (i, (stage, scored)) in plan.stages.iter().zip(&score.stages).enumerate() {
        let kind = usize::from(stage.on_cpus());
        let limit = shown.memory_limit(i);
        let memory = (kind == 0 && limit.is_finite()).then(|| scored.memory_bytes / limit);
        let device = stage.devices.first().copied();
        let known = kinds[kind].iter().position(|seat| Some(seat.device) == device);
        if let Some(at) = known {
            let seat = &mut kinds[kind][at];
            seat.load += scored.load_s;
            seat.memory = seat.memory.zip(memory).map(|(a, b)| a + b);
            if scored.load_s > most[kind][at] {
                (seat.stage, most[kind][at]) = (Some(i), scored.load_s);
            }
            continue;
        }
        let device = device.unwrap_or(i as u32);
        let seat = Seat {
            device,
            stage: Some(i),
            number: kinds[kind].len() + 1,
            replica: 0,
            memory,
            load: scored.load_s,
            begins: true,
            stands_for: 1,
        };
        kinds[kind].push(seat);
        most[kind].push(scored.load_s);
    }
    let busiest = kinds.iter().flatten().map(|seat| seat.load).fold(f64::MIN_POSITIVE, f64::max);
    kinds.iter_mut().flatten().for_each(|seat| seat.load /= busiest);
    let mut atlas = Atlas { told: shown.names.used.clone(), ..Atlas::default() };
    let there = [shown.limits.devices, shown.limits.cpus];
    for ((mut seats, count), name) in kinds.into_iter().zip(there).zip(["accelerators", "CPUs"]) {
        let free = (count as usize).saturating_sub(seats.len());
        let next = seats.iter().map(|seat| seat.device + 1).max().unwrap_or(0);
        seats.extend((0..free as u32).map(|i| idle(next + i)));
        if !seats.is_empty() {
            let first = atlas.seats.len();
            atlas.seats.append(&mut seats);
            let told = name == "accelerators" && !on_kinds.is_empty();
            let name = if told { format!("{name}: {on_kinds}") } else { name.into() };
            let group = Group { name, seats: first..atlas.seats.len(), whole: false };
            atlas.groups.push(group);
        }
    }
    atlas
}
