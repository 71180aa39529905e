//! The order of the rooms, proven from the imports: every room uses only those that stand above it in `src/lib.rs`, in whichever
//! of the two packages.
//!
//! Beside the order: no planner's folder imports another planner's, no family's another family's, no view another view.
//! No view reaches into the state of another, and nobody but the list of views asks which view it is. What draws changes
//! nothing of the model. Where a node stands in its workload is told from module to module as a `NodeIndex`. Which kind of
//! workload it is, only families, the workload itself and planners in their own folders ask: everybody else asks the family
//! what he wants to know.

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
};

/// The rooms from the ground up.
const ROOMS: [&str; 20] = [
    "text", "units", "terms", "source", "graph", "cluster", "workload", "plan", "simulate", "family", "generate",
    "planner", "run", "study", "export", "notice", "tui", "config", "cli", "main",
];

/// Folders whose parts stand side by side: none may import another.
const SIDE_BY_SIDE: [&str; 3] = ["planner", "tui/views", "family"];

/// Where a part of a room lies: in the package of what is planned or in that above it.
fn place_of(part: &str) -> PathBuf {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let in_core = src.join("core").join(part);
    if in_core.exists() { in_core } else { src.join(part) }
}

/// The code of a source file: comments and tests are left out.
fn code_of(source: &str) -> String {
    let code: String =
        source.lines().map(|line| line.split("//").next().unwrap_or_default()).collect::<Vec<_>>().join("\n");
    code.split("#[cfg(test)]\nmod tests").next().unwrap_or_default().to_string()
}

/// The module that a file below `src` is.
fn module_of(file: &str) -> Vec<String> {
    let file = file.trim_end_matches(".rs").trim_end_matches("/mod");
    file.split('/').map(str::to_string).collect()
}

/// The paths that a source file imports with `crate::` or `super::`, in full: `crate::a::{b, c::d}` are two.
fn imports(file: &str, source: &str) -> BTreeSet<Vec<String>> {
    let code = code_of(source);
    let code = code.as_str();
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("super::") {
        let inside = |before: char| before.is_alphanumeric() || before == '_';
        if code[..at].ends_with("super::") || code[..at].ends_with(inside) {
            continue;
        }
        let mut module = module_of(file);
        let mut rest = &code[at..];
        while let Some(further) = rest.strip_prefix("super::") {
            module.pop();
            rest = further;
        }
        tree(&mut rest.chars().peekable(), &mut module, &mut found);
    }
    for (at, _) in code.match_indices("crate::") {
        if code[..at].ends_with(|before: char| before.is_alphanumeric() || before == '_') {
            continue;
        }
        let mut rest = code[at + "crate::".len()..].chars().peekable();
        tree(&mut rest, &mut vec![], &mut found);
    }
    found
}

/// Reads one path or tree of paths that begins here.
fn tree(
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
    before: &mut Vec<String>,
    found: &mut BTreeSet<Vec<String>>,
) {
    let depth = before.len();
    loop {
        while rest.next_if(|c| c.is_whitespace()).is_some() {}
        if rest.next_if_eq(&'{').is_some() {
            loop {
                tree(rest, before, found);
                while rest.next_if(|c| c.is_whitespace() || *c == ',').is_some() {}
                if rest.next_if_eq(&'}').is_some() || rest.peek().is_none() {
                    break;
                }
            }
            break;
        }
        let mut word = String::new();
        while let Some(c) = rest.next_if(|c| c.is_alphanumeric() || *c == '_') {
            word.push(c);
        }
        if word.is_empty() {
            // Something that is no path, such as `*`.
            rest.next();
            break;
        }
        before.push(word);
        found.insert(before.clone());
        let more = rest.next_if_eq(&':').is_some() && rest.next_if_eq(&':').is_some();
        if !more {
            // `as name` belongs to the path before it.
            let mut ahead = rest.clone();
            while ahead.next_if(|c| c.is_whitespace()).is_some() {}
            if ahead.next_if_eq(&'a').is_some() && ahead.next_if_eq(&'s').is_some() && ahead.peek() == Some(&' ') {
                while rest.next_if(|c| !matches!(c, ',' | '}' | ';')).is_some() {}
            }
            break;
        }
    }
    before.truncate(depth);
}

/// Every rule that the imports of one file break, a sentence each. `file` is its path below `src`, such as `plan/mod.rs`.
fn broken(file: &str, source: &str) -> Vec<String> {
    let mut broken = vec![];
    let room = file.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let Some(level) = ROOMS.iter().position(|name| *name == room) else {
        return if room == "lib" { broken } else { vec![format!("{file}: the room {room} has no place in the order")] };
    };
    broken.extend(broken_by_view(file, &code_of(source)));
    broken.extend(broken_by_drawing(file, &code_of(source)));
    broken.extend(broken_by_plain_nodes(file, &code_of(source)));
    broken.extend(broken_by_kind(file, &code_of(source)));
    for path in imports(file, source) {
        if path.len() == 1 {
            match ROOMS.iter().position(|name| *name == path[0]) {
                Some(other) if other > level => {
                    broken.push(format!("{file} imports {}, which stands behind it", path[0]));
                }
                _ => {}
            }
        }
        for folder in SIDE_BY_SIDE {
            let Some(own) = file.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/')) else { continue };
            let parts: Vec<&str> = folder.split('/').collect();
            if path.len() != parts.len() + 1 || !path.iter().zip(&parts).all(|(a, b)| a == b) {
                continue;
            }
            let (own, other) = (own.split('/').next().unwrap_or_default(), path[parts.len()].as_str());
            let is_part = place_of(folder).join(other).is_dir();
            let alone = own.ends_with(".rs");
            if is_part && !alone && own != other {
                broken.push(format!("{file} of {folder}/{own} imports {folder}/{other}"));
            }
        }
    }
    broken
}

/// Whether there is a view of this name.
fn is_view(name: &str) -> bool {
    !name.is_empty() && Path::new(env!("CARGO_MANIFEST_DIR")).join("src/tui/views").join(name).is_dir()
}

/// What a file of the screen breaks beside imports: the state of another view, `views.other`, and decisions by which view it
/// is, `View::Other`. Showing a certain view is no such decision.
fn broken_by_view(file: &str, code: &str) -> Vec<String> {
    if !file.starts_with("tui/") || file == "tui/views/mod.rs" {
        return vec![];
    }
    let own = file.strip_prefix("tui/views/").and_then(|rest| rest.split('/').next());
    let word = |at: usize| -> String { code[at..].chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect() };
    let mut broken = vec![];
    for (at, found) in code.match_indices("views.") {
        let other = word(at + found.len());
        if own.is_some_and(|own| own != other) && is_view(&other) {
            broken.push(format!("{file} reaches into the state of {other}"));
        }
    }
    for (at, found) in code.match_indices("View::") {
        let name = word(at + found.len());
        let other = name.to_lowercase();
        if name != "ALL" && is_view(&other) && own != Some(other.as_str()) && !code[..at].ends_with("Show(") {
            broken.push(format!("{file} asks for the view {name}"));
        }
    }
    broken
}

/// Folders of the screen with functions that draw.
const DRAWING: [&str; 4] = ["tui/frame/", "tui/paint/", "tui/views/", "tui/widget/"];

/// Functions that draw and could change the model: they are called `draw..`, or are handed a frame or a buffer, and take
/// `&mut Model`. Only `show` of `tui/frame` hands the model what was drawn.
fn broken_by_drawing(file: &str, code: &str) -> Vec<String> {
    if !DRAWING.iter().any(|folder| file.starts_with(folder)) {
        return vec![];
    }
    let mut broken = vec![];
    for (at, _) in code.match_indices("fn ") {
        let rest = &code[at + "fn ".len()..];
        let signature = rest.split('{').next().unwrap_or_default().split(";\n").next().unwrap_or_default();
        let name: String = signature.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
        let draws = name.starts_with("draw") || signature.contains("Frame<") || signature.contains("&mut Buffer");
        let shows = file == "tui/frame/mod.rs" && name == "show";
        if draws && signature.contains("&mut Model") && !shows {
            broken.push(format!("{file}: {name} draws and takes &mut Model"));
        }
    }
    broken
}

/// Rooms where nodes are plain numbers: planners search over them, a graph has vertices and knows no nodes.
const PLAIN_NODES: [&str; 2] = ["planner/", "graph/"];

/// What a node is called, and several.
const NODE: [&str; 4] = ["node", "member", "u", "v"];
const NODES: [&str; 3] = ["nodes", "members", "vertices"];

/// Whether something of this name and type is a node as a plain number, or has one in it. `nodes: usize` counts them.
fn is_plain_node(name: &str, of_type: &str) -> bool {
    let mut words = of_type.split(|c: char| !c.is_alphanumeric() && c != '_');
    let number = words.any(|word| matches!(word, "usize" | "u32" | "u16"));
    let many = of_type.contains(['[', '<']);
    number && (NODE.contains(&name) || (NODES.contains(&name) && many))
}

/// What is declared between brackets, and what stands around them: parted where a parameter or a field ends, not within
/// the brackets of a type.
fn declarations(declared: &str) -> Vec<&str> {
    // Brackets that are open within a type: `Vec<(usize, f64)>`, `impl Fn(usize, usize) -> bool`.
    let (mut parts, mut start, mut depth, mut in_type, mut before) = (vec![], 0, 0, false, ' ');
    for (at, c) in declared.char_indices() {
        match c {
            ':' if depth == 0 && declared[at..].starts_with(": ") => in_type = true,
            '(' | '<' | '[' if in_type => depth += 1,
            '>' if in_type && before == '-' => {}
            ')' | '>' | ']' if in_type && depth > 0 => depth -= 1,
            '(' | ')' | ',' | '{' | '>' if depth == 0 => {
                parts.push(&declared[start..at]);
                (start, in_type) = (at + 1, false);
            }
            _ => {}
        }
        before = c;
    }
    parts.push(&declared[start..]);
    parts
}

/// Where a node crosses the border of a module as a plain number, known by its name: parameters of functions that others may
/// call, what a function of such a name returns, fields that others may read.
fn broken_by_plain_nodes(file: &str, code: &str) -> Vec<String> {
    if PLAIN_NODES.iter().any(|room| file.starts_with(room)) {
        return vec![];
    }
    let mut broken = vec![];
    // What a trait declares and the fields of an enum are seen as far as trait and enum are.
    let (mut item, mut in_trait, mut in_enum) = (String::new(), false, false);
    for line in code.lines() {
        let line_starts = |word: &str| line.trim_start().starts_with(word);
        if !line.starts_with(' ') && !line.is_empty() {
            let seen = |kind: &str| line_starts("pub") && line.contains(kind);
            (in_trait, in_enum) = (seen(" trait "), seen(" enum "));
        }
        let starts = line_starts("pub") || in_enum || (in_trait && line_starts("fn "));
        if !starts && item.is_empty() {
            continue;
        }
        item += line.trim();
        // A signature goes on to its end, whatever lines it takes; a field ends with its line.
        if item.contains("fn ") && !item.contains(['{', ';']) {
            continue;
        }
        let declared = std::mem::take(&mut item);
        let named = declarations(&declared).into_iter().filter_map(|part| part.split_once(": "));
        let function = declared.split_once("fn ").zip(declared.rsplit_once(" -> "));
        let called =
            function.map(|((_, rest), (_, returned))| (rest.split(['(', '<']).next().unwrap_or_default(), returned));
        for (name, of_type) in named.chain(called) {
            let name = name.rsplit(' ').next().unwrap_or_default();
            let of_type = of_type.trim_end_matches(['{', '}', ';', ' ']);
            if is_plain_node(name, of_type) {
                broken.push(format!("{file}: {name} is {of_type}, not a NodeIndex"));
            }
        }
    }
    broken
}

/// A kind of profile: its variant of `Profile`, the method of a workload that gives a profile of it, the id of its family.
struct Kind {
    variant: &'static str,
    method: &'static str,
    id: &'static str,
}

/// Every kind.
const KINDS: [Kind; 5] = [
    Kind { variant: "Piper", method: "piper", id: "pipelines" },
    Kind { variant: "Placement", method: "placement", id: "placements" },
    Kind { variant: "Operators", method: "operators", id: "operators" },
    Kind { variant: "Layers", method: "layers", id: "layers" },
    Kind { variant: "Training", method: "training", id: "training" },
];

/// Whether a file may ask for the kind of a workload: families, the workload itself, a planner's own folder.
fn may_ask_for_kind(file: &str) -> bool {
    let of_planner = file.strip_prefix("planner/").is_some_and(|rest| rest.contains('/'));
    of_planner || file.starts_with("family/") || file.starts_with("workload/")
}

/// Questions for the kind of a workload where its family should be asked: `workload.piper()`, `Profile::Piper`, and a
/// comparison with a family's id.
fn broken_by_kind(file: &str, code: &str) -> Vec<String> {
    if may_ask_for_kind(file) {
        return vec![];
    }
    let all = KINDS.iter().flat_map(|Kind { variant, method, id }| {
        [
            format!("Profile::{variant}"),
            format!(".{method}()"),
            format!("Workload::{method}"),
            format!(".id() == \"{id}\""),
            format!(".id() != \"{id}\""),
        ]
    });
    let questions = all.filter(|question| code.contains(question.as_str()));
    questions.map(|question| format!("{file} asks for the kind of a workload: {question}")).collect()
}

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

#[test]
fn every_room_uses_only_those_above_it() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = vec![];
    sources(&root, &mut files);
    assert!(files.len() > 300, "{}", files.len());
    let mut all = vec![];
    for path in files {
        let file = path.strip_prefix(&root).expect("below src").to_string_lossy().replace('\\', "/");
        let file = file.strip_prefix("core/").unwrap_or(&file).to_string();
        all.extend(broken(&file, &fs::read_to_string(&path).expect("readable")));
    }
    assert!(all.is_empty(), "{}", all.join("\n"));
}

#[test]
fn the_map_in_the_crate_documentation_is_this_order() {
    let lib = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs")).expect("readable");
    let rows = lib.lines().filter_map(|line| line.strip_prefix("//! | [`")?.split('`').next());
    let places: Vec<usize> = rows.map(|room| ROOMS.iter().position(|name| *name == room).expect(room)).collect();
    assert!(places.len() > 12 && places.is_sorted(), "{places:?}");
}

#[test]
fn an_import_against_the_order_is_found() {
    let upwards = "use crate::{\n    graph::Dag,\n    planner::{self, Search as Other},\n};\n";
    assert_eq!(broken("plan/mod.rs", upwards), ["plan/mod.rs imports planner, which stands behind it"]);
    assert_eq!(broken("study/mod.rs", upwards), Vec::<String>::new());
    let inline = "fn f() { let x = crate::cli::run(); } // crate::tui::model\n";
    assert_eq!(broken("export/x.rs", inline), ["export/x.rs imports cli, which stands behind it"]);
    let other = "use crate::planner::{options::Options, piper::bisection::Bounds};\n";
    assert_eq!(broken("planner/dapple/x.rs", other), ["planner/dapple/x.rs of planner/dapple imports planner/piper"]);
    assert_eq!(broken("planner/mod.rs", other), Vec::<String>::new());
    let tested = "use crate::graph::Dag;\n\n#[cfg(test)]\nmod tests {\n    use crate::planner::all;\n}\n";
    assert_eq!(broken("plan/mod.rs", tested), Vec::<String>::new());
    assert_eq!(broken("nowhere/mod.rs", ""), ["nowhere/mod.rs: the room nowhere has no place in the order"]);
}

#[test]
fn a_view_that_knows_another_is_found() {
    let import = "use crate::tui::{model::Model, views::{Room, sweep::curves}};\n";
    let told = ["tui/views/stages/draw.rs of tui/views/stages imports tui/views/sweep"];
    assert_eq!(broken("tui/views/stages/draw.rs", import), told);
    assert_eq!(broken("tui/views/stages/draw.rs", "use super::super::sweep::curves;\n"), told);
    assert_eq!(
        broken("tui/views/stages/mod.rs", "use super::{Room, sweep::curves};\n"),
        ["tui/views/stages/mod.rs of tui/views/stages imports tui/views/sweep"]
    );
    let state = "fn f(model: &Model) -> usize { model.views.stages.rows() + model.views.devices.cursor }\n";
    assert_eq!(
        broken("tui/views/stages/draw.rs", state),
        ["tui/views/stages/draw.rs reaches into the state of devices"]
    );
    let decision = "fn f(view: View) -> bool { view == View::Sweep || View::ALL.len() == 2 }\n";
    assert_eq!(broken("tui/update.rs", decision), ["tui/update.rs asks for the view Sweep"]);
    assert_eq!(broken("tui/views/sweep/state.rs", decision), Vec::<String>::new());
    assert_eq!(broken("tui/tour.rs", "const SHOW: Action = Action::Show(View::Sweep);\n"), Vec::<String>::new());
}

#[test]
fn a_question_for_the_kind_of_a_workload_is_found() {
    let question = "fn f(workload: &Workload) -> bool { workload.piper().is_some() }\n";
    let told = ["study/rivals.rs asks for the kind of a workload: .piper()"];
    assert_eq!(broken("study/rivals.rs", question), told);
    let path = "fn f(w: Option<&Workload>) -> bool { w.and_then(Workload::operators).is_some() }\n";
    assert_eq!(broken("tui/ask.rs", path), ["tui/ask.rs asks for the kind of a workload: Workload::operators"]);
    let decision = "fn f(w: &Workload) -> u32 { match &w.profile { Profile::Layers(_) => 1, _ => 2 } }\n";
    assert_eq!(broken("cli/report.rs", decision), ["cli/report.rs asks for the kind of a workload: Profile::Layers"]);
    let id = "fn f(w: &Workload) -> bool { family::of(w).id() == \"placements\" }\n";
    assert_eq!(broken("export/x.rs", id), ["export/x.rs asks for the kind of a workload: .id() == \"placements\""]);
    assert_eq!(broken("planner/even.rs", question).len(), 1);
    for file in ["family/edit/cut.rs", "workload/lint/mod.rs", "planner/piper/mod.rs"] {
        assert_eq!(broken(file, question), Vec::<String>::new());
    }
    let tested = format!("#[cfg(test)]\nmod tests {{\n{question}}}\n");
    assert_eq!(broken("study/rivals.rs", &tested), Vec::<String>::new());
}

#[test]
fn the_kinds_are_those_of_the_source() {
    let read = |file: &str| code_of(&fs::read_to_string(place_of(file)).expect("readable"));
    let workload = read("workload/mod.rs");
    let (_, variants) = workload.split_once("pub enum Profile {").expect("the kinds");
    let variants = variants.split('}').next().unwrap_or_default();
    let variants: Vec<&str> = variants.lines().filter_map(|line| Some(line.trim().split_once('(')?.0)).collect();
    assert_eq!(KINDS.map(|kind| kind.variant).to_vec(), variants);
    let mut families = vec![];
    sources(&place_of("family"), &mut families);
    let families: String = families.iter().map(|file| fs::read_to_string(file).expect("readable")).collect();
    let ids = families.split("fn id(&self) -> &'static str {").skip(1);
    let ids: BTreeSet<&str> = ids.filter_map(|body| body.split('"').nth(1)).collect();
    assert_eq!(BTreeSet::from(KINDS.map(|kind| kind.id)), ids);
    assert!(KINDS.iter().all(|kind| workload.contains(&format!("pub fn {}(&self)", kind.method))));
}

#[test]
fn a_drawing_that_could_change_the_model_is_found() {
    let one = "pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, model: &mut Model) {\n}\n";
    assert_eq!(broken("tui/views/stages/draw.rs", one), ["tui/views/stages/draw.rs: draw draws and takes &mut Model"]);
    let many = "fn draw_map(\n    area: Rect,\n    model: &mut Model,\n) -> u16 {\n}\n\nfn g(model: &Model) {}\n";
    assert_eq!(broken("tui/paint/map.rs", many), ["tui/paint/map.rs: draw_map draws and takes &mut Model"]);
    let other = "fn line(room: [u16; 4], model: &mut Model, buffer: &mut Buffer);\n";
    assert_eq!(broken("tui/frame/panel.rs", other), ["tui/frame/panel.rs: line draws and takes &mut Model"]);
    let show = "pub(super) fn show(frame: &mut Frame<'_>, model: &mut Model) {}\n";
    assert_eq!(broken("tui/frame/mod.rs", show), Vec::<String>::new());
    assert_eq!(broken("tui/frame/help.rs", show).len(), 1);
    let reads = "fn draw(frame: &mut Frame<'_>, model: &Model, marks: &mut Marks) {}\nfn act(model: &mut Model) {}\n";
    assert_eq!(broken("tui/views/stages/draw.rs", reads), Vec::<String>::new());
}

#[test]
fn a_node_that_crosses_a_border_as_a_plain_number_is_found() {
    let one = "impl Plan {\n    /// The stage of a node.\n    pub fn stage_of(&self, node: usize) -> Option<usize> {\n    }\n}\n";
    assert_eq!(broken("plan/mod.rs", one), ["plan/mod.rs: node is usize, not a NodeIndex"]);
    let many = "pub(crate) fn cut(\n    plan: &Plan,\n    members: &[usize],\n    v: u32,\n) -> u16 {\n}\n";
    assert_eq!(
        broken("export/x.rs", many),
        ["export/x.rs: members is &[usize], not a NodeIndex", "export/x.rs: v is u32, not a NodeIndex"]
    );
    let field = "pub struct Stage {\n    /// Its nodes.\n    pub nodes: Vec<usize>,\n    first: usize,\n}\n";
    assert_eq!(broken("plan/mod.rs", field), ["plan/mod.rs: nodes is Vec<usize>, not a NodeIndex"]);
    let declared = "pub trait Describe {\n    fn weight(&self, node: usize) -> f64;\n}\n";
    assert_eq!(broken("family/describe.rs", declared), ["family/describe.rs: node is usize, not a NodeIndex"]);
    let variant = "pub enum Edit {\n    /// Elsewhere.\n    Move {\n        nodes: Vec<usize>,\n    },\n}\n";
    assert_eq!(broken("family/edit.rs", variant), ["family/edit.rs: nodes is Vec<usize>, not a NodeIndex"]);
    let pass = "pub fn f(nodes: impl Iterator<Item = u32>, runs: &[Vec<usize>]) {\n}\n";
    assert_eq!(broken("study/x.rs", pass), ["study/x.rs: nodes is impl Iterator<Item = u32>, not a NodeIndex"]);
    let given = "impl States {\n    pub fn nodes(&self, from: usize, to: usize) -> Vec<usize> {\n    }\n}\n";
    assert_eq!(
        broken("workload/states/mod.rs", given),
        ["workload/states/mod.rs: nodes is Vec<usize>, not a NodeIndex"]
    );
    let within = "pub(crate) struct Told {\n    pub(crate) nodes: Vec<(usize, f64)>,\n}\n\npub fn f<F: Fn(u32) -> u32>(members: &FxHashMap<u32, f64>, of: F, node: u32) {\n}\n\npub fn nodes(of: &Plan) -> impl Iterator<Item = usize> + '_ {\n}\n";
    assert_eq!(
        broken("study/x.rs", within),
        [
            "study/x.rs: nodes is Vec<(usize, f64)>, not a NodeIndex",
            "study/x.rs: members is &FxHashMap<u32, f64>, not a NodeIndex",
            "study/x.rs: node is u32, not a NodeIndex",
            "study/x.rs: nodes is impl Iterator<Item = usize> + '_, not a NodeIndex"
        ]
    );
    // Counts, what stays within a module, what a planner or a graph does with its own numbers.
    let counts = "pub struct Part {\n    pub nodes: usize,\n    members: Vec<usize>,\n}\n\nfn f(node: usize) {\n}\n";
    assert_eq!(broken("plan/mod.rs", counts), Vec::<String>::new());
    let inside = "pub fn f(node: NodeIndex) {\n    let at = |v: usize| v;\n    let nodes: Vec<usize> = vec![];\n}\n";
    assert_eq!(broken("plan/mod.rs", inside), Vec::<String>::new());
    assert_eq!(broken("planner/piper/mod.rs", one), Vec::<String>::new());
    assert_eq!(broken("graph/dag.rs", many), Vec::<String>::new());
}
