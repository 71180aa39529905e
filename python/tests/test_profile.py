"""Profiles of networks built from a configuration, without weights. Skipped where torch is not installed.

Times are the processor's for this process on one thread, so that other programs on the machine change little; medians, and
a second try with more repetitions, take care of the rest.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Tuple

import pytest

torch = pytest.importorskip("torch")

import plantui  # noqa: E402
from plantui.profile import Profile, profile, to_graph_txt, to_piper  # noqa: E402
from torch import nn  # noqa: E402

Net = Tuple[nn.Module, Any, str]


@pytest.fixture(autouse=True)
def one_thread() -> Any:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    yield
    torch.set_num_threads(before)


def resnet() -> Net:
    models = pytest.importorskip("torchvision.models")
    return models.resnet18(), torch.randn(4, 3, 96, 96), "fx"


def bert() -> Net:
    transformers = pytest.importorskip("transformers")
    config = transformers.BertConfig(
        num_hidden_layers=3, hidden_size=256, num_attention_heads=4, intermediate_size=1024, vocab_size=2000
    )
    ids = torch.randint(0, 2000, (4, 64))
    return transformers.BertModel(config), {"input_ids": ids, "attention_mask": torch.ones_like(ids)}, "hooks"


def gpt2() -> Net:
    transformers = pytest.importorskip("transformers")
    config = transformers.GPT2Config(n_layer=3, n_embd=256, n_head=4, vocab_size=2000, bos_token_id=0, eos_token_id=0)
    ids = torch.randint(0, 2000, (4, 64))
    return transformers.GPT2LMHeadModel(config), {"input_ids": ids, "labels": ids}, "hooks"


class UNet(nn.Module):
    """Down, across, up, with a skip at every level."""

    def __init__(self, width: int = 16, levels: int = 3) -> None:
        super().__init__()
        sizes = [width * 2**level for level in range(levels + 1)]
        block = lambda a, b: nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(inplace=True))  # noqa: E731
        self.enter = block(3, width)
        self.down = nn.ModuleList(block(a, b) for a, b in zip(sizes, sizes[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in zip(sizes, sizes[1:]))
        self.join = nn.ModuleList(block(2 * a, a) for a in sizes[:-1])
        self.leave = nn.Conv2d(width, 2, 1)

    def forward(self, x: Any) -> Any:
        x = self.enter(x)
        skips = []
        for down in self.down:
            skips.append(x)
            x = down(nn.functional.max_pool2d(x, 2))
        for up, join, skip in reversed(list(zip(self.up, self.join, skips))):
            x = join(torch.cat([up(x), skip], dim=1))
        return self.leave(x)


def unet() -> Net:
    return UNet(), torch.randn(2, 3, 64, 64), "fx"


def steady(module: nn.Module, example: Any, **more: Any) -> Profile:
    """A profile whose parts add up, at the second try with more repetitions."""
    found = profile(module, example, repeats=5, warmup=2, clock="cpu", **more)
    if abs(found.coverage - 1) > 0.15:
        found = profile(module, example, repeats=15, warmup=2, clock="cpu", **more)
    return found


@pytest.mark.parametrize("build", [resnet, bert, gpt2, unet])
def test_networks_are_profiled_planned_and_simulated(build: Any, tmp_path: Path) -> None:
    module, example, how = build()
    found = steady(module, example)
    assert found.traced_by == how and (found.why == "") == (how == "fx")
    assert found.parameters == sum(one.numel() for one in module.parameters()), "parameters are exact, shared ones once"
    assert found.unused_parameters == 0
    assert abs(found.coverage - 1) <= 0.15, f"the parts add up to {found.coverage:.1%} of a step"
    assert all(source < place for source, place in found.edges()), "acyclic: every part reads earlier ones"
    assert len(found.parts) >= 8

    text, piper = tmp_path / "model.txt", tmp_path / "model.json"
    text.write_text(to_graph_txt(found))
    piper.write_text(to_piper(found, devices=4, memory=64e9, microbatches=16))
    for file in (text, piper):
        done = subprocess.run([plantui.binary(), "lint", str(file), "--json"], capture_output=True, text=True, check=False)
        levels = [finding["severity"] for finding in json.loads(done.stdout)["findings"]]
        assert "error" not in levels, done.stdout

    layers = plantui.plan(text, machines=[2, 2], batch=16, memory="64GB")
    assert layers.devices >= 1 and layers.check()
    plan = plantui.plan(piper)
    assert plan.status in ("optimal", "feasible") and plan.lower_bound and plan.check()
    assert plan.simulate(schedule="gpipe").iteration_s > 0


def test_what_a_part_hands_on_and_keeps_is_exact() -> None:
    two = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8))
    found = profile(two, torch.randn(32, 64), repeats=1, merge=0)
    assert [part.output_bytes for part in found.parts] == [32 * 256 * 4, 32 * 256 * 4, 32 * 8 * 4]
    # Linear keeps what comes in; ReLU keeps what goes out, which the next Linear keeps as well.
    assert [part.saved_bytes for part in found.parts] == [32 * 64 * 4, 32 * 256 * 4, 0]
    assert [part.parameter_bytes for part in found.parts] == [(64 * 256 + 256) * 4, 0, (256 * 8 + 8) * 4]
    assert found.edges() == [(0, 1), (1, 2)]


def test_chains_are_merged_and_branches_are_not() -> None:
    class Branch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b, self.c = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            x = torch.relu(self.a(x))
            return torch.relu(self.b(x)) + torch.relu(self.c(x))

    found = profile(Branch(), torch.randn(4, 8), repeats=1, merge=1)
    assert [part.name for part in found.parts] == ["a Linear .. relu", "b Linear .. relu_1", "c Linear .. relu_2", "add"]
    assert found.edges() == [(0, 1), (0, 2), (1, 3), (2, 3)]
    apart = profile(Branch(), torch.randn(4, 8), repeats=1, merge=0)
    assert len(apart.parts) == 7 and apart.parameters == found.parameters == 3 * 72


def test_hooks_find_the_same_flow_as_fx() -> None:
    module, example, _ = unet()
    by_fx = profile(module, example, repeats=1, merge=0)
    by_hooks = profile(module, example, repeats=1, merge=0, trace="hooks")
    assert by_hooks.why == "asked for"
    modules = lambda found: [part.name for part in found.parts if part.name.split()[-1][0].isupper()]  # noqa: E731
    assert modules(by_fx) == modules(by_hooks)
    assert by_fx.parameters == by_hooks.parameters
    # Three skips: three parts of the way down are read twice.
    for found in (by_fx, by_hooks):
        sources = [source for source, _ in found.edges()]
        assert sum(sources.count(source) == 2 for source in set(sources)) == 3


def test_a_module_used_twice_counts_its_parameters_once() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.one = nn.Linear(8, 8)

        def forward(self, x: Any) -> Any:
            return self.one(self.one(x) * (1.0 if float(x.sum()) > 0 else 2.0))

    found = profile(Twice(), torch.randn(4, 8), repeats=1, merge=0)
    assert found.traced_by == "hooks" and found.parameters == 72
    assert [part.parameters for part in found.parts if "Linear" in part.name] == [72, 0]


def test_the_command_writes_what_plantui_opens(tmp_path: Path) -> None:
    (tmp_path / "tiny_model.py").write_text(
        "import torch\n"
        "def build(): return torch.nn.Sequential(torch.nn.Linear(16, 32), torch.nn.ReLU(), torch.nn.Linear(32, 4))\n"
        "example = torch.randn(8, 16)\n"
    )

    def call(*more: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "plantui.profile", "tiny_model:build", "--input", "tiny_model:example", *more]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    done = call("--output", "model.txt", "--repeats", "2", "--merge", "0")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "model.txt").read_text().startswith("# profile_batch=")
    assert "model.txt: 3 parts, 2 edges, 676 parameters" in done.stdout and "slowest parts" in done.stdout
    assert plantui.plan(tmp_path / "model.txt", machines="2", batch=8, memory="8GB").stages
    assert call("--output", "model.json", "--repeats", "1").returncode == 0
    assert plantui.plan(tmp_path / "model.json").check()
    again = call("--output", "model.txt")
    assert again.returncode == 2 and "--force" in again.stderr
    for wrong, part in [("tiny_model", "MODULE:NAME"), ("nowhere:build", "folder"), ("tiny_model:built", "no `built`")]:
        command = [sys.executable, "-m", "plantui.profile", wrong, "--input", "tiny_model:example", "-o", "x.txt"]
        refused = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert refused.returncode == 2 and part in refused.stderr, refused.stderr


def test_exported_programs_are_profiled_like_their_module(tmp_path: Path) -> None:
    module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))
    program = torch.export.export(module, (torch.randn(8, 16),))
    found = profile(program, repeats=1, merge=0)
    assert (len(found.parts), found.parameters, found.samples) == (3, 676, 8)
    assert any(part.backward > 0 for part in found.parts)
    torch.export.save(program, tmp_path / "exported.pt2")
    call = [sys.executable, "-m", "plantui.profile"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([*call, *more], cwd=tmp_path, capture_output=True, text=True, check=False)

    done = run("exported.pt2", "-o", "model.txt", "--merge", "0", "--compare-with-estimate", "llama-3-8b", "--hardware", "h100")
    assert done.returncode == 0, done.stderr
    assert "model.txt: 3 parts" in done.stdout and "predicted" in done.stdout and "another model" in done.stderr
    (tmp_path / "broken.pt2").write_text("nothing")
    assert "no exported program" in run("broken.pt2", "-o", "other.txt").stderr
    assert "--input is missing" in run("tiny_model:build", "-o", "other.txt").stderr


def test_what_a_plan_does_not_see_is_told() -> None:
    module = nn.DataParallel(nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)))
    module.module[0].weight.requires_grad = False
    told = profile(module, torch.randn(4, 8), repeats=1, trace="hooks").warnings
    assert any("DataParallel" in one for one in told) and any("64 parameters are frozen" in one for one in told)
    assert any("optimizer" in one for one in told)


def test_a_closed_pipe_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "tiny_model.py").write_text("import torch\nbuild = torch.nn.Linear(4, 4)\nexample = torch.randn(2, 4)\n")
    command = f"{sys.executable} -m plantui.profile tiny_model:build --input tiny_model:example -o m.txt | true"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr and "BrokenPipe" not in done.stderr, done.stderr
