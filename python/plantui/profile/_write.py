"""A profile as files that plantui reads: PipeDream's graph.txt, Piper's JSON at tensor degree 1. Needs no torch."""

from __future__ import annotations

import json
import re
from typing import Any, Dict, List, Optional

from plantui.profile._graph import Profile

__all__ = ["to_graph_txt", "to_piper"]


def to_graph_txt(profile: Profile) -> str:
    """PipeDream's text: times in milliseconds, sizes in bytes, for the example's batch, whose samples its first line tells.

    PipeDream's own tools take no such line: ``tail -n +2`` leaves it out."""
    lines = [f"# profile_batch={profile.samples}"]
    for place, part in enumerate(profile.parts, 1):
        name = re.sub(r"\s+--\s+", " - ", part.name)
        lines.append(
            f"node{place} -- {name} -- forward_compute_time={part.forward * 1e3:.6f}, "
            f"backward_compute_time={part.backward * 1e3:.6f}, activation_size={part.output_bytes}, "
            f"parameter_size={part.parameter_bytes}"
        )
    lines += [f"\tnode{source + 1} -- node{place + 1}" for source, place in profile.edges()]
    return "\n".join(lines) + "\n"


def to_piper(
    profile: Profile,
    *,
    devices: int = 8,
    memory: float = 16e9,
    bandwidth: float = 16e9,
    microbatches: int = 64,
    state_bytes: Optional[float] = None,
) -> str:
    """Piper's JSON at tensor degree 1. A sample of it is the example's batch, one microbatch.

    ``state_bytes`` are the bytes of weight, gradient and optimizer for each parameter; if not given, four times its own
    (Adam in one precision).
    """
    nodes: List[Dict[str, Any]] = []
    readers: Dict[int, List[int]] = {}
    for source, place in profile.edges():
        readers.setdefault(source, []).append(place)
    for place, part in enumerate(profile.parts):
        state = part.parameters * state_bytes if state_bytes is not None else part.parameter_bytes * 4
        sync: Dict[str, Any] = {
            "syncTimeFw": {str(source): 0 for source in sorted(part.sources)},
            "syncTimeBw": {str(reader): 0 for reader in readers.get(place, [])},
        }
        inputs = sum(profile.parts[source].output_bytes for source in part.sources)
        modes = [("vanilla", 0.0, part.saved_bytes), ("activation recomp", part.forward, min(inputs, part.saved_bytes))]
        nodes.append(
            {
                "id": place,
                "name": part.name,
                "TMPCs": {
                    "1": [
                        {
                            "id": name,
                            "timePerSample": part.forward + part.backward + more,
                            "forwardTimePerSample": part.forward,
                            # The model counts 4 (d - 1) / d of it; a ring moves 2 (d - 1) / d of the gradients.
                            "parameterSize": part.parameter_bytes / 2,
                            "memoryUsageA": kept,
                            "memoryUsageB": state,
                            **sync,
                        }
                        for name, more, kept in modes
                    ]
                },
            }
        )
    repeats = len(profile.step_s)
    document = {
        "provenance": "python -m plantui.profile",
        "assumptions": [
            f"Times are medians of {repeats} steps on {profile.device}; a sample is the example's batch: {profile.batch}.",
            f"The parts' times add up to {profile.coverage:.1%} of a whole step of {profile.step:.4g} s.",
            "parameterSize is half the bytes of the gradients: 4 (d - 1) / d of it are what d replicas exchange.",
            "Only tensor degree 1 was measured: how a layer splits is not known.",
            "Recomputation costs one forward and keeps what comes in.",
            f"State takes {state_bytes:g} bytes per parameter."
            if state_bytes is not None
            else "State takes four times a parameter's own bytes: weight, gradient, two averages of Adam.",
        ],
        "recipe": {"micro_batch": profile.samples},
        "maxDevices": devices,
        "maxMemoryPerDevice": memory,
        "bandwidth": bandwidth,
        "mbsInBatch": microbatches,
        "nodes": nodes,
        "edges": [
            {"sourceId": source, "destId": place, "communicationCost": profile.parts[source].output_bytes}
            for source, place in profile.edges()
        ],
    }
    return json.dumps(document, indent=1) + "\n"
