"""A profiled module as plain data, and the merging of chains. Needs no torch."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import Dict, Iterable, List, Sequence, Set, Tuple

__all__ = ["Part", "Profile", "merged", "without_empty"]


@dataclass
class Part:
    """A part of the module: an operation, a submodule, or a run of them.

    ``forward_s`` and ``backward_s`` hold a time for every repetition, seconds. Sizes are bytes: ``output_bytes`` is what
    the next part gets, ``saved_bytes`` what autograd keeps for the backward, ``parameter_bytes`` the parameters that are
    used here first.
    """

    name: str
    forward_s: List[float] = field(default_factory=list)
    backward_s: List[float] = field(default_factory=list)
    output_bytes: int = 0
    saved_bytes: int = 0
    parameter_bytes: int = 0
    parameters: int = 0
    sources: Set[int] = field(default_factory=set)

    @property
    def forward(self) -> float:
        """Median of the forward times, seconds."""
        return statistics.median(self.forward_s) if self.forward_s else 0.0

    @property
    def backward(self) -> float:
        """Median of the backward times, seconds."""
        return statistics.median(self.backward_s) if self.backward_s else 0.0

    @property
    def spread(self) -> float:
        """Half of the repetitions lie within this share of the median: the interquartile range over the median."""
        both = [forward + backward for forward, backward in zip(self.forward_s, self.backward_s)]
        middle = statistics.median(both) if both else 0.0
        if len(both) < 2 or middle <= 0:
            return 0.0
        low, _, high = statistics.quantiles(both, n=4, method="inclusive")
        return (high - low) / middle


@dataclass
class Profile:
    """A profiled module. ``parts`` are in the order in which they ran; ``sources`` of a part are earlier places.

    ``traced_by`` is ``fx`` or ``hooks``, ``why`` says why not ``fx``. ``step_s`` are whole steps that nobody watched.
    ``samples`` are those of the example that was run, as its first tensor's first dimension counts them. ``warnings`` name
    what a plan of the profile does not see.
    """

    name: str
    parts: List[Part]
    traced_by: str
    why: str
    device: str
    batch: str
    step_s: List[float]
    samples: int = 1
    unused_parameters: int = 0
    warnings: List[str] = field(default_factory=list)

    @property
    def step(self) -> float:
        """Median of the whole steps, seconds."""
        return statistics.median(self.step_s) if self.step_s else 0.0

    @property
    def coverage(self) -> float:
        """The parts' times together, as a share of the step."""
        total = sum(part.forward + part.backward for part in self.parts)
        return total / self.step if self.step else 0.0

    @property
    def parameters(self) -> int:
        """Parameters of all parts."""
        return sum(part.parameters for part in self.parts)

    def edges(self) -> List[Tuple[int, int]]:
        """Places of the parts that hand something over, from and to, sorted."""
        return sorted((source, place) for place, part in enumerate(self.parts) for source in part.sources)


def merged(parts: Sequence[Part], least_share: float) -> List[Part]:
    """Joins a part with the only one behind it, whose only source it is, while one of both has less than this share of
    the time. 1 joins every chain, 0 none. Linear in parts and edges for each round; a round joins whole chains."""
    total = sum(part.forward + part.backward for part in parts) or 1.0
    readers: List[List[int]] = [[] for _ in parts]
    for place, part in enumerate(parts):
        for source in part.sources:
            readers[source].append(place)
    home = list(range(len(parts)))
    made: Dict[int, List[int]] = {place: [place] for place in range(len(parts))}
    spent = [(part.forward + part.backward) / total for part in parts]
    for place, part in enumerate(parts):
        if len(part.sources) != 1:
            continue
        (source,) = part.sources
        into = home[source]
        if len(readers[source]) != 1 or min(spent[into], spent[place]) >= least_share:
            continue
        home[place] = into
        made[into].extend(made.pop(place))
        spent[into] += spent[place]
    return _joined(parts, made, home)


def without_empty(parts: Sequence[Part]) -> List[Part]:
    """Joins parts of the start of a graph that take no time and hold nothing with their only reader: shapes, indices."""
    readers: List[List[int]] = [[] for _ in parts]
    for place, part in enumerate(parts):
        for source in part.sources:
            readers[source].append(place)
    home = list(range(len(parts)))
    made: Dict[int, List[int]] = {place: [place] for place in range(len(parts))}
    for place in range(len(parts) - 1, -1, -1):
        part = parts[place]
        if not part.sources and len(readers[place]) == 1 and part.parameters == 0 and part.output_bytes == 0:
            into = home[readers[place][0]]
            home[place] = into
            made[into] = made.pop(place) + made[into]
    return _joined(parts, made, home)


def _joined(parts: Sequence[Part], made: Dict[int, List[int]], home: List[int]) -> List[Part]:
    order = sorted(made, key=lambda place: max(made[place]))
    # A part stands where its last member ran: what it reads is then in front of it, since chains have no other readers.
    new_place = {old: new for new, old in enumerate(order)}
    joined = []
    for old in order:
        members = sorted(made[old])
        sources = {new_place[_root(home, source)] for member in members for source in parts[member].sources}
        sources.discard(new_place[old])
        last = parts[members[-1]]
        joined.append(
            Part(
                name=_name([parts[member].name for member in members]),
                forward_s=_added(parts[member].forward_s for member in members),
                backward_s=_added(parts[member].backward_s for member in members),
                output_bytes=last.output_bytes,
                saved_bytes=sum(parts[member].saved_bytes for member in members),
                parameter_bytes=sum(parts[member].parameter_bytes for member in members),
                parameters=sum(parts[member].parameters for member in members),
                sources=sources,
            )
        )
    return joined


def _root(home: List[int], place: int) -> int:
    while home[place] != place:
        place = home[place]
    return place


def _added(times: Iterable[List[float]]) -> List[float]:
    return [sum(together) for together in zip(*times)]


def _name(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} .. {names[-1]}"
