"""Plan how a neural network is cut over many devices.

A thin, typed layer over the program ``plantui`` that this package installs: a process of it
answers the calls with its JSON.

>>> import plantui
>>> workload = plantui.generate("llama-3-8b", hardware="h100", devices=16, microbatches=128)
>>> plan = plantui.plan(workload, planner="joint")
>>> plan.status in ("optimal", "feasible"), plan.devices <= 16
(True, True)
>>> plan.simulate(schedule="1f1b").bubble < 0.5
True

Errors are exceptions that carry the program's sentence, its hint and its exit code: `NoPlan`, `WrongUse`, `Stopped`, `Bug`.
The program's notes go to the logger ``plantui``.
"""

from plantui._calls import load_plan
from plantui._command import Bug, NoPlan, PlantuiError, Stopped, WrongUse, binary
from plantui._progress import progress_bars
from plantui._results import (
    Binding,
    Bottleneck,
    Calibration,
    Change,
    Check,
    Comparison,
    Entry,
    Estimate,
    Explanation,
    Findings,
    Goal,
    History,
    Job,
    Layout,
    Layouts,
    Objective,
    Operator,
    Plan,
    SimulatedStage,
    Simulation,
    Stage,
    Sweep,
    Table,
    Workload,
    history,
)
from plantui._signatures import (
    calibrate,
    check,
    compare,
    convert,
    estimate,
    explain,
    export,
    generate,
    hardware,
    import_job,
    lint,
    map,
    plan,
    planners,
    seek,
    simulate,
    sweep,
    terms,
    topologies,
)

__all__ = [
    "Binding",
    "Bottleneck",
    "Bug",
    "Calibration",
    "Change",
    "Check",
    "Comparison",
    "Entry",
    "Estimate",
    "Explanation",
    "Findings",
    "Goal",
    "History",
    "Job",
    "Layout",
    "Layouts",
    "NoPlan",
    "Objective",
    "Operator",
    "Plan",
    "PlantuiError",
    "SimulatedStage",
    "Simulation",
    "Stage",
    "Stopped",
    "Sweep",
    "Table",
    "Workload",
    "WrongUse",
    "binary",
    "calibrate",
    "check",
    "compare",
    "convert",
    "estimate",
    "explain",
    "export",
    "generate",
    "hardware",
    "history",
    "import_job",
    "lint",
    "load_plan",
    "map",
    "plan",
    "planners",
    "progress_bars",
    "seek",
    "simulate",
    "sweep",
    "terms",
    "topologies",
]
