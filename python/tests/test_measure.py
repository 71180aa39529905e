"""The script that measures a device's kernels runs on a small model on the CPU."""

import json
import os
import pathlib
import subprocess
import sys

import pytest

pytest.importorskip("torch")

SCRIPT = pathlib.Path(__file__).parents[2] / "examples" / "measure" / "measure.py"


def test_every_kind_of_row_is_measured_on_a_cpu(tmp_path):
    file = tmp_path / "kernels.json"
    call = [sys.executable, str(SCRIPT), "--tiny", "--device", "cpu", "--rounds", "2", "--output", str(file)]
    subprocess.run(call, check=True)
    document = json.loads(file.read_text())
    assert document["schema"] == "plantui.kernels/1" and document["device"] == "cpu"
    for kind in ("products", "attention", "copies", "iterations"):
        rows = document[kind]
        assert rows and all(value > 0 for row in rows for name, value in row.items() if name.endswith("seconds"))
    assert [row["micro_batch"] for row in document["iterations"]] == [1, 2, 4]
    # plantui reads the file, and refuses it because its products are small.
    plantui = os.environ.get("PLANTUI_BINARY", "plantui")
    told = subprocess.run([plantui, "calibrate", "--kernels", str(file)], capture_output=True, text=True)
    assert told.returncode == 2 and "measure on a GPU, without --tiny" in told.stderr


def test_a_cpu_alone_is_refused_without_tiny():
    told = subprocess.run([sys.executable, str(SCRIPT), "--device", "cpu"], capture_output=True, text=True)
    assert told.returncode == 1 and "there is no GPU here" in told.stderr
