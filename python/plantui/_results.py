"""What the program answers, as types. Times are seconds, memory is bytes, shares are 0 to 1."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Tuple, Union

from plantui import _command

if TYPE_CHECKING:
    import pandas

__all__ = [
    "Binding",
    "Bottleneck",
    "Change",
    "Check",
    "Comparison",
    "Entry",
    "Explanation",
    "Objective",
    "Operator",
    "Plan",
    "Simulation",
    "SimulatedStage",
    "Stage",
    "Sweep",
    "Workload",
]

PathLike = Union[str, "os.PathLike[str]"]
Json = Mapping[str, Any]


class Workload:
    """What is planned: a file, or what `plantui.generate` made.

    >>> import plantui
    >>> workload = plantui.generate("tiny-branch")
    >>> workload.path.suffix
    '.json'
    """

    def __init__(self, path: PathLike) -> None:
        self.path = Path(path)

    @classmethod
    def _of_text(cls, text: str, name: str) -> Workload:
        folder = tempfile.mkdtemp(prefix="plantui-")
        made = cls(Path(folder) / name)
        made.path.write_text(text, encoding="utf-8")
        weakref.finalize(made, shutil.rmtree, folder, True)
        return made

    def save(self, path: PathLike) -> Workload:
        """Copies the file and gives the copy as a workload."""
        shutil.copyfile(self.path, path)
        return Workload(path)

    def __fspath__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Workload({str(self.path)!r})"


@dataclass(frozen=True)
class Objective:
    """What the planner minimised: `time_per_sample` in `s`, `max_load` in `ms`, and so on."""

    name: str
    value: float
    unit: str

    @classmethod
    def _of(cls, part: Optional[Json]) -> Optional[Objective]:
        return None if part is None else cls(part["name"], part["value"], part["unit"])


@dataclass(frozen=True)
class Stage:
    """A part of the network with the devices it runs on.

    `nodes` are ids of the workload's file; `choices` says for a node how it runs (`vanilla`, `activation recomputation`);
    the three times add up to what the stage costs in the planner's model.
    """

    nodes: Tuple[int, ...]
    data_parallel: int
    tensor_parallel: int
    devices: Tuple[int, ...]
    choices: Mapping[str, str]
    compute_s: float
    communication_s: float
    sync_s: float
    memory_bytes: float

    @property
    def time_s(self) -> float:
        """Compute, communication and gradient all-reduce together."""
        return self.compute_s + self.communication_s + self.sync_s

    @classmethod
    def _of(cls, part: Json) -> Stage:
        return cls(
            tuple(part["nodes"]),
            part["data_parallel"],
            part["tensor_parallel"],
            tuple(part["devices"]),
            dict(part["choices"]),
            part["compute_s"],
            part["communication_s"],
            part["sync_s"],
            part["memory_bytes"],
        )


@dataclass(frozen=True)
class Operator:
    """How many ways each dimension of an operator is split (PaSE)."""

    node: int
    splits: Mapping[str, int]


@dataclass(frozen=True)
class SimulatedStage:
    """What a stage does in one simulated iteration."""

    data_parallel: int
    tensor_parallel: int
    forward_s: float
    backward_s: float
    recompute_s: float
    all_reduce_s: float
    busy_s: float
    utilization: float
    peak_memory_bytes: float


@dataclass(frozen=True)
class Simulation:
    """One batch in the simulator. `stages` is empty in the short form that comes with a plan."""

    schedule: str
    iteration_s: float
    samples_per_s: float
    bubble: float
    peak_memory_bytes: float
    stages: Tuple[SimulatedStage, ...] = ()
    notes: Tuple[str, ...] = ()
    document: Json = field(default_factory=dict, repr=False)

    @classmethod
    def _of(cls, part: Optional[Json]) -> Optional[Simulation]:
        return None if part is None else cls._read(part)

    @classmethod
    def _read(cls, part: Json) -> Simulation:
        names = SimulatedStage.__dataclass_fields__
        stages = tuple(SimulatedStage(**{name: stage[name] for name in names}) for stage in part.get("stages", ()))
        return cls(
            part["schedule"],
            part["iteration_s"],
            part["samples_per_s"],
            part["bubble"],
            part["peak_memory_bytes"],
            stages,
            tuple(part.get("notes", ())),
            part,
        )


@dataclass(frozen=True)
class Check:
    """What the independent check says of a plan; true in a condition if the plan is valid.

    >>> import plantui
    >>> bool(plantui.plan(plantui.generate("tiny-branch")).check())
    True
    """

    valid: bool
    objective: Optional[Objective]
    violations: Tuple[Json, ...]
    warnings: Tuple[Any, ...]
    simulation: Optional[Simulation]
    notes: Tuple[str, ...]
    document: Json = field(repr=False)

    def __bool__(self) -> bool:
        return self.valid

    @classmethod
    def _of(cls, part: Json) -> Check:
        return cls(
            part["valid"],
            Objective._of(part.get("objective")),
            tuple(part.get("violations", ())),
            tuple(part.get("warnings", ())),
            Simulation._of(part.get("simulation")),
            tuple(part.get("notes", ())),
            part,
        )


@dataclass(frozen=True)
class Plan:
    """A plan: stages, figures, and what can be done with it.

    `status` is `optimal` (proven) or `feasible`; `lower_bound` is proven where it is given. Of a model that is trained,
    `configuration` has its degrees (`tp`, `pp`, `vp`, `cp`, `ep`, `dp`, `mbs`) and recomputation, `prediction` its tokens a
    second, MFU and how far such predictions were off on published runs. `document` is the whole JSON document (schema
    `plantui.plan/1`).

    >>> import plantui
    >>> plan = plantui.plan(plantui.generate("tiny-branch"))
    >>> plan.planner, plan.status, len(plan.stages)
    ('joint', 'feasible', 2)
    """

    workload: Workload
    planner: str
    options: Mapping[str, Any]
    limits: Mapping[str, Any]
    status: str
    objective: Optional[Objective]
    lower_bound: Optional[float]
    stages: Tuple[Stage, ...]
    operators: Tuple[Operator, ...]
    simulation: Optional[Simulation]
    notes: Tuple[str, ...]
    configuration: Optional[Mapping[str, Any]]
    prediction: Optional[Mapping[str, Any]]
    document: Json = field(repr=False)

    @classmethod
    def _of(cls, workload: Workload, part: Json) -> Plan:
        planner = part.get("planner") or {}
        return cls(
            workload,
            planner.get("id", ""),
            dict(planner.get("options", {})),
            dict(part.get("limits") or {}),
            part["status"],
            Objective._of(part.get("objective")),
            part.get("lower_bound"),
            tuple(map(Stage._of, part["stages"])),
            tuple(Operator(one["node"], dict(one["splits"])) for one in part.get("operators", ())),
            Simulation._of(part.get("simulation")),
            tuple(part.get("notes", ())),
            part.get("configuration"),
            part.get("prediction"),
            part,
        )

    @property
    def devices(self) -> int:
        """How many devices the plan uses."""
        return len({device for stage in self.stages for device in stage.devices})

    def save(self, path: PathLike) -> Path:
        """Writes the document; `plantui check`, `simulate` and `export` read it.

        >>> import plantui, tempfile
        >>> plan = plantui.plan(plantui.generate("tiny-branch"))
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     plan.save(f"{folder}/plan.json").name
        'plan.json'
        """
        written = Path(path)
        written.write_text(self._text() + "\n", encoding="utf-8")
        return written

    def export(self, to: str, **flags: Any) -> str:
        """The plan for an engine (`megatron`, `deepspeed`, `torchtitan` ..) or as a picture, table or trace.

        Further arguments are flags of `plantui export`: `micro_batch_size=2` is `--micro-batch-size 2`, `exact=True` is
        `--exact`.

        >>> import plantui
        >>> workload = plantui.generate("llama-3-8b", hardware="h100", devices=16, microbatches=64)
        >>> "--pipeline-model-parallel-size" in plantui.plan(workload, options={"engine": "megatron"}).export("megatron")
        True
        """
        call = ["export", "-", "--to", to, "--workload", str(self.workload.path), *flags_of(flags)]
        return _command.run(call, stdin=self._text())

    def simulate(self, schedule: Optional[str] = None, **flags: Any) -> Simulation:
        """One batch under the plan's own schedule, or another: `1f1b`, `gpipe`, `interleaved`, `eager-1f1b`, `zb-h1`, `zb-v`.

        Further arguments are flags of `plantui simulate`: `virtual_stages=2`, `links="shared"`, `no_overlap=True`.

        >>> import plantui
        >>> simulation = plantui.plan(plantui.generate("tiny-branch")).simulate(schedule="gpipe")
        >>> simulation.schedule, 0 < simulation.bubble < 1
        ('gpipe', True)
        """
        call = ["simulate", str(self.workload.path), "-", *flags_of({"schedule": schedule, **flags})]
        return Simulation._read(_command.document(call, stdin=self._text()))

    def check(self) -> Check:
        """Validates and scores the plan again, from the workload alone."""
        call = ["check", str(self.workload.path), "-"]
        return Check._of(_command.document(call, stdin=self._text(), accept=(0, 1)))

    def _text(self) -> str:
        return json.dumps(self.document, indent=2)


@dataclass(frozen=True)
class Entry:
    """A planner's plan beside the others. Figures are `None` where it has no plan; `remarks` say why."""

    id: str
    name: str
    status: str
    objective: Optional[Objective]
    lower_bound: Optional[float]
    stages: Optional[int]
    devices: Optional[int]
    iteration_s: Optional[float]
    samples_per_s: Optional[float]
    bubble: Optional[float]
    peak_memory_bytes: Optional[float]
    prediction_error: Optional[float]
    seconds: Optional[float]
    remarks: Tuple[str, ...]

    @classmethod
    def _of(cls, part: Json) -> Entry:
        return cls(
            part["id"],
            part["name"],
            part["status"],
            Objective._of(part.get("objective")),
            part.get("lower_bound"),
            part.get("stages"),
            part.get("devices"),
            part.get("iteration_s"),
            part.get("samples_per_s"),
            part.get("bubble"),
            part.get("peak_memory_bytes"),
            part.get("prediction_error"),
            part.get("seconds"),
            tuple(part.get("remarks", ())),
        )


class Comparison(Tuple[Entry, ...]):
    """Planners side by side, the fastest simulated iteration first.

    >>> import plantui
    >>> plantui.compare(plantui.generate("tiny-branch"), planners=["piper", "equal-partition"]).best.iteration_s > 0
    True
    """

    document: Json

    @classmethod
    def _of(cls, part: Json) -> Comparison:
        made = cls(map(Entry._of, part["entries"]))
        made.document = part
        return made

    @property
    def best(self) -> Entry:
        """The entry whose simulated iteration takes least."""
        timed = [(entry.iteration_s, place) for place, entry in enumerate(self) if entry.iteration_s is not None]
        if not timed:
            raise _command.NoPlan("no planner found a plan that could be simulated", "see the remarks of each", 1)
        return self[min(timed)[1]]


class Sweep(List[Dict[str, Any]]):
    """Points of a sweep, a dict each: workload, series, the limits, status, value, unit, simulated figures.

    >>> import plantui
    >>> points = plantui.sweep(plantui.generate("tiny-branch"), devices=[3, 4])
    >>> [(point["devices"], point["status"]) for point in points]
    [(3, 'feasible'), (4, 'feasible')]
    """

    document: Json

    @classmethod
    def _of(cls, part: Json) -> Sweep:
        made = cls()
        for point in part["points"]:
            row: Dict[str, Any] = {
                "workload": part["workloads"][point["workload"]]["name"],
                "series": part["series"][point["series"]]["label"],
                **point["limits"],
            }
            objective = Objective._of(point["objective"])
            row["status"] = point["status"]
            row["objective"] = objective.name if objective else None
            row["value"] = objective.value if objective else None
            row["unit"] = objective.unit if objective else None
            left = ("workload", "series", "limits", "status", "objective", "devices")
            row.update((name, value) for name, value in point.items() if name not in left)
            row["devices_used"] = point["devices"]
            made.append(row)
        made.document = part
        return made

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas table; pandas must be installed."""
        import pandas

        return pandas.DataFrame(list(self))


@dataclass(frozen=True)
class Binding:
    """A limit without which the plan would be better: `value` is what it would be worth, `gain` the share saved."""

    what: str
    how: str
    without: str
    value: Optional[float]
    gain: Optional[float]
    certainty: str

    @classmethod
    def _of(cls, part: Json) -> Binding:
        values: Dict[str, Any] = {name: part.get(name) for name in cls.__dataclass_fields__}
        return cls(**values)


@dataclass(frozen=True)
class Change:
    """A change of a limit or an option, planned anew: `flags` is how to ask for it."""

    label: str
    flags: Optional[str]
    status: Optional[str]
    value: Optional[float]
    change: Optional[float]
    stages: Optional[int]
    devices: Optional[int]
    reason: Optional[str]

    @classmethod
    def _of(cls, part: Json) -> Change:
        values: Dict[str, Any] = {name: part.get(name) for name in cls.__dataclass_fields__}
        return cls(**values)


@dataclass(frozen=True)
class Bottleneck:
    """The stage that limits, and what its time goes into."""

    stage: int
    name: str
    parts: Mapping[str, float]


@dataclass(frozen=True)
class Explanation:
    """What limits a plan and what would help.

    >>> import plantui
    >>> explanation = plantui.explain(plantui.generate("tiny-branch"))
    >>> sorted(binding.what for binding in explanation.binds)
    ['devices', 'links', 'memory']
    """

    status: str
    value: Optional[float]
    unit: Optional[str]
    proof: Optional[str]
    bottleneck: Optional[Bottleneck]
    binds: Tuple[Binding, ...]
    help: Tuple[Change, ...]
    document: Json = field(repr=False)

    @classmethod
    def _of(cls, part: Json) -> Explanation:
        slow = part.get("bottleneck")
        return cls(
            part["status"],
            part.get("value"),
            part.get("unit"),
            part.get("proof"),
            slow and Bottleneck(slow["stage"], slow["name"], {one["name"]: one["share"] for one in slow["parts"]}),
            tuple(map(Binding._of, part.get("binds", ()))),
            tuple(map(Change._of, part.get("help", ()))),
            part,
        )


def flags_of(values: Mapping[str, Any]) -> List[str]:
    """Keyword arguments as flags: `no_overlap=True` is `--no-overlap`, a list repeats the flag, `None` is left out.

    >>> flags_of({"micro_batch_size": 2, "exact": True, "deadline": None})
    ['--micro-batch-size', '2', '--exact']
    """
    flags: List[str] = []
    for name, value in values.items():
        flag = "--" + name.replace("_", "-")
        if value is None or value is False:
            continue
        if value is True:
            flags.append(flag)
        elif isinstance(value, (list, tuple)):
            flags.extend(part for one in value for part in (flag, str(one)))
        else:
            flags.extend((flag, str(value)))
    return flags
