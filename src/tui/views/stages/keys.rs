//! Tab and keys of the view.

use crate::tui::{
    action::{Action as A, Entry, Scope as S, entry},
    views::list::{Tab, Uses},
};

/// Tab of the view.
pub(in crate::tui) const TAB: Tab = Tab {
    title: "Stages",
    help: "layers and devices of each stage",
    uses: Uses { plan: true, help: true, ..Uses::NONE },
    scopes: &[S::Stages, S::Tree],
};

/// Keys of the view. If two entries have the same key, the first wins.
pub(in crate::tui) const KEYS: &[Entry] = &[
    entry(
        S::Stages,
        A::BoundaryBack,
        &["["],
        "Boundary back",
        "move the stage's boundary one layer back; a selected layer to the previous stage",
        "move a boundary",
    ),
    entry(
        S::Stages,
        A::BoundaryForward,
        &["]"],
        "Boundary on",
        "move the stage's boundary one layer on; a selected layer to the next stage",
        "",
    ),
    entry(S::Stages, A::MoreReplicas, &["d"], "More replicas", "the next data-parallel degree of the stage", ""),
    entry(S::Stages, A::FewerReplicas, &["D"], "Fewer replicas", "the previous data-parallel degree", ""),
    entry(S::Stages, A::LargerTensor, &["t"], "Larger tensor degree", "the next tensor degree of its layers", ""),
    entry(S::Stages, A::SmallerTensor, &["T"], "Smaller tensor degree", "the previous tensor degree", ""),
    entry(
        S::Stages,
        A::NextMode,
        &["r"],
        "Recompute",
        "the next mode of a layer or of the whole stage; of an operator the next split",
        "",
    ),
    entry(S::Stages, A::PreviousMode, &["R"], "Recompute, back", "the previous mode or split", ""),
    entry(S::Stages, A::Merge, &["M"], "Merge", "merge the stage with the next one", ""),
    entry(S::Stages, A::Split, &["s"], "Split", "split the stage, at the selected layer or in the middle", ""),
    entry(S::Stages, A::Undo, &["u"], "Undo", "undo the last edit", ""),
    entry(S::Stages, A::Redo, &["U"], "Redo", "redo the undone edit", ""),
    entry(S::Stages, A::PlannersPlan, &["0"], "Planner's plan", "leave the edited plan; u restores it", ""),
    entry(S::Tree, A::Unfold, &["right"], "Unfold", "show what is inside", ""),
    entry(S::Tree, A::Fold, &["left"], "Fold", "hide what is inside, or go to the parent", ""),
    entry(S::Tree, A::Toggle, &["enter", "space"], "Fold or unfold", "show or hide what is inside", "unfold"),
    entry(S::Tree, A::UnfoldAll, &["*"], "Unfold all", "show everything", ""),
    entry(S::Tree, A::FoldAll, &["-"], "Fold all", "show only the top", ""),
    entry(S::Tree, A::Find, &["/"], "Find", "go to the next row with a text in it", "find"),
    entry(S::Tree, A::FindNext, &["n"], "Find next", "the next row with the text", ""),
    entry(S::Tree, A::FindPrevious, &["N"], "Find previous", "the previous row with the text", ""),
];
