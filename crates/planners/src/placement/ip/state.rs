//! Assignment of classes to devices with the loads of all devices, updated with every move.
//!
//! A counter per net and accelerator holds the number of the net's classes there; the accelerator pays for the net iff
//! this is neither none nor all. Moving a class takes `O(nets of the class)`. Floating-point sums drift with updates,
//! so [`AssignmentState::refresh`] recomputes everything; values that leave the search are always recomputed.

use super::model::{IpModel, Time};

/// Device of each class, and its costs.
#[derive(Debug, Clone)]
pub struct AssignmentState<'m> {
    /// Model of the problem.
    pub model: &'m IpModel,
    device: Vec<u32>,
    /// `inside[net · accelerators + a]`: number of classes of the net on accelerator `a`.
    inside: Vec<u32>,
    load: Vec<Time>,
    size: Vec<f64>,
}

impl<'m> AssignmentState<'m> {
    /// State of an assignment; `device` holds a device per class.
    pub fn new(model: &'m IpModel, device: Vec<u32>) -> Self {
        let devices = model.devices();
        let inside = vec![0; model.net_count() * model.accelerators];
        let mut state =
            AssignmentState { model, device, inside, load: vec![[0.0; 2]; devices], size: vec![0.0; devices] };
        state.refresh();
        state
    }

    /// Recomputes all loads.
    pub fn refresh(&mut self) {
        let model = self.model;
        let accelerators = model.accelerators;
        self.load.fill([0.0; 2]);
        self.size.fill(0.0);
        self.inside.fill(0);
        for (class, &device) in self.device.iter().enumerate() {
            let device = device as usize;
            let time = if model.is_cpu(device) { model.cpu_time[class] } else { model.accelerator_time[class] };
            add(&mut self.load[device], time);
            self.size[device] += model.size[class];
            if !model.is_cpu(device) {
                for &net in model.nets(class) {
                    self.inside[net as usize * accelerators + device] += 1;
                }
            }
        }
        for net in 0..model.net_count() {
            let pins = model.pins(net).len() as u32;
            for accelerator in 0..accelerators {
                if (1..pins).contains(&self.inside[net * accelerators + accelerator]) {
                    add(&mut self.load[accelerator], model.net_cost[net]);
                }
            }
        }
    }

    /// Device of every class.
    pub fn devices(&self) -> &[u32] {
        &self.device
    }

    /// Device of a class.
    #[inline]
    pub fn device(&self, class: usize) -> usize {
        self.device[class] as usize
    }

    /// Load of each device.
    #[inline]
    pub fn loads(&self) -> &[Time] {
        &self.load
    }

    /// Memory used on each device, bytes.
    #[inline]
    pub fn sizes(&self) -> &[f64] {
        &self.size
    }

    /// True if every class is on a device that can run it, and every accelerator keeps its memory.
    pub fn admissible(&self) -> bool {
        let model = self.model;
        let at_home = self.device.iter().enumerate().all(|(class, &d)| model.is_cpu(d as usize) || model.fits[class]);
        at_home && self.size[..model.accelerators].iter().all(|&size| size <= model.memory)
    }

    /// Maximum of each part over all devices.
    #[inline]
    pub fn maxima(&self) -> Time {
        self.load.iter().fold([0.0; 2], |most, load| [f64::max(most[0], load[0]), f64::max(most[1], load[1])])
    }

    /// Value of the objective.
    #[inline]
    pub fn value(&self) -> f64 {
        let [first, second] = self.maxima();
        first + second
    }

    /// Moves a class to another device.
    #[inline]
    pub fn shift(&mut self, class: usize, to: usize) {
        let model = self.model;
        let accelerators = model.accelerators;
        let from = self.device[class] as usize;
        self.device[class] = to as u32;
        self.size[from] -= model.size[class];
        self.size[to] += model.size[class];
        let (mut leaves, mut joins) = (self.load[from], self.load[to]);
        let (from_cpu, to_cpu) = (model.is_cpu(from), model.is_cpu(to));
        sub(&mut leaves, if from_cpu { model.cpu_time[class] } else { model.accelerator_time[class] });
        add(&mut joins, if to_cpu { model.cpu_time[class] } else { model.accelerator_time[class] });
        for &net in model.nets(class) {
            let net = net as usize;
            let pins = model.pins(net).len() as u32;
            let inside = &mut self.inside[net * accelerators..(net + 1) * accelerators];
            let cost = model.net_cost[net];
            if !from_cpu {
                let before = inside[from];
                inside[from] = before - 1;
                if before == pins {
                    add(&mut leaves, cost);
                } else if before == 1 {
                    sub(&mut leaves, cost);
                }
            }
            if !to_cpu {
                let before = inside[to];
                inside[to] = before + 1;
                if before == 0 {
                    add(&mut joins, cost);
                } else if before + 1 == pins {
                    sub(&mut joins, cost);
                }
            }
        }
        self.load[from] = leaves;
        self.load[to] = joins;
    }
}

#[inline]
fn add(sum: &mut Time, more: Time) {
    sum[0] += more[0];
    sum[1] += more[1];
}

#[inline]
fn sub(sum: &mut Time, less: Time) {
    sum[0] -= less[0];
    sum[1] -= less[1];
}
