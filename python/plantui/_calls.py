"""Calls: arguments become a command, its document becomes a result."""

from __future__ import annotations

import json
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast

from plantui import _command
from plantui._arguments import PathLike, PlanLike, WorkloadLike, flags
from plantui._results import (
    Calibration,
    Check,
    Comparison,
    Estimate,
    Explanation,
    Findings,
    Goal,
    Job,
    Plan,
    Simulation,
    Sweep,
    Table,
    Workload,
    history,
)

Given = Mapping[str, Any]


def given(arguments: Dict[str, Any], *positional: str) -> Given:
    """The named arguments of a call that were given."""
    return {name: value for name, value in arguments.items() if name not in positional and value is not None}


def plan(workload: WorkloadLike, arguments: Given) -> Plan:
    known = as_workload(workload)
    call = ["plan", str(known), *flags("plan", arguments)]
    document = _command.document(call)
    if isinstance(document, list):
        raise TypeError("several values of a limit are several plans: plantui.sweep takes them")
    made = Plan._of(known, document)
    history.append(made)
    return made


def load_plan(workload: WorkloadLike, path: PathLike) -> Plan:
    """Reads a plan that `Plan.save` or `plantui plan --json` wrote.

    >>> import plantui, tempfile
    >>> workload = plantui.generate("tiny-branch")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = plantui.plan(workload).save(f"{folder}/plan.json")
    ...     len(plantui.load_plan(workload, path).stages)
    2
    """
    return Plan._of(as_workload(workload), json.loads(Path(path).read_text(encoding="utf-8")))


def check(workload: WorkloadLike, plan: PlanLike, arguments: Given) -> Check:
    file, text = _plan(plan)
    call = ["check", str(as_workload(workload)), file, *flags("check", arguments)]
    return Check._of(_command.document(call, text, accept=(0, 1)))


def compare(workload: WorkloadLike, arguments: Given) -> Comparison:
    known = as_workload(workload)
    with tempfile.TemporaryDirectory(prefix="plantui-") as folder:
        # The first of a planner has its id as its name.
        names: List[PathLike] = []
        for plan in arguments.get("plans", ()):
            if isinstance(plan, Plan):
                name = plan.planner or "plan"
                taken = sum(Path(other).stem.split("-no")[0] == name for other in names)
                names.append(plan.save(Path(folder) / (f"{name}-no{taken + 1}.json" if taken else f"{name}.json")))
            else:
                names.append(plan)
        call = ["compare", str(known), *flags("compare", {**arguments, "plans": names})]
        return Comparison._of(_command.document(call, accept=(0, 1)))


def estimate(model: WorkloadLike, arguments: Given) -> Estimate:
    return Estimate._of(_command.document(["estimate", str(as_workload(model)), *flags("estimate", arguments)]))


def calibrate(model: Optional[PathLike], arguments: Given) -> Calibration:
    with tempfile.TemporaryDirectory(prefix="plantui-") as folder:
        path = Path(folder) / "calibration.json"
        call = ["calibrate", *([os.fspath(model)] if model is not None else []), "--write", str(path)]
        document = _command.document([*call, *flags("calibrate", arguments)])
        return Calibration._of(document, path.read_text(encoding="utf-8") if path.exists() else None)


def explain(workload: WorkloadLike, arguments: Given) -> Explanation:
    return Explanation._of(_command.document(["explain", str(as_workload(workload)), *flags("explain", arguments)]))


def map(workload: WorkloadLike, plan: PlanLike, arguments: Given) -> Plan:
    known = as_workload(workload)
    file, text = _plan(plan)
    return Plan._of(known, _command.document(["map", str(known), file, *flags("map", arguments)], text))


def seek(workload: WorkloadLike, arguments: Given) -> Goal:
    known = as_workload(workload)
    return Goal._of(known, _command.document(["seek", str(known), *flags("seek", arguments)], accept=(0, 1)))


def sweep(workload: Union[WorkloadLike, Sequence[WorkloadLike]], arguments: Given) -> Sweep:
    one = isinstance(workload, (str, os.PathLike, Workload))
    several = cast("Sequence[WorkloadLike]", [workload] if one else workload)
    call = ["sweep", *(str(as_workload(one)) for one in several), *flags("sweep", arguments)]
    return Sweep._of(_command.document(call, accept=(0, 1)))


def simulate(workload: WorkloadLike, plan: Optional[PlanLike], arguments: Given) -> Simulation:
    file, text = _plan(plan) if plan is not None else (None, None)
    call = ["simulate", str(as_workload(workload)), *([file] if file else []), *flags("simulate", arguments)]
    return Simulation._of(_command.document(call, text), call, text)


def export(plan: PlanLike, arguments: Given) -> str:
    file, text = _plan(plan)
    if isinstance(plan, Plan) and "workload" not in arguments:
        arguments = {**arguments, "workload": str(plan.workload)}
    return _command.run(["export", file, *flags("export", arguments)], text)


def lint(workload: WorkloadLike, arguments: Given) -> Findings:
    return Findings._of(_command.document(["lint", str(as_workload(workload)), *flags("lint", arguments)], accept=(0, 1, 2)))


def convert(workload: WorkloadLike, arguments: Given) -> Workload:
    known = as_workload(workload)
    text = _command.run(["convert", str(known), *flags("convert", arguments)])
    suffix = ".txt" if arguments["to"] == "pipedream" else ".json"
    return Workload._of_text(text, f"{known.name}{suffix}")


def import_job(job: PathLike, arguments: Given) -> Job:
    with tempfile.TemporaryDirectory(prefix="plantui-") as folder:
        workload, plan = Path(folder) / f"{Path(job).stem}.json", Path(folder) / "plan.json"
        call = ["import", os.fspath(job), *flags("import", arguments)]
        document = _command.document([*call, "--workload", str(workload), "--plan", str(plan)], accept=(0, 1))
        known = Workload._of_text(workload.read_text(encoding="utf-8"), workload.name) if workload.exists() else None
        runs = json.loads(plan.read_text(encoding="utf-8")) if plan.exists() else None
        return Job._of(document, known, Plan._of(known, runs) if known and runs else None)


def generate(model: PathLike, arguments: Given) -> Workload:
    told = flags("generate", arguments)
    text = _command.run(["generate", os.fspath(model), *told])
    # Named after what it was made with: beside one another two workloads are told apart.
    path = Path(model)
    words = [path.stem if path.suffix == ".json" else path.name, *(word.removeprefix("--") for word in told)]
    name = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-") for word in words)
    return Workload._of_text(text, f"{name[:100]}.json")


def planners() -> Table:
    return Table(_command.document(["planners"]))


def hardware() -> Table:
    return Table(_command.document(["hardware"]))


def topologies(topology: Optional[PathLike], arguments: Given) -> Table:
    named = [os.fspath(topology)] if topology is not None else []
    document = _command.document(["topologies", *named, *flags("topologies", arguments)])
    return Table(document if isinstance(document, list) else [document])


def terms(words: Sequence[str]) -> Table:
    return Table(_command.document(["terms", *([words] if isinstance(words, str) else words)]))


def as_workload(workload: WorkloadLike) -> Workload:
    return workload if isinstance(workload, Workload) else Workload(workload)


def _plan(plan: PlanLike) -> Tuple[str, Optional[str]]:
    """Name of a plan on the command line, and the text of standard input if it is there."""
    return ("-", plan._text()) if isinstance(plan, Plan) else (os.fspath(plan), None)
