"""The package as its users meet it: results, errors, files. The docstrings' examples run beside these."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
from pathlib import Path

import pytest

import plantui

LLAMA_3_8B = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_attention_heads": 32,
    "num_hidden_layers": 32,
    "num_key_value_heads": 8,
    "max_position_embeddings": 8192,
    "vocab_size": 128256,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


@pytest.fixture
def tiny() -> plantui.Workload:
    return plantui.generate("tiny-branch")


def test_a_config_is_planned_for_an_engine(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA_3_8B))
    workload = plantui.generate(config, hardware="h100", devices=16, microbatches=128)
    plan = plantui.plan(workload, planner="joint", options={"engine": "megatron"})
    assert plan.devices <= 16 and plan.simulation is not None
    assert plan.objective is not None and plan.objective.value > 0
    nodes = sorted(node for stage in plan.stages for node in stage.nodes)
    assert nodes == list(range(len(nodes))), "every node is in one stage"
    text = plan.export("megatron")
    assert "--num-layers 32" in text
    assert plan.export("megatron", micro_batch_size=1) == text


def test_a_config_is_a_model_to_be_trained(tmp_path: Path) -> None:
    config = tmp_path / "config.json"
    config.write_text(json.dumps(LLAMA_3_8B))
    plan = plantui.plan(config, devices=64, memory="80GiB", planner="joint")
    assert plan.devices <= 64 and plan.check()
    known = plan.configuration
    assert known is not None and known["tp"] * known["pp"] * known["cp"] * known["dp"] == plan.devices
    prediction = plan.prediction
    assert prediction is not None and 0 < prediction["mfu"] < 1 and prediction["tokens_per_s"] > 0
    assert prediction["trust"]["runs"] > 0
    assert "--tensor-model-parallel-size" in plan.export("megatron") or known["tp"] == 1


def test_plans_are_saved_and_read_again(tiny: plantui.Workload, tmp_path: Path) -> None:
    plan = plantui.plan(tiny)
    path = plan.save(tmp_path / "plan.json")
    again = plantui.load_plan(tiny, path)
    assert again == plan
    assert plantui.check(tiny, path).valid and again.check()
    kept = tiny.save(tmp_path / "workload.json")
    assert plantui.plan(kept).stages == plan.stages


def test_a_broken_plan_is_not_valid_and_says_why(tiny: plantui.Workload, tmp_path: Path) -> None:
    document = json.loads(json.dumps(plantui.plan(tiny).document))
    dropped = document["stages"][0]["nodes"].pop(0)
    document["stages"][0]["choices"].pop(str(dropped))
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(document))
    checked = plantui.check(tiny, path)
    assert not checked and checked.violations


def test_errors_carry_sentence_hint_and_exit_code(tiny: plantui.Workload, tmp_path: Path) -> None:
    with pytest.raises(plantui.NoPlan) as none:
        plantui.plan(tiny, devices=1)
    assert none.value.exit_code == 1 and none.value.fewest_devices == 3
    assert none.value.sentence.startswith("No feasible plan on 1 device")
    with pytest.raises(plantui.WrongUse) as wrong:
        plantui.plan(tmp_path / "nowhere.json")
    assert wrong.value.exit_code == 2 and wrong.value.hint == "check the path"
    with pytest.raises(plantui.WrongUse, match="no planner|invalid value"):
        plantui.plan(tiny, planner="best")
    with pytest.raises(plantui.WrongUse):
        plantui.plan(tiny, options={"speed": 9})
    with pytest.raises(plantui.Stopped) as stopped:
        plantui.plan(tiny, deadline=1e-9)
    assert stopped.value.exit_code == 3


def test_limits_are_numbers_text_or_lists(tiny: plantui.Workload) -> None:
    assert plantui.sweep(tiny, devices=4, memory=[1e9, 2e9])
    by_text = plantui.sweep(tiny, devices="3,4", memory="1GB,2GB")
    by_lists = plantui.sweep(tiny, devices=[3, 4], memory=(1e9, 2e9))
    strip = lambda points: [{k: v for k, v in point.items() if k != "seconds"} for point in points]  # noqa: E731
    assert strip(by_text) == strip(by_lists) and len(by_text) == 4
    with pytest.raises(TypeError):
        plantui.sweep(tiny, devices=object())  # type: ignore[arg-type]


def test_shares_of_a_sweep_are_the_whole(tiny: plantui.Workload) -> None:
    whole = plantui.sweep(tiny, devices="3..8:+1")
    shares = [plantui.sweep(tiny, devices="3..8:+1", shard=(index, 4)) for index in range(1, 5)]
    key = lambda point: point["devices"]  # noqa: E731
    assert sorted((key(point), point["value"]) for share in shares for point in share) == [
        (key(point), point["value"]) for point in whole
    ]


def test_comparing_has_every_planner_and_plans_of_files(tiny: plantui.Workload, tmp_path: Path) -> None:
    path = plantui.plan(tiny).save(tmp_path / "mine.json")
    entries = plantui.compare(tiny, planners=["piper"], plans=[path])
    assert len(entries) == 2
    assert entries.best.iteration_s == min(entry.iteration_s or 9e9 for entry in entries)


def test_plans_at_hand_are_compared_under_their_planners_names(tiny: plantui.Workload) -> None:
    plans = [plantui.plan(tiny, planner=planner) for planner in ("piper", "joint", "piper")]
    entries = plantui.compare(tiny, planners=["equal-partition"], plans=plans)
    assert len(entries) == 4
    assert len({entry.name for entry in entries}) == 4


def test_generated_workloads_are_told_apart() -> None:
    small, large = (plantui.generate("llama-3-8b", micro_batch=size) for size in (1, 2))
    points = plantui.sweep([small, large], devices=[8, 16], microbatches=16)
    assert {point["workload"] for point in points} == {"llama-3-8b-micro-batch-1", "llama-3-8b-micro-batch-2"}
    assert [plantui.generate(f"llama-3.1-{size}").path.stem for size in ("8b", "70b")] == ["llama-3.1-8b", "llama-3.1-70b"]


def test_numbers_of_numpy_are_limits(tiny: plantui.Workload) -> None:
    numpy = pytest.importorskip("numpy")
    assert plantui.plan(tiny, devices=numpy.int64(4), memory=numpy.float64(1e9)).limits["devices"] == 4
    assert len(plantui.sweep(tiny, devices=numpy.arange(3, 5))) == 2


def test_a_simulation_follows_the_plan(tiny: plantui.Workload) -> None:
    workload = plantui.generate("llama-3-8b", hardware="h100", devices=8, microbatches=16, memory="30GiB")
    options = {"schedule": "interleaved", "stages": 4, "virtual_stages": 2}
    plan = plantui.plan(workload, planner="joint", options=options)
    assert plan.simulation is not None and plan.simulation.schedule == "interleaved"
    assert plan.simulate().iteration_s == plan.simulation.iteration_s
    assert plan.simulate().schedule == "interleaved" and plan.simulate(schedule="gpipe").schedule == "gpipe"


def test_what_the_parser_of_arguments_proposes_is_a_hint(tiny: plantui.Workload) -> None:
    with pytest.raises(plantui.WrongUse) as planner:
        plantui.plan(tiny, planner="best")
    assert "possible values: joint, piper" in planner.value.hint
    with pytest.raises(TypeError, match="devcies"):
        plantui.plan(tiny, devcies=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="did you mean 'virtual_stages'"):
        plantui.plan(tiny).simulate(virtual_stage=2)


def test_a_simulation_has_its_stages(tiny: plantui.Workload) -> None:
    plan = plantui.plan(tiny)
    simulation = plan.simulate(schedule="1f1b", no_overlap=True)
    assert len(simulation.stages) == len(plan.stages) > 1
    assert all(0 < stage.utilization <= 1 for stage in simulation.stages)


def test_a_table_has_a_row_for_each_stage(tiny: plantui.Workload) -> None:
    rows = list(csv.reader(plantui.plan(tiny).export("csv").splitlines()))
    assert len(rows) >= 4


def test_the_module_is_the_program() -> None:
    done = subprocess.run([sys.executable, "-m", "plantui", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("plantui ")


def test_every_command_with_a_document_is_a_call(tiny: plantui.Workload, tmp_path: Path) -> None:
    estimate = plantui.estimate("llama-3.1-8b", devices=8, parallel={"tp": 2}, global_batch=128)
    assert estimate.layout.tp == 2 and estimate.trust is not None and "mean error" in estimate._repr_html_()
    goal = plantui.seek(tiny, least="devices", until="iteration_time<=0.2s")
    assert goal.plan is not None and goal.answer == goal.plan.limits["devices"] and len(goal.curve) > 0
    job = tmp_path / "train.sh"
    job.write_text(
        "torchrun --nproc-per-node 8 pretrain_gpt.py --num-layers 24 --hidden-size 2048 --num-attention-heads 16 "
        "--seq-length 2048 --max-position-embeddings 2048 --vocab-size 50304 --micro-batch-size 2 --global-batch-size 64 "
        "--tensor-model-parallel-size 2 --bf16\n"
    )
    read = plantui.import_job(job, hardware="h100")
    assert read.layout is not None and read.layout.tp == 2 and read.plan is not None and read.plan.check()
    assert read.workload is not None and plantui.plan(read.workload).devices == 8
    assert plantui.lint(tiny) and not plantui.lint(tiny).document["findings"] == []
    converted = plantui.convert(tiny, to="placement")
    assert plantui.plan(converted, planner="placement-dp").devices >= 1
    plan = plantui.plan("llama-3-8b", devices=16, global_batch=64)
    assert plan.map("2xdgx-h100").document["mapping"]["topology"] == "2xdgx-h100"
    assert plantui.simulate("llama-3-8b", plan).iteration_s == plan.simulate().iteration_s
    assert "--tensor-model" in plantui.export(plan, to="megatron") or plan.layout is not None
    assert {row["id"] for row in plantui.hardware()} > {"h100", "a100-80"}
    assert len(plantui.topologies("dgx-1")[0]["devices"]) == 8


def test_layouts_have_the_names_of_the_field(tmp_path: Path) -> None:
    plan = plantui.plan("llama-3.1-70b", devices=64, global_batch=128)
    layout = plan.layout
    assert layout is not None and plan.configuration is not None
    assert layout.tp * layout.pp * layout.cp * layout.dp == plan.devices
    for stage in plan.stages:
        assert (stage.tensor_parallel, stage.data_parallel, stage.context_parallel) == (layout.tp, layout.dp, layout.cp)
        assert len(stage.devices) == stage.replicas * stage.tensor_parallel
    assert plan.layouts[0] == layout or str(plan.layouts[0]) == str(layout)
    entry = plantui.compare("llama-3.1-70b", planners=["joint"], devices=64, global_batch=128).best
    assert str(entry.layout) == str(layout)
    point = plantui.sweep("llama-3.1-70b", devices=[64, 128], global_batch=128)[0]
    assert str(plantui.Layout.parse(point["layout"])) == str(layout)


def test_tables_and_pictures(tiny: plantui.Workload) -> None:
    pandas = pytest.importorskip("pandas")
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    plan = plantui.plan(tiny)
    both = plantui.compare(tiny, planners=["piper", "equal-partition"])
    points = plantui.sweep(tiny, devices=[3, 4], memory=["1GB", "2GB"])
    trained = plantui.plan("llama-3-8b", devices=16, global_batch=64)
    results = [plan, both, points, trained.layouts, plan.simulate(), plantui.history]
    for result in results:
        assert isinstance(result.to_pandas(), pandas.DataFrame) and len(result.to_pandas()) == len(
            getattr(result, "stages", result)  # type: ignore[arg-type]
        )
    for result in (plan, both, points, trained.layouts, plan.simulate()):
        assert result.plot().get_xlabel()
    matplotlib.pyplot.close("all")
    limit = plantui.explain(tiny).bottleneck
    assert limit and limit.stage in limit.alike and str(limit) in repr(plantui.explain(tiny))
    shown = [*results, plantui.explain(tiny), plantui.lint(tiny), plantui.planners(), plan.check(), plan.simulate()]
    for result in shown:
        assert result._repr_html_().startswith("<table>") and "\n" not in repr(result)
    assert "<svg" in plan._repr_html_()
