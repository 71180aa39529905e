"""Runs commands of the program ``plantui`` and turns how they ended into values and exceptions.

Everything this package does goes through here: arguments in, one JSON document out. There is no second implementation.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import sys
import sysconfig
from pathlib import Path
from typing import Any, Optional, Sequence

from plantui import _progress, _server

__all__ = ["Bug", "NoPlan", "PlantuiError", "Stopped", "WrongUse", "binary", "document", "run"]

_LOG = logging.getLogger("plantui")


class PlantuiError(Exception):
    """What went wrong, in the program's own sentence.

    ``error.sentence`` says what, ``error.hint`` the repair if there is one, ``error.exit_code`` how the program ended;
    ``str(error)`` is sentence and hint.
    """

    def __init__(self, sentence: str, hint: str = "", exit_code: int = 2) -> None:
        super().__init__(sentence)
        self.sentence = sentence
        self.hint = hint
        self.exit_code = exit_code

    def __str__(self) -> str:
        return f"{self.sentence}\n{self.hint}" if self.hint else self.sentence


class NoPlan(PlantuiError):
    """No plan keeps the limits (exit code 1).

    ``smallest_memory_bytes`` and ``fewest_devices`` are what would be just enough, where the planner knows it.
    """

    smallest_memory_bytes: Optional[float] = None
    fewest_devices: Optional[int] = None


class WrongUse(PlantuiError):
    """Wrong use or wrong input (exit code 2)."""


class Stopped(PlantuiError):
    """The deadline came before any plan was found (exit code 3)."""


class Bug(PlantuiError):
    """A planner claimed what the independent check does not confirm (exit code 70): please report it."""


_KINDS = {1: NoPlan, 2: WrongUse, 3: Stopped, 70: Bug}


def binary() -> str:
    """Where the program is.

    ``PLANTUI_BINARY`` names one; else it is the one installed beside this package, else the one on ``PATH``.

    >>> Path(binary()).stem
    'plantui'
    """
    named = os.environ.get("PLANTUI_BINARY")
    if named:
        return named
    name = "plantui" + (sysconfig.get_config_var("EXE") or "")
    user = f"{os.name}_user"
    folders = [sysconfig.get_path("scripts"), str(Path(sys.prefix) / "bin")]
    if user in sysconfig.get_scheme_names():
        folders.append(sysconfig.get_path("scripts", scheme=user))
    # `pip install --target FOLDER` puts scripts into FOLDER/bin.
    folders.append(str(Path(__file__).resolve().parent.parent / "bin"))
    for folder in folders:
        path = Path(folder) / name
        if path.is_file():
            return str(path)
    found = shutil.which("plantui")
    if found:
        return found
    raise WrongUse("the program `plantui` is not installed", "pip install plantui, or name it in PLANTUI_BINARY")


def run(arguments: Sequence[str], stdin: Optional[str] = None, accept: Sequence[int] = (0,)) -> str:
    """Runs the program and gives its standard output.

    Notes on standard error go to the logger ``plantui``. An exit code that is not in ``accept`` is raised.

    >>> run(["--version"]).split()[0]
    'plantui'
    """
    program = binary()
    try:
        answer = _server.call(program, arguments, stdin, _progress.bar())
    except OSError as error:
        raise WrongUse(f"{program} cannot be run: {error.strerror}", "name another program in PLANTUI_BINARY") from error
    except _server.ServerEnded as error:
        raise Bug(str(error), "please report it, with the call", error.code) from error
    told = answer.messages.strip()
    if answer.exit_code in accept:
        for line in told.splitlines():
            _LOG.info(line)
        return answer.output
    raise failure(answer.exit_code, told, answer.output)


def failure(code: int, told: str, printed: str) -> PlantuiError:
    """The exception for an exit code, from what the program told and printed.

    The parser of arguments tells more below its sentence: the values that there are, a similar name, what is missing.

    >>> told = "error: unexpected argument '--devcies' found\\n\\n  tip: a similar argument exists: '--devices'"
    >>> print(failure(2, told, ""))
    unexpected argument '--devcies' found
    a similar argument exists: '--devices'
    """
    sentence, hints = "", []
    for line in told.splitlines():
        if line.startswith(("error: ", "bug: ")) and not sentence:
            sentence = line.split(": ", 1)[1]
        elif line.startswith("hint: "):
            hints.append(line[len("hint: ") :])
        elif sentence and line.startswith("  "):
            hints.append(line.strip().removeprefix("tip: ").strip("[]"))
    kind = _KINDS.get(code, PlantuiError)
    error = kind(sentence or told or printed.strip() or f"plantui ended with exit code {code}", "\n".join(hints), code)
    if isinstance(error, NoPlan) and printed.startswith("{"):
        part = json.loads(printed).get("infeasible") or {}
        error.sentence = part.get("explanation") or "no plan keeps the limits"
        error.smallest_memory_bytes = part.get("smallest_memory_bytes")
        error.fewest_devices = part.get("fewest_devices")
    elif isinstance(error, Stopped):
        error.sentence = sentence or "stopped before any plan was found"
    return error


def document(arguments: Sequence[str], stdin: Optional[str] = None, accept: Sequence[int] = (0,)) -> Any:
    """Runs the program with ``--json`` and reads its one document.

    >>> document(["terms", "bubble"])[0]["name"]
    'bubble'
    """
    return json.loads(run([*arguments, "--json"], stdin, accept))
