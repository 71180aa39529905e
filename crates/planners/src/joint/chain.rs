//! [`super::evaluate`] for stages that send to the next one only. Most networks have such pipelines, and they are
//! evaluated hundreds of times. A stage's clocks are stored beside its times, and at most one gradient waits at a
//! stage. So a rank is one pass over the stages.

/// Times of a stage, then its clocks.
#[derive(Debug, Clone, Copy)]
struct Station {
    forward: f64,
    backward: f64,
    /// Transfer to the next stage, and back to the one before.
    send: f64,
    back: f64,
    clocks: [f64; 4],
}

/// Indices of the clocks: compute, the two send engines, arrival of the next gradient.
const COMPUTE: usize = 0;
const ACTIVATIONS: usize = 1;
const GRADIENTS: usize = 2;
const ARRIVED: usize = 3;

/// Relative tolerance within which clocks have advanced equally.
const ALIKE: f64 = 1e-13;

/// End of all computation, by stage. `sends` are the times between neighbours.
pub(super) fn ends(stages: &[[f64; 3]], sends: &[f64], microbatches: usize) -> impl Iterator<Item = f64> {
    let count = stages.len();
    let station = |(s, stage): (usize, &[f64; 3])| Station {
        forward: stage[0],
        backward: stage[1],
        send: sends.get(s).copied().unwrap_or(0.0),
        back: if s > 0 { sends[s - 1] } else { 0.0 },
        clocks: [0.0; 4],
    };
    let mut line: Vec<Station> = stages.iter().enumerate().map(station).collect();
    let mut rank = 0;
    while rank < count {
        part(&mut line, rank, microbatches);
        rank += 1;
    }
    let mut mark: Option<(usize, Vec<[f64; 4]>)> = None;
    while rank < microbatches {
        full(&mut line);
        rank += 1;
        match &mark {
            Some((at, clocks)) if rank < 2 * at - count => {
                if let Some(step) = gone_on(&line, clocks) {
                    let times = (microbatches - rank) / (rank - at);
                    let later = step * times as f64;
                    line.iter_mut().flat_map(|station| &mut station.clocks).for_each(|clock| *clock += later);
                    rank += times * (rank - at);
                    while rank < microbatches {
                        full(&mut line);
                        rank += 1;
                    }
                }
            }
            _ => mark = Some((rank, line.iter().map(|station| station.clocks).collect())),
        }
    }
    while rank < microbatches + count {
        part(&mut line, rank, microbatches);
        rank += 1;
    }
    line.into_iter().map(|station| station.clocks[COMPUTE])
}

/// Advances by a rank in which every stage runs a backward and a forward.
fn full(line: &mut [Station]) {
    let mut activations = 0.0;
    for s in 0..line.len() {
        let station = &mut line[s];
        let [compute, sent, back, arrived] = station.clocks;
        let done = compute.max(arrived) + station.backward;
        let returned = back.max(done) + station.back;
        let end = done.max(activations) + station.forward;
        activations = sent.max(end) + station.send;
        station.clocks = [end, activations, returned, arrived];
        if s > 0 {
            line[s - 1].clocks[ARRIVED] = returned;
        }
    }
}

/// Advances by a rank of warm-up or drain.
fn part(line: &mut [Station], rank: usize, microbatches: usize) {
    let count = line.len();
    let mut activations = 0.0;
    for s in 0..count {
        let station = &mut line[s];
        let mut returned = None;
        if rank + s >= count && rank + s - count < microbatches {
            let done = station.clocks[COMPUTE].max(station.clocks[ARRIVED]) + station.backward;
            station.clocks[COMPUTE] = done;
            station.clocks[GRADIENTS] = station.clocks[GRADIENTS].max(done) + station.back;
            returned = Some(station.clocks[GRADIENTS]);
        }
        if rank < microbatches {
            let end = f64::max(station.clocks[COMPUTE], activations) + station.forward;
            station.clocks[COMPUTE] = end;
            station.clocks[ACTIVATIONS] = station.clocks[ACTIVATIONS].max(end) + station.send;
            activations = station.clocks[ACTIVATIONS];
        }
        if let (Some(returned), Some(before)) = (returned, s.checked_sub(1)) {
            line[before].clocks[ARRIVED] = returned;
        }
    }
}

/// Time by which all clocks have advanced since `then`; `None` if they differ.
fn gone_on(line: &[Station], then: &[[f64; 4]]) -> Option<f64> {
    let now = line[0].clocks[COMPUTE];
    let step = now - then[0][COMPUTE];
    let room = ALIKE * now;
    let last = line.len() - 1;
    let alike = |(s, (station, then)): (usize, (&Station, &[f64; 4]))| {
        // The last stage receives no gradient.
        let clocks = if s == last { 0..ARRIVED } else { 0..ARRIVED + 1 };
        clocks.into_iter().all(|i| (station.clocks[i] - then[i] - step).abs() <= room)
    };
    line.iter().zip(then).enumerate().all(alike).then_some(step)
}
