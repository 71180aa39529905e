//! The structure that the compiler cannot hold: no planner imports another, no view another view, no family another
//! family; only families ask which kind of workload it is; and circles of imports stay small.
//!
//! The order of the crates needs no test: each crate names the crates below it in its `Cargo.toml`.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
};

use syn::{Attribute, Item, ItemMod, ItemUse, UseTree, visit::Visit};

/// Source folders of the workspace's crates, with the largest number of modules that may import one another in a circle.
const CRATES: [(&str, usize); 6] = [
    ("crates/core/src", 10),
    ("crates/planners/src", 10),
    ("crates/study/src", 10),
    ("crates/jobs/src", 10),
    ("crates/export/src", 10),
    ("src", 10),
];

/// Folders whose parts stand side by side: none may import another.
const SIDE_BY_SIDE: [(&str, &[&str]); 3] =
    [("crates/planners/src", &[]), ("crates/core/src", &["family"]), ("src", &["tui", "views"])];

/// Path of a module below its crate: `["tui", "views"]`.
type Module = Vec<String>;

/// Paths that a file uses, from the root of its crate. Tests are left out.
struct Paths {
    module: Module,
    used: BTreeSet<Module>,
}

impl Paths {
    /// Adds a path as it is written in the module.
    fn add(&mut self, written: &[String]) {
        let mut path = match written.first().map(String::as_str) {
            Some("crate") => vec![],
            // A path that leaves the crate leads to the module itself, which changes nothing.
            _ => self.module.clone(),
        };
        for name in written {
            match name.as_str() {
                "crate" | "self" => {}
                "super" => drop(path.pop()),
                _ => path.push(name.clone()),
            }
        }
        self.used.insert(path);
    }

    fn tree(&mut self, tree: &UseTree, before: &mut Vec<String>) {
        let name = match tree {
            UseTree::Path(path) => &path.ident,
            UseTree::Name(name) => &name.ident,
            UseTree::Rename(name) => &name.ident,
            UseTree::Glob(_) => return self.add(before),
            UseTree::Group(group) => return group.items.iter().for_each(|item| self.tree(item, before)),
        };
        before.push(name.to_string());
        match tree {
            UseTree::Path(path) => self.tree(&path.tree, before),
            _ => self.add(before),
        }
        before.pop();
    }
}

fn is_test(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| attribute.path().is_ident("cfg") && quoted(attribute).contains("test"))
}

fn quoted(attribute: &Attribute) -> String {
    attribute.meta.require_list().map(|list| list.tokens.to_string()).unwrap_or_default()
}

impl Visit<'_> for Paths {
    fn visit_item_mod(&mut self, item: &ItemMod) {
        if let Some((_, items)) = item.content.as_ref().filter(|_| !is_test(&item.attrs)) {
            self.module.push(item.ident.to_string());
            items.iter().for_each(|item| self.visit_item(item));
            self.module.pop();
        }
    }

    fn visit_item_use(&mut self, item: &ItemUse) {
        if !is_test(&item.attrs) {
            self.tree(&item.tree, &mut vec![]);
        }
    }
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Source files below a folder.
fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display())) {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            sources(&path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
}

/// Modules of a crate that are compiled outside tests, each with the paths that it uses.
fn modules(of: &str) -> BTreeMap<Module, BTreeSet<Module>> {
    let folder = root().join(of);
    let mut files = vec![];
    sources(&folder, &mut files);
    let mut modules = BTreeMap::new();
    for path in files {
        let below = path.strip_prefix(&folder).expect("below the crate").with_extension("");
        let mut module: Module = below.iter().map(|part| part.to_string_lossy().into_owned()).collect();
        module.pop_if(|last| ["mod", "lib", "main"].contains(&last.as_str()));
        if module.last().is_some_and(|last| last.ends_with("tests")) || below.ends_with("main") {
            continue;
        }
        let file = syn::parse_file(&fs::read_to_string(&path).expect("readable")).expect("it compiles");
        let mut paths = Paths { module: module.clone(), used: BTreeSet::new() };
        file.items.iter().for_each(|item: &Item| paths.visit_item(item));
        modules.insert(module, paths.used);
    }
    modules
}

/// Modules that reach one another through imports, the largest group first. A path leads to the innermost module on it.
fn circles(modules: &BTreeMap<Module, BTreeSet<Module>>) -> Vec<BTreeSet<&Module>> {
    let innermost = |path: &Module| (0..=path.len()).rev().find_map(|n| modules.get_key_value(&path[..n]));
    let imports = |module: &Module| modules[module].iter().filter_map(innermost).map(|(name, _)| name);
    let reached = |from: &Module| {
        let (mut reached, mut next) = (BTreeSet::new(), imports(from).collect::<Vec<_>>());
        while let Some(module) = next.pop() {
            if reached.insert(module) {
                next.extend(imports(module));
            }
        }
        reached
    };
    let from: BTreeMap<&Module, BTreeSet<&Module>> = modules.keys().map(|module| (module, reached(module))).collect();
    let circle = |module: &Module| -> BTreeSet<&Module> {
        from[module].iter().copied().filter(|other| from[other].contains(module)).collect()
    };
    let mut circles: Vec<_> = modules.keys().map(circle).filter(|circle| circle.len() > 1).collect();
    circles.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    circles.dedup();
    circles
}

#[test]
fn no_circle_of_imports_is_large() {
    let mut found = vec![];
    for (of, largest) in CRATES {
        for circle in circles(&modules(of)).into_iter().filter(|circle| circle.len() > largest) {
            let names: Vec<String> = circle.iter().map(|module| module.join("::")).collect();
            found.push(format!("{of}: {} modules import one another: {}", names.len(), names.join(", ")));
        }
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn planners_views_and_families_do_not_import_one_another() {
    for (of, within) in SIDE_BY_SIDE {
        let part = |module: &Module| -> Option<String> {
            let rest = module.iter().zip(within).all(|(a, b)| a == b).then(|| module.get(within.len()..))??;
            let folder = root().join(of).join(within.join("/")).join(rest.first()?);
            folder.is_dir().then(|| rest[0].clone())
        };
        let modules = modules(of);
        assert!(modules.keys().filter_map(part).collect::<BTreeSet<_>>().len() >= 5, "{of}");
        for (module, used) in &modules {
            for path in used {
                let (Some(own), Some(other)) = (part(module), part(path)) else { continue };
                assert!(own == other, "{of}: {} imports {}", module.join("::"), path.join("::"));
            }
        }
    }
}

#[test]
fn views_keep_their_state_to_themselves() {
    let folder = root().join("src/tui/views");
    let views: Vec<String> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.is_dir())
        .filter_map(|path| Some(path.file_name()?.to_string_lossy().into_owned()))
        .collect();
    assert!(views.len() >= 7, "{views:?}");
    for own in &views {
        let mut files = vec![];
        sources(&folder.join(own), &mut files);
        for file in files {
            let text = fs::read_to_string(&file).expect("readable");
            for other in views.iter().filter(|other| *other != own) {
                assert!(!text.contains(&format!("views.{other}.")), "{} reaches into {other}", file.display());
            }
        }
    }
}

/// Only a family, the workload itself and a planner's own folder may ask which kind of profile a workload has.
#[test]
fn only_families_ask_for_the_kind_of_a_workload() {
    let may_ask = ["crates/core/src/family/", "crates/core/src/workload/", "crates/planners/src/"];
    for (of, _) in CRATES {
        let mut files = vec![];
        sources(&root().join(of), &mut files);
        for file in files {
            let shown = file.strip_prefix(root()).expect("below the root").display().to_string();
            let text = fs::read_to_string(&file).expect("readable");
            let code = text.split("#[cfg(test)]").next().unwrap_or_default();
            let asks = may_ask.iter().any(|folder| shown.starts_with(folder));
            for question in ["Profile::Piper(", "Profile::Placement(", "Profile::Operators(", "Profile::Layers("] {
                assert!(asks || !code.contains(question), "{shown} asks for the kind of a workload: {question}");
            }
        }
    }
}

#[test]
fn circles_and_imports_are_found() {
    let module = |path: &str| -> Module { path.split("::").map(String::from).collect() };
    let file = "use super::b::{self, X as Y};\nuse crate::a::c::g;\n#[cfg(test)]\nmod tests { use crate::z; }";
    let mut paths = Paths { module: module("a"), used: BTreeSet::new() };
    syn::parse_file(file).unwrap().items.iter().for_each(|item: &Item| paths.visit_item(item));
    let file = "pub use c::Z;";
    syn::parse_file(file).unwrap().items.iter().for_each(|item: &Item| paths.visit_item(item));
    assert!(["b", "b::X", "a::c::g", "a::c::Z"].iter().all(|path| paths.used.contains(&module(path))));
    assert!(!paths.used.contains(&module("z")));
    let modules = BTreeMap::from([
        (module("a"), paths.used),
        (module("a::c"), BTreeSet::from([module("a::Z")])),
        (module("b"), BTreeSet::new()),
    ]);
    assert_eq!(circles(&modules), [BTreeSet::from([&module("a"), &module("a::c")])]);
}
