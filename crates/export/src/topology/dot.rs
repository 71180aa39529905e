//! Topology for Graphviz.

use std::fmt::Write;

use plantui_core::{
    cluster::topology::{Duplex, Topology, VertexKind},
    units,
};

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Topology for `dot -Tsvg`, a box for each machine.
pub fn dot(topology: &Topology) -> String {
    let mut out = format!(
        "digraph {} {{\n  node [fontname=\"sans-serif\"];\n  edge [fontname=\"sans-serif\" fontsize=9];\n",
        quoted(&topology.name)
    );
    let machines = topology.machines().sizes().len() as u32;
    for machine in (0..machines).map(Some).chain([None]) {
        let inside = |vertex: &&plantui_core::cluster::topology::Vertex| {
            vertex.machine == machine || (machines == 1 && vertex.machine.is_none() && machine == Some(0))
        };
        let vertices: Vec<_> = topology.vertices().iter().filter(inside).collect();
        if vertices.is_empty() {
            continue;
        }
        let indent = if machine.is_some() { "    " } else { "  " };
        if let Some(machine) = machine {
            let _ = writeln!(out, "  subgraph cluster_{machine} {{\n    label=\"machine {machine}\";");
        }
        for vertex in vertices {
            let shape = match vertex.kind {
                VertexKind::Device => "box",
                VertexKind::Switch => "ellipse",
                VertexKind::Nic => "component",
                VertexKind::Host => "hexagon",
            };
            let _ = writeln!(out, "{indent}{} [shape={shape}];", quoted(&vertex.name));
        }
        if machine.is_some() {
            let _ = writeln!(out, "  }}");
        }
    }
    for link in topology.links() {
        let name = |vertex: u32| quoted(&topology.vertices()[vertex as usize].name);
        let arrows = if link.duplex == Duplex::OneWay { "forward" } else { "both" };
        let label = units::bandwidth_exact(link.bandwidth);
        let _ = writeln!(out, "  {} -> {} [dir={arrows} label={}];", name(link.from), name(link.to), quoted(&label));
    }
    out + "}\n"
}
