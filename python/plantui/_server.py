"""Servers: processes of ``plantui serve --stdio`` that live as long as this one and answer calls.

A call takes an idle server, or starts one, so calls of several threads run at the same time. Nothing here holds the
interpreter's lock while a server works: this process only waits for a line.
"""

from __future__ import annotations

import atexit
import json
import os
import queue
import subprocess
import tempfile
import threading
from dataclasses import dataclass
from typing import IO, Any, Callable, Dict, List, Optional, Sequence, Tuple

__all__ = ["Answer", "call"]

#: Receives the title, the share that is done, and a message.
Progress = Callable[[str, float, str], None]

#: Idle servers that are kept.
MOST_IDLE = 4


@dataclass(frozen=True)
class Answer:
    """How a call ended: exit code, text of standard output, text of standard error."""

    exit_code: int
    output: str
    messages: str


class Server:
    """One process, which answers one call at a time."""

    def __init__(self, program: str) -> None:
        own_group: Dict[str, Any] = {"start_new_session": True}
        if os.name == "nt":
            own_group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}  # type: ignore[attr-defined]
        self._lost: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")
        # In a group of its own: Ctrl-C reaches this process alone, which then stops the call and keeps its result.
        self._process = subprocess.Popen(
            [program, "serve", "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._lost,
            encoding="utf-8",
            **own_group,
        )
        self._calls = 0
        # Lines come over a queue: a wait for it can be interrupted without loss.
        self._lines: queue.SimpleQueue[str] = queue.SimpleQueue()
        threading.Thread(target=self._read_all, name="plantui", daemon=True).start()

    def alive(self) -> bool:
        """True if it can take a call."""
        return self._process.poll() is None

    def call(self, arguments: Sequence[str], stdin: Optional[str], progress: Optional[Progress]) -> Answer:
        """Answers a call. Ctrl-C stops it and keeps its result; a second one ends the server."""
        self._calls += 1
        request = {"id": self._calls, "arguments": list(arguments), "input": stdin or "", "directory": os.getcwd()}
        self._send(request)
        stopped = False
        while True:
            try:
                answer = self._take(self._next_line(), progress)
                if answer is not None:
                    return answer
            except KeyboardInterrupt:
                if stopped:
                    self.close()
                    raise
                stopped = True
                self._send({"id": self._calls, "cancel": True})

    def _take(self, line: str, progress: Optional[Progress]) -> Optional[Answer]:
        """The answer in a line, if it is one."""
        told = json.loads(line) if line.strip() else {}
        if told.get("id") != self._calls:
            return None
        if "progress" in told:
            if progress is not None:
                part = told["progress"]
                progress(part["title"], part["fraction"], part["message"])
            return None
        return Answer(told["exit_code"], told["output"], told["messages"])

    def _send(self, request: Dict[str, Any]) -> None:
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(request) + "\n")
            self._process.stdin.flush()
        except OSError as error:
            raise self._ended() from error

    def _read_all(self) -> None:
        assert self._process.stdout is not None
        try:
            for line in self._process.stdout:
                self._lines.put(line)
        except (OSError, ValueError):
            pass
        # An empty text marks the end.
        self._lines.put("")

    def _next_line(self) -> str:
        while True:
            try:
                # With a time limit, because Windows does not interrupt a wait without one.
                line = self._lines.get(timeout=1.0)
            except queue.Empty:
                continue
            if not line:
                raise self._ended()
            return line

    def _ended(self) -> ServerEnded:
        code = self._process.wait()
        self._lost.seek(0)
        return ServerEnded(code, self._lost.read()[-4000:].strip())

    def close(self) -> None:
        """Ends the process."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout, self._lost):
            if stream is not None:
                try:
                    stream.close()
                except OSError:
                    pass


class ServerEnded(Exception):
    """A server ended in the middle of a call; carries its exit code and what it left on standard error."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"plantui ended with code {code}" + (f":\n{text}" if text else ""))
        self.code = code


#: Beginnings of the variables that a server reads once, when it starts.
_VARIABLES = ("PLANTUI_", "XDG_", "HOME", "APPDATA", "LOCALAPPDATA", "RAYON_NUM_THREADS")
_Key = Tuple[int, str, Tuple[Tuple[str, str], ...]]
_idle: List[Tuple[_Key, Server]] = []
_lock = threading.Lock()


def _key(program: str) -> _Key:
    # A forked process has to start servers of its own.
    return os.getpid(), program, tuple(sorted(one for one in os.environ.items() if one[0].startswith(_VARIABLES)))


def call(program: str, arguments: Sequence[str], stdin: Optional[str], progress: Optional[Progress]) -> Answer:
    """Answers a call by an idle server, or a new one."""
    key = _key(program)
    server = _take_idle(key) or Server(program)
    try:
        answer = server.call(arguments, stdin, progress)
    except BaseException:
        # The server may be in the middle of the call.
        server.close()
        raise
    with _lock:
        if len(_idle) < MOST_IDLE:
            _idle.append((key, server))
            return answer
    server.close()
    return answer


def _take_idle(key: _Key) -> Optional[Server]:
    with _lock:
        for place, (known, server) in enumerate(_idle):
            if known == key:
                del _idle[place]
                if server.alive():
                    return server
                break
        else:
            # Servers of another environment are of no use. Servers from before a fork belong to the other process.
            old = [server for known, server in _idle if known[0] == key[0]]
            _idle.clear()
            for server in old:
                server.close()
    return None


@atexit.register
def _close_all() -> None:
    with _lock:
        for key, server in _idle:
            if key[0] == os.getpid():
                server.close()
        _idle.clear()
