"""The servers behind the calls: one for many calls, several for several threads, Ctrl-C, a server that dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import plantui
from plantui import _server

ROOT = Path(__file__).resolve().parents[2]
#: A search of minutes, with plans from its first second on.
LONG = f"plantui.plan({str(ROOT / 'inputs' / 'bert96a100.json')!r}, planner='joint', options={{'space': 'any'}})"


def idle() -> list[int]:
    return [server._process.pid for _, server in _server._idle]


def test_calls_share_a_server() -> None:
    plantui.terms("bubble")
    first = idle()
    for _ in range(3):
        plantui.terms("bubble")
    assert idle() == first


def test_calls_of_several_threads_run_at_the_same_time() -> None:
    tiny = plantui.generate("tiny-branch")
    plans: list[plantui.Plan] = []
    threads = [threading.Thread(target=lambda: plans.append(plantui.plan(tiny))) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(plans) == 6 and len({plan.objective for plan in plans}) == 1
    assert len(idle()) <= _server.MOST_IDLE


def test_relative_paths_follow_the_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plantui.generate("tiny-branch").save(tmp_path / "here.json")
    plantui.terms("bubble")
    monkeypatch.chdir(tmp_path)
    assert plantui.plan("here.json").workload.name == "here"


def test_the_environment_is_that_of_the_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plantui.terms("bubble")
    config = tmp_path / "config.toml"
    config.write_text(
        "[hardware.mine]\npeak_16 = 1e14\nmemory_gib = 40\nmemory_bandwidth = 1e12\ninner_link = 1e11\nouter_link = 1e10\n"
    )
    monkeypatch.setenv("PLANTUI_CONFIG", str(config))
    assert plantui.estimate("llama-3-8b", devices=8, hardware="mine").hardware == "mine"


def test_a_server_that_died_is_replaced() -> None:
    plantui.terms("bubble")
    for process in idle():
        os.kill(process, getattr(signal, "SIGKILL", signal.SIGTERM))
    time.sleep(0.2)
    assert plantui.terms("bubble")


def test_a_program_that_is_none_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLANTUI_BINARY", str(tmp_path / "nowhere"))
    with pytest.raises(plantui.PlantuiError, match="nowhere"):
        plantui.terms("bubble")
    monkeypatch.setenv("PLANTUI_BINARY", sys.executable)
    with pytest.raises(plantui.PlantuiError, match="ended with code"):
        plantui.terms("bubble")


@pytest.mark.skipif(os.name != "posix", reason="signals")
@pytest.mark.parametrize("presses", [1, 2])
def test_ctrl_c_keeps_the_best_plan_and_twice_gives_up(presses: int) -> None:
    script = f"""
import plantui
print("ready", flush=True)
try:
    plan = {LONG}
    print(plan.status, len(plan.stages) > 0)
except KeyboardInterrupt:
    print("given up")
print(len(plantui.terms("bubble")))
"""
    child = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None and child.stdout.readline() == "ready\n"
    time.sleep(3)
    for _ in range(presses):
        child.send_signal(signal.SIGINT)
        # The second comes before a server has stopped its search, or after it has answered.
        time.sleep(0.001)
    told = child.stdout.read()
    assert child.wait() == 0, told
    assert told in (["cancelled True\n1\n"] if presses == 1 else ["given up\n1\n", "cancelled True\n1\n"])


@pytest.mark.skipif(not hasattr(os, "fork"), reason="fork")
def test_a_forked_process_has_servers_of_its_own() -> None:
    plantui.terms("bubble")
    child = os.fork()
    if child == 0:
        os._exit(0 if plantui.terms("bubble")[0]["name"] == "bubble" else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert plantui.terms("bubble")[0]["name"] == "bubble"


def test_progress_is_reported() -> None:
    reports: list[tuple[str, float, str]] = []
    stop = threading.Event()

    def progress(title: str, fraction: float, message: str) -> None:
        reports.append((title, fraction, message))
        stop.set()

    server = _server.Server(plantui.binary())
    call = ["plan", str(ROOT / "inputs" / "bert96a100.json"), "--planner", "joint", "--set", "space=any", "--deadline", "2s"]
    answer = server.call([*call, "--json"], None, progress)
    server.close()
    assert answer.exit_code == 0 and stop.is_set()
    assert all(title == "Joint" and 0 <= fraction <= 1 for title, fraction, _ in reports)
