#!/usr/bin/env python3
"""Writes the typed signatures of the package from the program's own commands.

    python3 python/signatures.py target/release/plantui

The result is python/plantui/_signatures.py. It must be written again when a command or an option changes.
"""

from __future__ import annotations

import json
import keyword
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any, NamedTuple

TARGET = Path(__file__).resolve().parent / "plantui" / "_signatures.py"

#: Options without a use in Python: results are returned, not printed or written.
PRINTED = {"json", "dot", "output", "force", "format", "help", "version", "csv", "svg", "figure", "sort", "no-seconds", "markdown", "why", "alone"}


class Command(NamedTuple):
    """A command as a function: its name, its result, its arguments before the named ones, what it leaves out."""

    function: str
    result: str
    positional: tuple[str, ...]
    left_out: frozenset[str] = frozenset()


WORKLOAD = "workload: WorkloadLike"
PLAN = "plan: PlanLike"
COMMANDS = {
    "plan": Command("plan", "Plan", (WORKLOAD,)),
    "check": Command("check", "Check", (WORKLOAD, PLAN)),
    "compare": Command("compare", "Comparison", (WORKLOAD,)),
    "estimate": Command("estimate", "Estimate", ("model: WorkloadLike",)),
    "calibrate": Command("calibrate", "Calibration", ("model: Optional[PathLike] = None",), frozenset({"write"})),
    "explain": Command("explain", "Explanation", (WORKLOAD,)),
    "map": Command("map", "Plan", (WORKLOAD, PLAN)),
    "seek": Command("seek", "Goal", (WORKLOAD,)),
    "sweep": Command("sweep", "Sweep", ("workload: Union[WorkloadLike, Sequence[WorkloadLike]]",)),
    "simulate": Command("simulate", "Simulation", (WORKLOAD, "plan: Optional[PlanLike] = None")),
    "export": Command("export", "str", (PLAN,)),
    "lint": Command("lint", "Findings", (WORKLOAD,)),
    "convert": Command("convert", "Workload", (WORKLOAD,)),
    "import": Command("import_job", "Job", ("job: PathLike",), frozenset({"workload", "plan", "best"})),
    "generate": Command("generate", "Workload", ("model: PathLike",)),
    "planners": Command("planners", "Table", ()),
    "hardware": Command("hardware", "Table", ()),
    "topologies": Command("topologies", "Table", ("topology: Optional[PathLike] = None",)),
    "terms": Command("terms", "Table", ("words: Sequence[str] = ()",)),
}
RENAMED = {"set": "options"}
#: Names of options that are lists.
PLURALS = {"planner": "planners", "plan": "plans", "run": "runs"}
COUNTS = {"K", "L", "N", "S", "B", "V", "GEN", "SEQUENCES", "CHANNELS", "PIXELS", "SAMPLES"}
QUANTITIES = {"SIZE", "RATE", "BANDWIDTH", "BYTES", "PRICE", "TOKENS", "SHARE", "FLOPS", "GB/S"}
#: Options of a sweep that may have several values.
SWEPT = {"devices", "cpus", "memory", "microbatches", "bandwidth", "batch", "flops"}

HEAD = '''"""The calls, with the arguments of the commands. Written by python/signatures.py; do not edit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Mapping, Optional, Sequence, Union

from plantui import _calls
from plantui._arguments import Count, PathLike, PlanLike, Quantity, Value, Values, WorkloadLike

if TYPE_CHECKING:
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
    )

__all__ = [
'''


def python_name(command: str, option: dict[str, Any]) -> str:
    name = option["name"]
    name = RENAMED.get(name, name)
    if option["repeated"]:
        name = PLURALS.get(name, name)
    name = name.replace("-", "_")
    return f"{name}_" if keyword.iskeyword(name) else name


def python_type(command: str, option: dict[str, Any]) -> str:
    value, name = option["value"], option["name"]
    if value is None:
        return "bool"
    if command == "sweep" and name in SWEPT or value in ("LIST", "N,..", "VALUES", "T,..", "TOKENS") and option["repeated"]:
        return "Values"
    if value in ("LIST", "N,..", "VALUES", "FIXED,SPLIT"):
        return "Values"
    if value == "NAME=VALUE":
        return "Mapping[str, Value]"
    if value == "NAME=N,..":
        return "Union[str, Mapping[str, Count]]"
    if value == "I/N":
        return "Sequence[int]"
    if command == "compare" and name == "plan":
        return "Sequence[PlanLike]"
    if option["repeated"]:
        return "Sequence[PathLike]" if "FILE" in value else "Sequence[str]"
    if value in COUNTS:
        return "Union[Count, str]"
    if value in QUANTITIES or value == "TIME":
        return "Quantity"
    if "FILE" in value or value in ("PLAN", "MODEL"):
        return "PathLike"
    return "str"


def kind(option: dict[str, Any]) -> str:
    """How `_arguments.flags` writes the option."""
    if option["value"] is None:
        return "switch"
    if option["value"] == "TIME":
        return "time"
    if option["value"] == "I/N":
        return "share"
    return "repeated" if option["repeated"] and option["value"] not in ("T,..", "TOKENS") else "value"


def sentence(text: str) -> str:
    first = re.split(r"\n\n", text.strip())[0]
    first = re.sub(r"\s+", " ", first).replace("\\", "\\\\").replace('"""', "'''")
    first = re.sub(r"--([a-z][a-z-]*)", lambda found: f"`{found[1].replace('-', '_')}`", first)
    return first if first.endswith((".", ":", "]", ")")) else f"{first}."


def function(command: str, part: dict[str, Any]) -> tuple[str, str]:
    """The function of a command, and the row of its table of flags."""
    shape = COMMANDS[command]
    options = [
        option
        for option in part["options"]
        if not option["positional"] and option["name"] not in PRINTED | shape.left_out
    ]
    for option in list(options):
        told = f"Another name of `{python_name(command, option)}`."
        options += [{**option, "name": alias, "aliases": [], "help": told, "default": None} for alias in option["aliases"]]
    options.sort(key=lambda option: not option["required"])
    first = [one.split(":")[0] for one in shape.positional]
    lines = [f"def {shape.function}("]
    lines += [f"    {one}," for one in shape.positional]
    lines += ["    *,"] if options else []
    told = []
    row = []
    for option in options:
        name, kind_of = python_name(command, option), python_type(command, option)
        if option["required"]:
            lines.append(f"    {name}: {kind_of},")
        elif kind_of == "bool":
            lines.append(f"    {name}: bool = False,")
        else:
            lines.append(f"    {name}: Optional[{kind_of}] = None,")
        help = sentence(option["help"])
        if option["value"] == "TIME":
            help += " A number is in seconds."
        elif option["value"] == "SIZE":
            help += " A number is in bytes."
        elif option["value"] in ("RATE", "BANDWIDTH") and option["name"] != "flops":
            help += " A number is in bytes per second."
        if option["default"]:
            help += f" Default: {option['default']}."
        values = [value["name"] for value in option["values"]]
        if 0 < len(values) <= 22:
            help += f" One of: {', '.join(values)}."
        told += textwrap.wrap(f"{name}: {help}", 112, initial_indent="    ", subsequent_indent="        ", break_on_hyphens=False)
        row.append(f'        "{name}": ("--{option["name"]}", "{kind(option)}"),')
    lines.append(f") -> {shape.result}:")
    about = part["about"].strip().rstrip(".")
    about = re.sub(r"\s+", " ", about)
    lines.append(f'    """{about}.')
    if told:
        lines += ["", *told]
    lines.append('    """' if told else lines.pop() + '"""')
    names = ", ".join(f'"{one}"' for one in first)
    arguments = ", ".join([*first, *([f"_calls.given(locals(), {names})"] if options else [])])
    lines.append(f"    return _calls.{shape.function}({arguments})")
    table = f'    "{command}": {{\n' + "\n".join(row) + "\n    }," if row else f'    "{command}": {{}},'
    return "\n".join(lines), table


def main() -> None:
    program = str(Path(sys.argv[1]).resolve())
    commands = {part["name"]: part for part in json.loads(subprocess.run([program, "man", "--json"], capture_output=True, check=True).stdout)}
    made = {command: function(command, commands[command]) for command in COMMANDS}
    text = HEAD + "".join(f'    "{shape.function}",\n' for shape in sorted(COMMANDS.values())) + "]\n"
    for body, _ in made.values():
        text += f"\n\n{body}\n"
    TARGET.write_text(text, encoding="utf-8")
    tables = "\n".join(row for _, row in made.values())
    flags = TARGET.with_name("_flags.py")
    flags.write_text(
        '"""Flag of every argument, and how it is written. Written by python/signatures.py; do not edit."""\n\n'
        "from __future__ import annotations\n\nfrom typing import Dict, Tuple\n\n"
        "#: By command and argument: the flag, and its kind (see `_arguments.flags`).\n"
        f"FLAGS: Dict[str, Dict[str, Tuple[str, str]]] = {{\n{tables}\n}}\n",
        encoding="utf-8",
    )


if __name__ == "__main__":
    main()
