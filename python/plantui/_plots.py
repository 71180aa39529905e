"""Pictures with matplotlib, which must be installed. Each draws on `ax`, or on axes of its own, and gives them back."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Dict, List, Optional, Tuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from plantui._results import Comparison, Layouts, Simulation, Sweep

__all__ = ["axes", "comparison", "layouts", "sweep", "timeline"]

#: Limits of a point that a sweep may change.
_LIMITS = (
    "devices",
    "memory_bytes",
    "microbatches",
    "bandwidth_bytes_per_s",
    "batch",
    "cpus",
    "flops_per_s",
)
_LABELS = {
    "iteration_s": "simulated iteration (s)",
    "samples_per_s": "samples per second",
    "peak_memory_bytes": "memory of a device (bytes)",
    "bubble": "idle share",
}
#: Colour of a kind of event, by the first letter of its name.
_COLOURS = {"F": "#4c9be8", "B": "#3fb68b", "R": "#b48ef0", "W": "#8ccf6f"}
_OTHER = "#f0b040"


def _axes(ax: Optional[Axes]) -> Axes:
    if ax is not None:
        return ax
    import matplotlib.pyplot

    made: Axes = matplotlib.pyplot.subplots()[1]
    return made


def axes(points: Sweep) -> List[str]:
    """Limits that differ between the points of a sweep."""
    return [name for name in _LIMITS if len({point.get(name) for point in points if name in point}) > 1]


def sweep(points: Sweep, ax: Optional[Axes], figure: str) -> Axes:
    """A line for each planner and workload, and for each value of a second limit."""
    changed = axes(points) or ["devices"]
    first, others = changed[0], changed[1:]
    lines: Dict[str, List[Tuple[Any, Any]]] = defaultdict(list)
    workloads = len({point["workload"] for point in points})
    for point in points:
        if point.get(figure) is not None:
            named = [point["workload"]] if workloads > 1 else []
            named += [point["series"], *(f"{name} {point[name]:g}" for name in others if name in point)]
            lines[", ".join(named)].append((point[first], point[figure]))
    ax = _axes(ax)
    for label, line in lines.items():
        ax.plot(*zip(*sorted(line)), marker="o", label=label)
    ax.set_xlabel(first.replace("_", " "))
    ax.set_ylabel(_LABELS.get(figure, figure.replace("_", " ")))
    if first == "devices":
        ax.set_xscale("log", base=2)
        ticks = sorted({point[first] for point in points})
        ax.set_xticks(ticks, [str(tick) for tick in ticks])
    if lines:
        ax.legend()
    return ax


def comparison(entries: Comparison, ax: Optional[Axes]) -> Axes:
    """A bar for each planner, the fastest on top."""
    timed = [(entry.name, entry.iteration_s) for entry in entries if entry.iteration_s is not None][::-1]
    ax = _axes(ax)
    ax.barh([name for name, _ in timed], [seconds for _, seconds in timed], color=_COLOURS["F"])
    ax.set_xlabel("simulated iteration (s)")
    return ax


def layouts(found: Layouts, ax: Optional[Axes]) -> Axes:
    """A point for each layout; those that no other beats in both time and memory have their name."""
    ax = _axes(ax)
    points = [(one.iteration_s, one.memory_bytes / 2**30, str(one)) for one in found if one.iteration_s and one.memory_bytes]
    least, height = float("inf"), float("inf")
    spread = max((memory for _, memory, _ in points), default=1.0)
    for seconds, memory, name in sorted(points):
        front = memory < least
        least = min(least, memory)
        ax.scatter(seconds, memory, color=_COLOURS["F"] if front else "lightgrey")
        # Names that would lie on one another are left out.
        if front and height - memory > spread / 40:
            height = memory
            ax.annotate(name, (seconds, memory), fontsize="x-small", xytext=(4, 4), textcoords="offset points")
    ax.margins(x=0.25)
    ax.set_xlabel("iteration (s)")
    ax.set_ylabel("memory of a device (GiB)")
    return ax


def timeline(simulation: Simulation, ax: Optional[Axes]) -> Axes:
    """A row for each group of devices: forward, backward, recomputation and weight gradients; collectives below them."""
    rows: Dict[str, List[Tuple[Tuple[float, float], str, bool]]] = {}
    for event in simulation.events():
        if event["row"] in ("compute", "collective"):
            colour = _COLOURS.get(event["name"][:1].upper(), _OTHER)
            span = (event["start_s"], event["duration_s"])
            rows.setdefault(event["device"], []).append((span, colour, event["row"] == "compute"))
    ax = _axes(ax)
    for place, drawn in enumerate(rows.values()):
        for compute, low, high in ((True, -0.4, 0.7), (False, 0.3, 0.15)):
            spans = [span for span, _, of in drawn if of == compute]
            colours = [colour for _, colour, of in drawn if of == compute]
            ax.broken_barh(spans, (place + low, high), facecolors=colours, edgecolor="white", linewidth=0.2 if len(spans) < 200 else 0.0)
    ax.set_yticks(range(len(rows)), list(rows), fontsize="x-small")
    ax.invert_yaxis()
    ax.set_xlabel("time (s)")
    return ax
