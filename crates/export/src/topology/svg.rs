//! Topology as a picture: a ring of devices for each machine with its inner switches inside; links between machines
//! below.

use std::{f64::consts::TAU, fmt::Write};

use crate::xml::escaped;
use plantui_core::{
    cluster::topology::{Topology, VertexKind},
    units,
};

/// Half of the width and height of a vertex.
const HALF: (f64, f64) = (30.0, 12.0);
/// Distance between two devices of a ring.
const STEP: f64 = 78.0;
const MARGIN: f64 = 50.0;
/// Machines per row of the picture.
const IN_A_ROW: usize = 4;

/// Position of a vertex.
type VertexPosition = (f64, f64);

/// Topology as SVG. Thicker lines are faster links.
pub fn svg(topology: &Topology) -> String {
    let (places, (width, height)) = places(topology);
    let widest = topology.links().iter().map(|link| link.bandwidth).fold(f64::MIN_POSITIVE, f64::max);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
         viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <title>{0}</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n\
         <text x=\"16\" y=\"22\" font-size=\"14\" fill=\"#222222\">{0}</text>\n",
        escaped(&format!("{}: {}", topology.name, topology.title))
    );
    for link in topology.links() {
        let ((x1, y1), (x2, y2)) = (places[link.from as usize], places[link.to as usize]);
        let thick = 1.0 + 4.0 * (link.bandwidth / widest).sqrt();
        let words = format!(
            "{} - {}: {} {}",
            topology.vertices()[link.from as usize].name,
            topology.vertices()[link.to as usize].name,
            link.what,
            units::bandwidth_exact(link.bandwidth)
        );
        let _ = writeln!(
            out,
            "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" stroke=\"#7a8aa0\" \
             stroke-opacity=\"0.75\" stroke-width=\"{thick:.2}\"><title>{}</title></line>",
            escaped(&words)
        );
    }
    for (vertex, &(x, y)) in topology.vertices().iter().zip(&places) {
        let (fill, round) = match vertex.kind {
            VertexKind::Device => ("#cfe3ff", 3),
            VertexKind::Switch => ("#d9f2d9", 12),
            VertexKind::Nic => ("#ffe7c2", 3),
            VertexKind::Host => ("#eadcf5", 6),
        };
        let _ = writeln!(
            out,
            "<rect x=\"{:.1}\" y=\"{:.1}\" width=\"{:.0}\" height=\"{:.0}\" rx=\"{round}\" fill=\"{fill}\" \
             stroke=\"#445\"/><text x=\"{x:.1}\" y=\"{:.1}\" text-anchor=\"middle\" fill=\"#222222\">{}</text>",
            x - HALF.0,
            y - HALF.1,
            2.0 * HALF.0,
            2.0 * HALF.1,
            y + 4.0,
            escaped(&vertex.name)
        );
    }
    out + "</svg>\n"
}

/// Positions of all vertices, and the size of the picture.
fn places(topology: &Topology) -> (Vec<VertexPosition>, VertexPosition) {
    let machines = topology.machines();
    let largest = machines.sizes().iter().copied().max().unwrap_or(1);
    let radius = (STEP * f64::from(largest) / TAU).max(120.0);
    let cell = 2.0 * (radius + MARGIN);
    let count = machines.sizes().len();
    let columns = count.min(IN_A_ROW);
    let rows = count.div_ceil(IN_A_ROW);
    let centre = |machine: usize| {
        (
            (machine % columns) as f64 * cell + cell / 2.0,
            (machine / columns) as f64 * (cell + MARGIN) + cell / 2.0 + 30.0,
        )
    };
    let bottom = rows as f64 * (cell + MARGIN) + 50.0;
    let mut places = vec![(0.0, 0.0); topology.vertices().len()];
    for machine in 0..count {
        let (x, y) = centre(machine);
        let own = |v: &usize| {
            let vertex = &topology.vertices()[*v];
            vertex.machine == Some(machine as u32) || (count == 1 && vertex.machine.is_none())
        };
        let of = |kinds: &[VertexKind]| -> Vec<usize> {
            let vertices = (0..places.len()).filter(own);
            vertices.filter(|&v| kinds.contains(&topology.vertices()[v].kind)).collect()
        };
        let on_ring = |vertices: &[usize], radius: f64, places: &mut [VertexPosition]| {
            for (number, &v) in vertices.iter().enumerate() {
                let angle = TAU * (number as f64 / vertices.len() as f64 - 0.25);
                let radius = if vertices.len() == 1 { 0.0 } else { radius };
                places[v] = (x + radius * angle.cos(), y + radius * angle.sin());
            }
        };
        let (devices, inner) = (of(&[VertexKind::Device]), of(&[VertexKind::Switch, VertexKind::Host]));
        let nics = of(&[VertexKind::Nic]);
        on_ring(&devices, radius, &mut places);
        on_ring(&inner, radius * 0.45, &mut places);
        for (number, &nic) in nics.iter().enumerate() {
            let step = (2.0 * radius / nics.len() as f64).min(2.0 * HALF.0 + 6.0);
            let at = number as f64 - (nics.len() as f64 - 1.0) / 2.0;
            places[nic] = (x + step * at, y + radius + MARGIN * 0.9);
        }
    }
    let width = columns as f64 * cell;
    let outside: Vec<usize> =
        (0..places.len()).filter(|&v| count > 1 && topology.vertices()[v].machine.is_none()).collect();
    for (number, &v) in outside.iter().enumerate() {
        places[v] = (width * (number as f64 + 0.5) / outside.len() as f64, bottom);
    }
    let height = if outside.is_empty() { bottom - 30.0 } else { bottom + MARGIN };
    (places, (width, height))
}
