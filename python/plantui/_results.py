"""What the program answers, as types. Times are seconds, memory is bytes, shares are 0 to 1.

Every result keeps the whole JSON document of the program as `document`, has a one-line `repr`, and shows itself as a
table in a notebook.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
import weakref
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Dict, List, Mapping, Optional, Sequence, Tuple, Union, cast

from plantui import _command, _plots
from plantui._show import bytes_text, columns, number, seconds_text, share, table

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas

__all__ = [
    "Binding",
    "Bottleneck",
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
    "Objective",
    "Operator",
    "Plan",
    "Simulation",
    "SimulatedStage",
    "Stage",
    "Sweep",
    "Table",
    "Workload",
    "history",
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

    @property
    def name(self) -> str:
        """Name of the file without its ending, or of the model.

        >>> Workload("llama-3.1-70b").name, Workload("inputs/bert32a100.json").name
        ('llama-3.1-70b', 'bert32a100')
        """
        return self.path.stem if self.path.suffix in (".json", ".txt") else self.path.name

    def __fspath__(self) -> str:
        return str(self.path)

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Workload({str(self.path)!r})"


@dataclass(frozen=True)
class Layout:
    """How a model is parallelised: degrees under the field's names, sequences in a micro-batch, and recomputation.

    `dp` is the number of replicas that share no token of a batch: context parallelism is `cp` alone.

    >>> Layout.parse("tp=4,pp=2,vp=5,cp=1,ep=1,dp=8,mbs=1, recompute full:2").recompute
    'full:2'
    """

    tp: int = 1
    pp: int = 1
    vp: int = 1
    cp: int = 1
    ep: int = 1
    etp: int = 1
    dp: int = 1
    mbs: int = 1
    recompute: str = "none"
    iteration_s: Optional[float] = None
    memory_bytes: Optional[float] = None

    def __str__(self) -> str:
        degrees = [f"{name}={getattr(self, name)}" for name in _DEGREES if getattr(self, name) > 1 or name in ("tp", "pp", "dp", "mbs")]
        return ",".join(degrees) + ("" if self.recompute == "none" else f", recompute {self.recompute}")

    @classmethod
    def parse(cls, text: str) -> Layout:
        """Reads the program's notation."""
        degrees, *more = text.split(", ")
        values = {name: int(value) for name, _, value in (one.partition("=") for one in degrees.split(","))}
        told = [one.partition(" ")[2] for one in more if one.startswith("recompute ")]
        return cls(**values, recompute=told[0] if told else "none")

    @classmethod
    def _of(cls, part: Optional[Json]) -> Optional[Layout]:
        return None if part is None else cls(**{name: part[name] for name in cls.__dataclass_fields__ if name in part})


_DEGREES = ("tp", "pp", "vp", "cp", "ep", "etp", "dp", "mbs")


class Layouts(Tuple[Layout, ...]):
    """The best layouts of a model, and those that no other beats in both time and memory.

    >>> import plantui
    >>> layouts = plantui.plan("llama-3-8b", devices=16, global_batch=128).layouts
    >>> layouts[0].tp * layouts[0].pp * layouts[0].cp * layouts[0].dp
    16
    """

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each layout; pandas must be installed."""
        import pandas

        return pandas.DataFrame([vars(layout) for layout in self])

    def plot(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """Memory of a device over the time of an iteration; matplotlib must be installed."""
        return _plots.layouts(self, ax)

    def _repr_html_(self) -> str:
        rows = [[str(one), seconds_text(one.iteration_s), bytes_text(one.memory_bytes)] for one in self]
        return table(["layout", "iteration", "memory"], rows)


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
    the three times add up to what the stage costs in the planner's model. A stage has `replicas` of `tensor_parallel`
    devices each; with context parallelism `cp` of them share the tokens of a sequence, and `data_parallel` counts groups
    of them.
    """

    nodes: Tuple[int, ...]
    replicas: int
    data_parallel: int
    context_parallel: int
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
    def _of(cls, part: Json, context: int = 1) -> Stage:
        return cls(
            tuple(part["nodes"]),
            part["data_parallel"],
            part["data_parallel"] // context,
            context,
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
    """One iteration in the simulator. `stages` is empty in the short form that comes with a plan."""

    schedule: str
    iteration_s: float
    samples_per_s: float
    bubble: float
    peak_memory_bytes: float
    stages: Tuple[SimulatedStage, ...] = field(default=(), repr=False)
    notes: Tuple[str, ...] = field(default=(), repr=False)
    document: Json = field(default_factory=dict, repr=False)
    _call: Tuple[str, ...] = field(default=(), repr=False, compare=False)
    _stdin: Optional[str] = field(default=None, repr=False, compare=False)

    @classmethod
    def _short(cls, part: Optional[Json]) -> Optional[Simulation]:
        return None if part is None else cls._of(part)

    @classmethod
    def _of(cls, part: Json, call: Sequence[str] = (), stdin: Optional[str] = None) -> Simulation:
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
            tuple(call),
            stdin,
        )

    def events(self) -> List[Dict[str, Any]]:
        """Every event of the iteration: `device`, `row` (`compute`, `collective`, a link), `name`, `start_s`, `duration_s`.

        >>> import plantui
        >>> events = plantui.plan(plantui.generate("tiny-branch")).simulate().events()
        >>> events[0]["row"], events[0]["start_s"], len(events) > 20
        ('compute', 0.0, True)
        """
        if not self._call:
            raise _command.WrongUse("this is the short form of a simulation", "call plan.simulate()")
        text = _command.run([*self._call, "--format", "chrome-trace"], self._stdin)
        trace = json.loads(text)["traceEvents"]
        devices = {part["pid"]: part["args"]["name"] for part in trace if part["name"] == "process_name"}
        rows = {(part["pid"], part["tid"]): part["args"]["name"] for part in trace if part["name"] == "thread_name"}
        return [
            {
                "device": devices[part["pid"]],
                "row": rows[part["pid"], part["tid"]],
                "name": part["name"],
                "start_s": part["ts"] / 1e6,
                "duration_s": part["dur"] / 1e6,
            }
            for part in trace
            if part["ph"] == "X"
        ]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each stage; pandas must be installed."""
        import pandas

        return pandas.DataFrame([vars(stage) for stage in self.stages])

    def plot(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """The timeline, a row for each stage; matplotlib must be installed."""
        return _plots.timeline(self, ax)

    def _repr_html_(self) -> str:
        figures = {
            "schedule": self.schedule,
            "iteration": seconds_text(self.iteration_s),
            "samples/s": number(self.samples_per_s),
            "idle": share(self.bubble),
            "peak memory": bytes_text(self.peak_memory_bytes),
        }
        return columns(figures)


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

    def __repr__(self) -> str:
        return f"Check(valid={self.valid}, violations={len(self.violations)})"

    def _repr_html_(self) -> str:
        told = [[one if isinstance(one, str) else str(one.get("text", one))] for one in self.violations]
        return columns({"valid": "yes" if self.valid else "no"}) + (table(["violations"], told) if told else "")

    @classmethod
    def _of(cls, part: Json) -> Check:
        return cls(
            part["valid"],
            Objective._of(part.get("objective")),
            tuple(part.get("violations", ())),
            tuple(part.get("warnings", ())),
            Simulation._short(part.get("simulation")),
            tuple(part.get("notes", ())),
            part,
        )


@dataclass(frozen=True)
class Plan:
    """A plan: stages, figures, and what can be done with it.

    `status` is `optimal` (proven) or `feasible`; `lower_bound` is proven where it is given. Of a model that is trained,
    `layout` has its degrees and `layouts` the best others, `configuration` all settings of the layout, `prediction` its
    tokens a second, MFU and how far such predictions were off on published runs. `document` is the whole JSON document (schema
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
        context = (part.get("configuration") or {}).get("cp", 1)
        return cls(
            workload,
            planner.get("id", ""),
            dict(planner.get("options", {})),
            dict(part.get("limits") or {}),
            part["status"],
            Objective._of(part.get("objective")),
            part.get("lower_bound"),
            tuple(Stage._of(stage, context) for stage in part["stages"]),
            tuple(Operator(one["node"], dict(one["splits"])) for one in part.get("operators", ())),
            Simulation._short(part.get("simulation")),
            tuple(part.get("notes", ())),
            part.get("configuration"),
            part.get("prediction"),
            part,
        )

    @property
    def devices(self) -> int:
        """How many devices the plan uses."""
        return len({device for stage in self.stages for device in stage.devices})

    @property
    def layout(self) -> Optional[Layout]:
        """Degrees of a model that is trained; `None` for a profile.

        >>> import plantui
        >>> plan = plantui.plan("llama-3.1-70b", devices=64, global_batch=128)
        >>> plan.layout.tp, plan.layout.dp, plan.stages[0].data_parallel
        (4, 2, 2)
        """
        return Layout._of(self.configuration)

    @property
    def layouts(self) -> Layouts:
        """The best layouts of a model that is trained, with time and memory; empty for a profile."""
        return Layouts(cast(Layout, Layout._of(part)) for part in self.document.get("configurations", ()))

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each stage; pandas must be installed."""
        import pandas

        return pandas.DataFrame([{**vars(stage), "choices": dict(stage.choices)} for stage in self.stages])

    def plot(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """The timeline of one iteration; matplotlib must be installed."""
        return self.simulate().plot(ax)

    def __repr__(self) -> str:
        told = [self.planner or "plan", self.status]
        if self.objective is not None:
            told.append(f"{self.objective.name} {number(self.objective.value)} {self.objective.unit}")
        told.append(str(self.layout) if self.layout else f"{len(self.stages)} stages on {self.devices} devices")
        return f"<Plan of {self.workload.name}: {', '.join(told)}>"

    def _figures(self) -> Dict[str, str]:
        """Name and text of the figures that a table shows."""
        told = {"planner": self.planner, "status": self.status}
        if self.layout:
            told["layout"] = str(self.layout)
        if self.objective is not None:
            told[self.objective.name.replace("_", " ")] = f"{number(self.objective.value)} {self.objective.unit}"
        told["stages"], told["devices"] = str(len(self.stages)), str(self.devices)
        if self.simulation is not None:
            told["iteration, simulated"] = seconds_text(self.simulation.iteration_s)
            told["peak memory"] = bytes_text(self.simulation.peak_memory_bytes)
        prediction = self.prediction or {}
        if prediction.get("tokens_per_s"):
            told["tokens/s"], told["MFU"] = number(prediction["tokens_per_s"]), share(prediction["mfu"])
            told["evidence"] = _evidence(prediction.get("trust"), prediction.get("differs", ()))
        return told

    def _repr_html_(self) -> str:
        try:
            picture = self.export("svg")
        except _command.PlantuiError:
            # Layouts of operators have no stages to draw.
            picture = ""
        return columns(self._figures()) + picture[picture.find("<svg") :] * ("<svg" in picture)

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

    def export(self, to: str, **arguments: Any) -> str:
        """The plan for an engine (`megatron`, `deepspeed`, `torchtitan` ..) or as a picture, table or trace.

        Further arguments are those of `plantui.export`.

        >>> import plantui
        >>> workload = plantui.generate("llama-3-8b", hardware="h100", devices=16, microbatches=64)
        >>> "--pipeline-model-parallel-size" in plantui.plan(workload, options={"engine": "megatron"}).export("megatron")
        True
        """
        from plantui import _calls

        return _calls.export(self, {"to": to, **arguments})

    def simulate(self, schedule: Optional[str] = None, **arguments: Any) -> Simulation:
        """One iteration under the plan's own schedule, or another: `1f1b`, `gpipe`, `interleaved`, `zb-h1`, `zb-v` ..

        Further arguments are those of `plantui.simulate`: `virtual_stages=2`, `links="shared"`, `no_overlap=True`.

        >>> import plantui
        >>> simulation = plantui.plan(plantui.generate("tiny-branch")).simulate(schedule="gpipe")
        >>> simulation.schedule, 0 < simulation.bubble < 1
        ('gpipe', True)
        """
        from plantui import _calls

        return _calls.simulate(self.workload, self, {"schedule": schedule, **arguments})

    def map(self, topology: PathLike, **arguments: Any) -> Plan:
        """The plan with the device of a topology that runs each part. Further arguments are those of `plantui.map`."""
        from plantui import _calls

        return _calls.map(self.workload, self, {"topology": topology, **arguments})

    def check(self) -> Check:
        """Validates and scores the plan again, from the workload alone."""
        from plantui import _calls

        return _calls.check(self.workload, self, {})

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
    layout: Optional[Layout]
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
            Layout.parse(part["layout"]) if part.get("layout") else None,
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

    def __repr__(self) -> str:
        return f"<Comparison of {len(self)}: {', '.join(entry.id for entry in self)}>"

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each planner; pandas must be installed."""
        import pandas

        rows = []
        for entry in self:
            row = {**vars(entry), "layout": str(entry.layout or ""), "remarks": "; ".join(entry.remarks)}
            objective = row.pop("objective")
            row["objective"], row["value"], row["unit"] = (
                (objective.name, objective.value, objective.unit) if objective else (None, None, None)
            )
            rows.append(row)
        return pandas.DataFrame(rows)

    def plot(self, ax: Optional[matplotlib.axes.Axes] = None) -> matplotlib.axes.Axes:
        """Simulated iteration time of each planner; matplotlib must be installed."""
        return _plots.comparison(self, ax)

    def _repr_html_(self) -> str:
        rows = [
            [
                entry.name,
                entry.status,
                seconds_text(entry.iteration_s),
                share(entry.bubble),
                bytes_text(entry.peak_memory_bytes),
                "" if entry.stages is None else str(entry.stages),
                "" if entry.devices is None else str(entry.devices),
                str(entry.layout or ""),
            ]
            for entry in self
        ]
        return table(["planner", "status", "iteration", "idle", "peak memory", "stages", "devices", "layout"], rows)


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

    def __repr__(self) -> str:
        axes = " x ".join(self.document["axes"]) or "one point"
        return f"<Sweep over {axes}: {len(self)} points>"

    def plot(self, ax: Optional[matplotlib.axes.Axes] = None, figure: str = "iteration_s") -> matplotlib.axes.Axes:
        """A figure over the first limit that changes, a line for each planner and workload; matplotlib must be installed.

        `figure` is `iteration_s`, `samples_per_s`, `peak_memory_bytes`, `bubble`, `value` or another number of the points.
        """
        return _plots.sweep(self, ax, figure)

    def _repr_html_(self) -> str:
        names = ["workload", "series", *self._limits(), "status", "iteration_s", "samples_per_s", "layout"]
        shown = [name for name in names if any(point.get(name) for point in self)]
        return table(shown, [[_cell(point.get(name)) for name in shown] for point in self])

    def _limits(self) -> List[str]:
        """Limits that differ between points."""
        return _plots.axes(self)

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each point; pandas must be installed."""
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
    #: Stages that limit as much, `stage` among them.
    alike: Tuple[int, ...] = ()

    def __str__(self) -> str:
        return self.name if len(self.alike) < 2 else f"{len(self.alike)} stages alike"

    @classmethod
    def _of(cls, part: Json) -> Bottleneck:
        parts = {one["name"]: one["share"] for one in part["parts"]}
        return cls(part["stage"], part["name"], parts, tuple(part["alike"]))


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

    def __repr__(self) -> str:
        limit = f", limited by {self.bottleneck}" if self.bottleneck else ""
        return f"<Explanation: {self.status}, {number(self.value)} {self.unit}{limit}>"

    def _repr_html_(self) -> str:
        told = {"value": f"{number(self.value)} {self.unit}", "proof": self.proof or ""}
        if self.bottleneck:
            told["limited by"] = str(self.bottleneck)
        binds = [[one.what, one.how, one.without, share(one.gain)] for one in self.binds]
        helps = [[one.label, one.flags or "", share(one.change)] for one in self.help]
        return (
            columns(told)
            + table(["limit", "binds because", "without it", "gain"], binds)
            + table(["change", "flags", "difference"], helps)
        )

    @classmethod
    def _of(cls, part: Json) -> Explanation:
        slow = part.get("bottleneck")
        return cls(
            part["status"],
            part.get("value"),
            part.get("unit"),
            part.get("proof"),
            slow and Bottleneck._of(slow),
            tuple(map(Binding._of, part.get("binds", ()))),
            tuple(map(Change._of, part.get("help", ()))),
            part,
        )


@dataclass(frozen=True)
class Estimate:
    """Predicted iteration of a layout. `parts_s` are the seconds of its parts, which add up to the iteration;
    `fits` is `yes`, `close` or `no, over by ..`.

    >>> import plantui
    >>> estimate = plantui.estimate("llama-3.1-8b", devices=8, parallel={"tp": 2}, global_batch=128)
    >>> estimate.layout.dp, estimate.fits, abs(sum(estimate.parts_s.values()) / estimate.iteration_s - 1) < 1e-9
    (4, 'yes', True)
    """

    layout: Layout
    hardware: str
    devices: int
    iteration_s: float
    tokens_per_s: float
    mfu: float
    memory_bytes: float
    device_memory_bytes: float
    parts_s: Mapping[str, float]
    fits: str
    trust: Optional[Mapping[str, Any]]
    assumptions: Tuple[str, ...]
    document: Json = field(repr=False)

    @classmethod
    def _of(cls, part: Json) -> Estimate:
        return cls(
            Layout(**part["parallel"], recompute=part["recompute"]),
            part["hardware"],
            part["devices"],
            part["iteration_s"],
            part["tokens_per_s"],
            part["mfu"],
            part["memory_bytes"],
            part["device_memory_bytes"],
            dict(part["parts_s"]),
            part["fits"],
            part["trust"],
            tuple(part["assumptions"]),
            part,
        )

    def __repr__(self) -> str:
        return f"<Estimate of {self.layout} on {self.devices} {self.hardware}: {seconds_text(self.iteration_s)} per iteration>"

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each part of the iteration; pandas must be installed."""
        import pandas

        return pandas.DataFrame(
            [{"part": name, "seconds": value, "share": value / self.iteration_s} for name, value in self.parts_s.items()]
        )

    def _repr_html_(self) -> str:
        told = {
            "layout": str(self.layout),
            "iteration": seconds_text(self.iteration_s),
            "tokens/s": number(self.tokens_per_s),
            "MFU": share(self.mfu),
            "memory": f"{bytes_text(self.memory_bytes)} of {bytes_text(self.device_memory_bytes)}",
            "fits": self.fits,
            "evidence": _evidence(self.trust, self.document["differs"]),
        }
        parts = [[name, seconds_text(value), share(value / self.iteration_s)] for name, value in self.parts_s.items() if value]
        return columns(told) + table(["part", "time", "share"], parts)


@dataclass(frozen=True)
class Calibration:
    """Constants fitted to runs. `save` writes the file that `calibration=` takes."""

    text: Optional[str] = field(repr=False)
    document: Json = field(repr=False)

    @classmethod
    def _of(cls, part: Json, text: Optional[str]) -> Calibration:
        return cls(text, part)

    def save(self, path: PathLike) -> Path:
        """Writes the calibration."""
        if self.text is None:
            raise _command.WrongUse("the runs gave no calibration", "see its document")
        written = Path(path)
        written.write_text(self.text, encoding="utf-8")
        return written

    def __repr__(self) -> str:
        return f"<Calibration on {len(self.document.get('runs', ()))} runs>"

    def _repr_html_(self) -> str:
        factors = [[one["name"], number(one["value"]), share(one["sigma"])] for one in self.document.get("factors", ())]
        runs = [
            [one["layout"], seconds_text(one["measured_s"]), share(one["shipped_error"]), share(one["fitted_error"])]
            for one in self.document.get("runs", ())
        ]
        return table(["factor", "value", "within"], factors) + table(["layout", "measured", "error before", "error after"], runs)


@dataclass(frozen=True)
class Goal:
    """The least value of a limit that reaches a goal: `answer`, as flags `flags`; `None` if no value does.

    >>> import plantui
    >>> goal = plantui.seek(plantui.generate("tiny-branch"), least="devices", until="iteration_time<=0.2s")
    >>> goal.limit, goal.answer is not None and goal.plan is not None
    ('devices', True)
    """

    limit: str
    answer: Optional[float]
    flags: Optional[str]
    figure: Optional[float]
    certainty: Optional[str]
    curve: Tuple[Json, ...] = field(repr=False)
    plan: Optional[Plan] = field(repr=False)
    document: Json = field(repr=False)

    @classmethod
    def _of(cls, workload: Workload, part: Json) -> Goal:
        plan = part.get("plan")
        return cls(
            part["least"],
            part.get("answer"),
            part.get("flags"),
            part.get("figure"),
            part.get("certainty"),
            tuple(part.get("curve", ())),
            Plan._of(workload, plan) if plan else None,
            part,
        )

    def _repr_html_(self) -> str:
        told = {"limit": self.limit, "least value": _cell(self.answer), "flags": self.flags or "", "certainty": self.certainty or ""}
        return columns({**told, "goal's figure": number(self.figure)})

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each value that was planned or ruled out; pandas must be installed."""
        import pandas

        return pandas.DataFrame(list(self.curve))


@dataclass(frozen=True)
class Job:
    """A training job: its settings with their sources, its layout, and the prediction of it as it runs.

    `workload` is its model, `plan` its layout as a plan; both can be planned, compared, explained and exported.
    """

    format: str
    layout: Optional[Layout]
    settings: Mapping[str, Any] = field(repr=False)
    sources: Mapping[str, str] = field(repr=False)
    not_used: Mapping[str, Any] = field(repr=False)
    estimate: Optional[Estimate]
    workload: Optional[Workload]
    plan: Optional[Plan] = field(repr=False)
    document: Json = field(repr=False)

    @classmethod
    def _of(cls, part: Json, workload: Optional[Workload], plan: Optional[Plan]) -> Job:
        runs = part.get("as_it_runs")
        estimate = Estimate._of(runs) if runs else None
        return cls(
            part["format"],
            estimate.layout if estimate else None,
            dict(part["read"]),
            dict(part["sources"]),
            dict(part["not_used"]),
            estimate,
            workload,
            plan,
            part,
        )

    def _repr_html_(self) -> str:
        rows = [[name, json.dumps(value), self.sources.get(name, "")] for name, value in self.settings.items()]
        return table(["setting", "value", "source"], rows) + (self.estimate._repr_html_() if self.estimate else "")


class Table(List[Dict[str, Any]]):
    """Rows of a list of the program: planners, hardware, topologies, terms.

    >>> import plantui
    >>> [row["id"] for row in plantui.planners()][:2]
    ['joint', 'piper']
    """

    def to_pandas(self) -> pandas.DataFrame:
        """The same as a pandas table; pandas must be installed."""
        import pandas

        return pandas.DataFrame(list(self))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)} rows>"

    def _repr_html_(self) -> str:
        names = [name for name in (self[0] if self else {}) if not isinstance(self[0][name], (dict, list))]
        return table(names, [[_cell(row.get(name)) for name in names] for row in self])


class Findings(Table):
    """What `plantui lint` finds in a workload; true in a condition if none is an error.

    >>> import plantui
    >>> bool(plantui.lint(plantui.generate("tiny-branch")))
    True
    """

    document: Json

    @classmethod
    def _of(cls, part: Json) -> Findings:
        made = cls(part["findings"])
        made.document = part
        return made

    def __bool__(self) -> bool:
        return all(row["severity"] != "error" for row in self)


class History(List[Plan]):
    """Plans that `plantui.plan` made in this process, the newest last.

    >>> import plantui
    >>> plantui.history.clear()
    >>> for devices in (3, 4):
    ...     made = plantui.plan(plantui.generate("tiny-branch"), devices=devices)
    >>> [plan.devices for plan in plantui.history]
    [3, 4]
    """

    #: Plans that are kept.
    MOST = 1000

    def append(self, plan: Plan) -> None:
        """Adds a plan, and drops the oldest beyond `MOST`."""
        super().append(plan)
        del self[: -self.MOST]

    def _rows(self) -> List[Dict[str, Any]]:
        def row(plan: Plan) -> Dict[str, Any]:
            simulated = plan.simulation
            return {
                "workload": plan.workload.name,
                "planner": plan.planner,
                **plan.limits,
                "status": plan.status,
                "layout": str(plan.layout or ""),
                "stages": len(plan.stages),
                "devices_used": plan.devices,
                "iteration_s": simulated.iteration_s if simulated else None,
                "peak_memory_bytes": simulated.peak_memory_bytes if simulated else None,
            }

        return [row(plan) for plan in self]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each plan; pandas must be installed."""
        import pandas

        return pandas.DataFrame(self._rows())

    def __repr__(self) -> str:
        return f"<History of {len(self)} plans>"

    def _repr_html_(self) -> str:
        rows = self._rows()
        names = list(dict.fromkeys(name for row in rows for name in row))
        return table(names, [[_cell(row.get(name)) for name in names] for row in rows])


#: Plans of this process.
history = History()


def _evidence(trust: Optional[Mapping[str, Any]], differs: Sequence[str]) -> str:
    """How far such predictions were off, or that nobody knows."""
    if trust:
        return f"mean error {share(trust['mean_error'])} on {trust['runs']} runs: {trust['class']}"
    return "no published run is comparable" + (f": {'; '.join(differs)}" if differs else "")


def _cell(value: Any) -> str:
    return number(value) if isinstance(value, float) else "" if value is None else str(value)
