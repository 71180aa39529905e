"""Arguments: their types, and how they become flags of the program."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Iterable, List, Mapping, SupportsFloat, SupportsIndex, Union

from plantui._flags import FLAGS

if TYPE_CHECKING:
    from plantui._results import Plan, Workload

__all__ = ["Count", "PathLike", "PlanLike", "Quantity", "Value", "Values", "WorkloadLike", "flags"]

#: A file, or a name that the program knows.
PathLike = Union[str, "os.PathLike[str]"]
#: A whole number; NumPy's are taken too.
Count = SupportsIndex
#: Text with a unit (`"80GiB"`, `"25GB/s"`, `"2min"`), or a number in the base unit.
Quantity = Union[str, SupportsFloat]
#: One value, several values, or text such as `"8..64:x2"`.
Values = Union[str, SupportsFloat, Iterable[Union[str, SupportsFloat]]]
#: Value of an option.
Value = Union[str, bool, SupportsFloat]
#: A file in any format, a model's name, or what another call made.
WorkloadLike = Union["Workload", str, "os.PathLike[str]"]
#: A plan, or a file with one.
PlanLike = Union["Plan", str, "os.PathLike[str]"]


def flags(command: str, given: Mapping[str, Any]) -> List[str]:
    """Arguments of a call as flags of the command.

    >>> flags("plan", {"devices": 16, "memory": "80GiB", "options": {"data_parallel": False}, "deadline": 2})
    ['--devices', '16', '--memory', '80GiB', '--set', 'data_parallel=false', '--deadline', '2s']
    >>> flags("plan", {"device": 4})
    Traceback (most recent call last):
    TypeError: plan() has no argument 'device'; did you mean 'devices'?
    """
    known = FLAGS[command]
    told: List[str] = []
    for name, value in given.items():
        if name not in known:
            import difflib

            near = difflib.get_close_matches(name, known, 1)
            raise TypeError(f"{command}() has no argument {name!r}" + (f"; did you mean {near[0]!r}?" if near else ""))
        flag, kind = known[name]
        if value is None or value is False and kind == "switch":
            continue
        if kind == "switch":
            told.append(flag)
        elif kind == "repeated":
            single = isinstance(value, (str, int, float, os.PathLike))
            for one in _pairs(value) if isinstance(value, Mapping) else [value] if single else value:
                told += [flag, _text(one)]
        elif kind == "share":
            index, count = value
            told += [flag, f"{index}/{count}"]
        elif kind == "time" and not isinstance(value, str):
            told += [flag, f"{_text(value)}s"]
        else:
            told += [flag, _text(value)]
    return told


def _pairs(values: Mapping[str, Any]) -> List[str]:
    return [f"{name}={_text(value)}" for name, value in values.items()]


def _text(value: Any) -> str:
    """A value as the command line takes it: a path or text as it is, numbers exactly, several values with commas."""
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, Mapping):
        return ",".join(_pairs(value))
    # An array of NumPy has the methods of a number too.
    if getattr(value, "shape", ()) == ():
        if hasattr(value, "__index__"):
            return str(value.__index__())
        if hasattr(value, "__float__"):
            return repr(float(value))
    if isinstance(value, Iterable):
        return ",".join(_text(one) for one in value)
    raise TypeError(f"{value!r} is no value of an option: give text, a number, or several of them")
