"""Plan how a neural network is cut over many devices.

A thin, typed layer over the program ``plantui`` that this package installs: every call runs it and reads its JSON.

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

from plantui._calls import Limits, check, compare, explain, generate, load_plan, plan, sweep
from plantui._command import Bug, NoPlan, PlantuiError, Stopped, WrongUse, binary
from plantui._results import (
    Binding,
    Bottleneck,
    Change,
    Check,
    Comparison,
    Entry,
    Explanation,
    Objective,
    Operator,
    Plan,
    SimulatedStage,
    Simulation,
    Stage,
    Sweep,
    Workload,
)

__all__ = [
    "Binding",
    "Bottleneck",
    "Bug",
    "Change",
    "Check",
    "Comparison",
    "Entry",
    "Explanation",
    "Limits",
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
    "Workload",
    "WrongUse",
    "binary",
    "check",
    "compare",
    "explain",
    "generate",
    "load_plan",
    "plan",
    "sweep",
]
