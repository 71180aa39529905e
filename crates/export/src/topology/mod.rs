//! Topology for people: text, SVG, Graphviz.

mod dot;
mod svg;
mod text;

pub use dot::dot;
pub use svg::svg;
pub use text::text;

#[cfg(test)]
mod tests {
    use super::*;
    use plantui_core::cluster::topology::named;

    #[test]
    fn every_picture_shows_every_device() {
        for name in ["dgx-1", "2xdgx-a100", "tpu-v5e-4x4", "pcie3-8"] {
            let topology = named(name).unwrap();
            let (svg, dot) = (svg(&topology), dot(&topology));
            for device in 0..topology.devices() {
                let shown = format!(">{}<", topology.device_name(device));
                assert!(svg.contains(&shown), "{name}: {shown}");
                assert!(dot.contains(&format!("\"{}\"", topology.device_name(device))));
            }
            assert_eq!(svg.matches("<line").count(), topology.links().len(), "{name}");
            assert_eq!(dot.matches(" -> ").count(), topology.links().len(), "{name}");
        }
    }

    #[test]
    fn the_text_shows_pairs_and_wires() {
        let text = text(&named("dgx-1").unwrap());
        let row = text.lines().find(|line| line.trim_start().starts_with("gpu3 ")).unwrap();
        assert_eq!(row.split_whitespace().collect::<Vec<_>>(), ["gpu3", "50", "25", "50", ".", "6", "6", "6", "25"]);
        assert!(text.contains("50 GB/s: gpu3, gpu4"), "{text}");
        let two = super::text(&named("2xdgx-1+eth-25g").unwrap());
        assert!(two.contains("between machines") && two.contains("3.125"), "{two}");
        let large = super::text(&named("tpu-v4-4x4x4").unwrap());
        assert!(large.lines().count() < 60 && large.contains("more"), "{large}");
    }
}
