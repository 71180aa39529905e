//! Facts that several files of a release state are the same in all of them.

use std::{fs, path::Path};

const ROOT: &str = env!("CARGO_MANIFEST_DIR");
const REPOSITORY: &str = env!("CARGO_PKG_REPOSITORY");

fn text(name: &str) -> String {
    fs::read_to_string(Path::new(ROOT).join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn the_address_of_the_repository_is_one() {
    for name in ["pyproject.toml", "python/README.md", "packaging/install.sh", "docs/src/start/install.md"] {
        let text = text(name);
        let addresses: Vec<&str> = text
            .match_indices("https://github.com/")
            .map(|(at, _)| &text[at..])
            .filter(|rest| !rest.is_empty())
            .collect();
        assert!(!addresses.is_empty(), "{name} names no repository");
        for address in addresses {
            assert!(address.starts_with(REPOSITORY), "{name}: {}", address.lines().next().unwrap_or_default());
        }
    }
}

#[test]
fn links_of_the_python_page_lead_to_files() {
    let text = text("python/README.md");
    let links: Vec<&str> = text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).collect();
    assert!(links.len() >= 4);
    for link in links {
        let file =
            ["/blob/main/", "/tree/main/"].iter().find_map(|kind| link.strip_prefix(REPOSITORY)?.strip_prefix(kind));
        assert!(link == REPOSITORY || file.is_some_and(|file| Path::new(ROOT).join(file).exists()), "{link}");
    }
}

#[test]
fn every_crate_packs_its_licence_and_a_page() {
    let licence = text("LICENSE");
    for crate_name in ["core", "export", "jobs", "planners", "study"] {
        assert_eq!(text(&format!("crates/{crate_name}/LICENSE")), licence, "{crate_name}");
        assert!(text(&format!("crates/{crate_name}/README.md")).starts_with(&format!("# plantui-{crate_name}\n")));
    }
}

#[test]
fn versions_of_the_workspace_are_one() {
    let manifest: toml::Table = text("Cargo.toml").parse().unwrap();
    let workspace = &manifest["workspace"];
    let version = workspace["package"]["version"].as_str().unwrap();
    for (name, dependency) in workspace["dependencies"].as_table().unwrap() {
        if name.starts_with("plantui-") {
            assert_eq!(dependency["version"].as_str(), Some(version), "{name}");
        }
    }
    assert!(text("CHANGELOG.md").contains(&format!("\n## {version} ")));
}

#[test]
fn a_tag_must_be_the_version() {
    let run = |tag: &[&str]| {
        std::process::Command::new("bash").arg(format!("{ROOT}/packaging/version.sh")).args(tag).output().unwrap()
    };
    let version = env!("CARGO_PKG_VERSION");
    assert_eq!(String::from_utf8(run(&[]).stdout).unwrap().trim(), version);
    assert_eq!(run(&[&format!("v{version}")]).status.code(), Some(0));
    for wrong in [version, "v9.9.9"] {
        let output = run(&[wrong]);
        assert_eq!(output.status.code(), Some(2));
        assert!(String::from_utf8_lossy(&output.stderr).contains(&format!("tag v{version}")));
    }
}
