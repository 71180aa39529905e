"""The calls: each is one subcommand of the program."""

from __future__ import annotations

import json
import numbers
import os
import re
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, List, Mapping, Optional, Sequence, Tuple, TypedDict, Union, cast

from plantui import _command
from plantui._results import Check, Comparison, Explanation, Plan, Sweep, Workload, flags_of

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["Limits", "check", "compare", "explain", "generate", "load_plan", "plan", "sweep"]

PathLike = Union[str, "os.PathLike[str]"]
Value = Union[str, int, float, bool]


class Limits(TypedDict, total=False):
    """Limits, the same for every call; what is not given is read from the workload.

    Sizes and rates are text with a unit (`"80GiB"`, `"25GB/s"`) or a number of bytes or bytes per second. Those from
    `hardware` on are of models that are trained: a `config.json` or a model's name.
    """

    devices: int
    cpus: int
    memory: Union[str, float]
    microbatches: int
    bandwidth: Union[str, float]
    batch: int
    machines: Union[str, Sequence[int]]
    flops: Union[str, float]
    topology: PathLike
    hardware: str
    global_batch: int
    sequence_length: int
    precision: str
    stack: str
    reserve: Union[str, float]
    calibration: PathLike


def plan(
    workload: Union[Workload, PathLike],
    *,
    planner: Optional[str] = None,
    options: Optional[Mapping[str, Value]] = None,
    deadline: Optional[Union[str, float]] = None,
    threads: Optional[int] = None,
    seed: Optional[int] = None,
    **limits: Unpack[Limits],
) -> Plan:
    """Plans a workload: a file in any of the formats, a model's name, or what `generate` made.

    A Hugging Face `config.json` or a name such as `llama-3-70b` is a model to be trained: `plan.configuration` says how.
    `planner` is an id of `plantui planners`, else the first that can plan the workload; `options` are its options;
    `deadline` is in seconds or text such as `"2min"`. Raises `NoPlan` with what would be just enough, `WrongUse`, `Stopped`.

    >>> import plantui
    >>> plan = plantui.plan(plantui.generate("tiny-branch"), devices=4, memory="1GB", planner="piper")
    >>> plan.status, plan.devices
    ('optimal', 3)
    >>> plantui.plan(plantui.generate("tiny-branch"), devices=1)
    Traceback (most recent call last):
    plantui._command.NoPlan: No feasible plan on 1 device of 1 GB. Feasible with 1 x 1.97 GB, or with 3 x 1 GB. Searched: linear pipelines with uniform TP and DP.
    >>> trained = plantui.plan("llama-3-70b", hardware="h100", devices=64, global_batch=128)
    >>> trained.configuration["tp"], trained.configuration["pp"]
    (4, 4)
    """
    known = _workload(workload)
    call = ["plan", str(known.path), *_limits(limits), *_planning(planner, options, deadline, threads, seed)]
    return Plan._of(known, _command.document(call))


def load_plan(workload: Union[Workload, PathLike], path: PathLike) -> Plan:
    """Reads a plan that `Plan.save` or `plantui plan --json` wrote.

    >>> import plantui, tempfile
    >>> workload = plantui.generate("tiny-branch")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = plantui.plan(workload).save(f"{folder}/plan.json")
    ...     len(plantui.load_plan(workload, path).stages)
    2
    """
    return Plan._of(_workload(workload), json.loads(Path(path).read_text(encoding="utf-8")))


def check(workload: Union[Workload, PathLike], plan: Union[Plan, PathLike], **limits: Unpack[Limits]) -> Check:
    """Validates and scores a plan from the workload alone: ours, or one in a published program's format.

    >>> import plantui
    >>> workload = plantui.generate("tiny-branch")
    >>> plantui.check(workload, plantui.plan(workload)).valid
    True
    """
    known = _workload(workload)
    if isinstance(plan, Plan):
        call, text = ["check", str(known.path), "-"], plan._text()
    else:
        call, text = ["check", str(known.path), str(plan)], None
    return Check._of(_command.document([*call, *_limits(limits)], text, accept=(0, 1)))


def compare(
    workload: Union[Workload, PathLike],
    *,
    planners: Sequence[str] = (),
    plans: Sequence[Union[Plan, PathLike]] = (),
    deadline: Optional[Union[str, float]] = None,
    seed: Optional[int] = None,
    schedule: Optional[str] = None,
    **limits: Unpack[Limits],
) -> Comparison:
    """Every planner that can, or those named, and plans at hand or from files, scored by one simulator.

    >>> import plantui
    >>> workload = plantui.generate("tiny-branch")
    >>> both = plantui.compare(workload, planners=["piper", "equal-partition"])
    >>> sorted(entry.id for entry in both)
    ['equal-partition', 'piper']
    >>> len(plantui.compare(workload, planners=["piper"], plans=[plantui.plan(workload)]))
    2
    """
    with tempfile.TemporaryDirectory(prefix="plantui-") as folder:
        # The first of a planner has its id as its name.
        names: List[str] = []
        for plan in plans:
            if isinstance(plan, Plan):
                name = plan.planner or "plan"
                taken = sum(Path(other).stem.split("-no")[0] == name for other in names)
                names.append(str(plan.save(Path(folder) / (f"{name}-no{taken + 1}.json" if taken else f"{name}.json"))))
            else:
                names.append(str(plan))
        call = ["compare", str(_workload(workload).path), *_limits(limits)]
        call += flags_of({"planner": list(planners), "plan": names, "schedule": schedule})
        call += _planning(None, None, deadline, None, seed)
        return Comparison._of(_command.document(call, accept=(0, 1)))


def explain(
    workload: Union[Workload, PathLike],
    *,
    planner: Optional[str] = None,
    options: Optional[Mapping[str, Value]] = None,
    deadline: Optional[Union[str, float]] = None,
    each: Optional[Union[str, float]] = None,
    threads: Optional[int] = None,
    seed: Optional[int] = None,
    **limits: Unpack[Limits],
) -> Explanation:
    """What limits a plan, which limit binds, and what would help; every figure is that of a re-plan.

    >>> import plantui
    >>> plantui.explain(plantui.generate("tiny-branch")).bottleneck.name
    'stage 1'
    """
    call = ["explain", str(_workload(workload).path), *_limits(limits), *flags_of({"each": _time(each)})]
    call += _planning(planner, options, deadline, threads, seed)
    return Explanation._of(_command.document(call))


def sweep(
    workload: Union[Workload, PathLike, Sequence[Union[Workload, PathLike]]],
    *,
    series: Sequence[str] = (),
    planners: Sequence[str] = (),
    options: Optional[Mapping[str, Value]] = None,
    deadline: Optional[Union[str, float]] = None,
    threads: Optional[int] = None,
    seed: Optional[int] = None,
    shard: Optional[Tuple[int, int]] = None,
    resume: Sequence[PathLike] = (),
    **limits: Union[Value, Iterable[Value], PathLike],
) -> Sweep:
    """Plans over one or two limits: a limit takes a value, values, or text such as `"8..64:x2"`.

    `shard=(3, 16)` answers the third of sixteen shares. With `to_pandas()` the points are a table.

    >>> import plantui
    >>> points = plantui.sweep(plantui.generate("tiny-branch"), devices="3..4:+1", memory=["1GB", "2GB"])
    >>> len(points), points[0]["unit"]
    (4, 's')
    """
    one = isinstance(workload, (str, os.PathLike, Workload))
    several = cast("Sequence[Union[Workload, PathLike]]", [workload] if one else workload)
    call = ["sweep", *(str(_workload(one).path) for one in several)]
    call += flags_of({name: _values(value) for name, value in limits.items()})
    call += flags_of({"series": list(series), "planner": list(planners), "resume": [str(path) for path in resume]})
    call += flags_of({"shard": f"{shard[0]}/{shard[1]}" if shard else None})
    call += _planning(None, options, deadline, threads, seed)
    return Sweep._of(_command.document(call, accept=(0, 1)))


def generate(model: PathLike, *, hardware: Optional[str] = None, **flags: Any) -> Workload:
    """A workload from a model preset or a Hugging Face `config.json`, and a hardware preset.

    Further arguments are flags of `plantui generate`: `devices=16`, `microbatches=64`, `state_bytes=18`. The file lives as
    long as the workload does; `save` keeps it.

    >>> import plantui
    >>> plantui.plan(plantui.generate("llama-3-8b", hardware="h100", devices=16, microbatches=128)).devices
    16
    """
    told = flags_of({"hardware": hardware, **flags})
    text = _command.run(["generate", str(model), *told])
    # Named after what it was made with: beside one another two workloads are told apart.
    path = Path(model)
    words = [path.stem if path.suffix == ".json" else path.name, *(word.removeprefix("--") for word in told)]
    name = "-".join(re.sub(r"[^A-Za-z0-9.]+", "-", word).strip("-") for word in words)
    return Workload._of_text(text, f"{name[:100]}.json")


def _workload(workload: Union[Workload, PathLike]) -> Workload:
    return workload if isinstance(workload, Workload) else Workload(workload)


def _limits(limits: Limits) -> List[str]:
    return flags_of({name: _values(value) for name, value in limits.items()})


def _values(value: object) -> str:
    """A limit as the command line takes it: several values with commas."""
    if isinstance(value, (str, os.PathLike, numbers.Real)):
        return str(value)
    if isinstance(value, Iterable):
        return ",".join(str(one) for one in value)
    raise TypeError(f"{value!r} is no limit: give text, a number, or several of them")


def _time(value: Optional[Union[str, float]]) -> Optional[str]:
    return value if value is None or isinstance(value, str) else f"{value}s"


def _planning(
    planner: Optional[str],
    options: Optional[Mapping[str, Value]],
    deadline: Optional[Union[str, float]],
    threads: Optional[int],
    seed: Optional[int],
) -> List[str]:
    settings = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in (options or {}).items()]
    flags = {"planner": planner, "set": settings, "deadline": _time(deadline), "threads": threads, "seed": seed}
    return flags_of(flags)
