"""``python -m plantui.profile module:build --input module:example --output model.txt``."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from pathlib import Path
from typing import Any, Optional, Sequence

EXAMPLES = """\
Examples:
  python -m plantui.profile my_model:build --input my_model:example --output model.txt
  python -m plantui.profile my_model:build --input my_model:example --output model.json --repeats 20
  python -m plantui.profile exported.pt2 --output model.txt
  python -m plantui.profile my_model:build --input my_model:example -o model.txt --compare-with-estimate llama-3-8b
  plantui model.txt --machines 2x4 --batch 512

`build` gives a torch.nn.Module; `example` gives what it is called with: a tensor, a tuple of arguments, a dictionary of
keywords, or (arguments, keywords). Either may be the value itself or a function without arguments. The current folder is
searched for the module. A file .pt2 is a program that torch.export.save wrote, with its own example. A name that ends in .json is written as Piper's profile, any other as PipeDream's graph.txt.
"""

#: Slowest parts that are listed.
LISTED = 12


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Profiles what was named, writes the file, and says what was found. Gives the exit code."""
    options = _parser().parse_args(arguments)
    try:
        import torch
    except ImportError:
        return _refuse("torch is not installed", "pip install torch, or pip install 'plantui[profile]'")
    from plantui.profile import profile, to_graph_txt, to_piper
    from plantui.profile._trace import CannotTrace

    output = Path(options.output)
    if output.exists() and not options.force:
        return _refuse(f"{output} exists already", "--force replaces it")
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.manual_seed(options.seed)
    sys.path.insert(0, "")
    exported = options.module.endswith(".pt2")
    if not exported and not options.input:
        return _refuse("--input is missing", "name what the module is called with: --input my_model:example")
    module = _exported(options.module) if exported else _named(options.module)
    example = _named(options.input) if options.input else None
    for value in (module, example):
        if isinstance(value, _Refused):
            return _refuse(value.what, value.repair)
    if isinstance(module, torch.export.ExportedProgram):
        example = module.example_inputs if example is None else example
        module = module.module()
    if not isinstance(module, torch.nn.Module):
        return _refuse(f"{options.module} is a {type(module).__name__}, not a torch.nn.Module", "name what builds the module")
    module = module.to(options.device)
    example = _moved(example, options.device)
    try:
        found = profile(
            module,
            example,
            repeats=options.repeats,
            warmup=options.warmup,
            merge=options.merge,
            trace=options.trace,
            clock=options.clock,
            name=options.module,
            samples=options.samples,
            progress=_bar if sys.stderr.isatty() else None,
        )
    except CannotTrace as error:
        return _refuse(str(error), "leave out --trace fx: module hooks follow any module")
    text = to_piper(found) if output.suffix == ".json" else to_graph_txt(found)
    output.write_text(text, encoding="utf-8")
    try:
        _report(found, output)
        if options.compare_with_estimate:
            return _compare(found, options.compare_with_estimate, options.hardware, options.sequence_length)
        sys.stdout.flush()
    except BrokenPipeError:
        # A reader such as `head` has what it wanted. Python would complain once more when it ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m plantui.profile",
        description="Measure a PyTorch module part by part and write it as a workload for plantui.",
        epilog=EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("module", metavar="MODULE:BUILD|FILE.pt2", help="what gives the torch.nn.Module, or an exported program")
    parser.add_argument("--input", metavar="MODULE:EXAMPLE", help="what gives the example it is called with")
    parser.add_argument("--output", "-o", required=True, metavar="FILE", help="model.txt (graph.txt) or model.json (Piper's)")
    parser.add_argument("--force", action="store_true", help="replace the output")
    parser.add_argument("--repeats", type=_count(1), default=5, metavar="N", help="steps that are measured [default: 5]")
    parser.add_argument("--warmup", type=_count(0), default=2, metavar="N", help="steps in front of them [default: 2]")
    parser.add_argument(
        "--merge", type=_share, default=0.005, metavar="SHARE",
        help="join chains of parts of which one has less than this share of the time; 0 none, 1 all [default: 0.005]",
    )
    parser.add_argument("--trace", choices=("auto", "fx", "hooks"), default="auto", help="how the graph is found [default: auto]")
    parser.add_argument("--clock", choices=("wall", "cpu"), default="wall", help="cpu: this process alone [default: wall]")
    parser.add_argument(
        "--samples", type=_count(1), metavar="N",
        help="samples of the example [default: the first dimension of its first tensor]",
    )
    parser.add_argument("--device", default="cpu", help="where it runs, such as cuda:0 [default: cpu]")
    parser.add_argument("--threads", type=_count(1), metavar="N", help="threads of torch [default: its own choice]")
    parser.add_argument(
        "--compare-with-estimate", metavar="MODEL",
        help="also predict this model (a name or a config.json) on one device, and tell the difference",
    )
    parser.add_argument("--hardware", default="h100", help="hardware of that prediction [default: h100]")
    parser.add_argument("--sequence-length", type=_count(1), metavar="TOKENS", help="tokens in a sequence of it")
    parser.add_argument("--seed", type=int, default=0, help="torch's random numbers [default: 0]")
    return parser


class _Refused:
    def __init__(self, what: str, repair: str) -> None:
        self.what, self.repair = what, repair


def _named(text: str) -> Any:
    """What ``module:name`` is, called if it is a function; a refusal where there is no such thing."""
    place, _, name = text.partition(":")
    if not place or not name:
        return _Refused(f"`{text}` names no object", "write MODULE:NAME, such as my_model:build")
    try:
        value: Any = importlib.import_module(place)
    except ModuleNotFoundError as error:
        return _Refused(f"`{text}`: {error}", "run it from the folder that holds the module")
    for part in name.split("."):
        if not hasattr(value, part):
            return _Refused(f"`{place}` has no `{part}`", "check the name behind the colon")
        value = getattr(value, part)
    import torch

    return value() if callable(value) and not isinstance(value, torch.nn.Module) else value


def _exported(text: str) -> Any:
    """The program in a file of ``torch.export.save``."""
    import torch

    if not Path(text).is_file():
        return _Refused(f"{text} does not exist", "check the path")
    try:
        return torch.export.load(text)
    except Exception as error:  # torch raises whatever its archive's parts raise
        first = (str(error).strip().splitlines() or [type(error).__name__])[0]
        return _Refused(f"{text} is no exported program: {first}", "write it with torch.export.save")


def _compare(found: Any, model: str, hardware: str, sequence_length: Optional[int]) -> int:
    """Tells the measured step beside the predicted one."""
    import plantui

    try:
        told = plantui.estimate(
            model,
            devices=1,
            hardware=hardware,
            global_batch=found.samples,
            parallel={"mbs": found.samples},
            sequence_length=sequence_length,
        )
    except plantui.PlantuiError as error:
        return _refuse(error.sentence, error.hint)
    step = told.iteration_s - told.parts_s.get("optimizer", 0.0) - told.parts_s.get("overhead", 0.0)
    parameters = told.document["model"]["parameters"]
    print(f"\nmeasured {_time(found.step)} on {found.device}; predicted {_time(step)} for {model} on one {hardware}, without")
    print(f"optimizer and overhead: {found.step / step:.2f}x; parameters {found.parameters} here, {parameters} there")
    if not 0.9 <= found.parameters / parameters <= 1.1:
        print("note: the numbers of parameters differ, so this is another model", file=sys.stderr)
    return 0


def _moved(value: Any, device: str) -> Any:
    import torch

    if isinstance(value, torch.Tensor):
        return value.to(device)
    if isinstance(value, dict):
        return {name: _moved(one, device) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(_moved(one, device) for one in value)
    return value


def _report(found: Any, output: Path) -> None:
    if found.traced_by == "hooks":
        print(f"note: parts are modules and what runs between them ({found.why})", file=sys.stderr)
    if found.unused_parameters:
        print(f"note: {found.unused_parameters} parameters took no part in the step and are left out", file=sys.stderr)
    for warning in found.warnings:
        print(f"note: {warning}", file=sys.stderr)
    print(f"{output}: {len(found.parts)} parts, {len(found.edges())} edges, {found.parameters} parameters; {found.device}")
    print(f"times and sizes are those of {found.samples} samples ({found.batch}); --samples N says otherwise")
    repeats = len(found.step_s)
    print(f"step {_time(found.step)} (median of {repeats}); the parts add up to {found.coverage:.1%} of it")
    print(f"\n{'forward':>10} {'backward':>10} {'spread':>7}  slowest parts")
    for part in sorted(found.parts, key=lambda part: -(part.forward + part.backward))[:LISTED]:
        print(f"{_time(part.forward):>10} {_time(part.backward):>10} {part.spread:>7.1%}  {part.name}")


def _time(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds >= 1 else f"{seconds * 1e3:.3f} ms"


def _bar(done: int, of: int) -> None:
    width = 30
    filled = width * done // of
    end = "\n" if done == of else ""
    print(f"\rmeasuring [{'#' * filled}{'.' * (width - filled)}] {done}/{of} steps", end=end, file=sys.stderr, flush=True)


def _refuse(what: str, repair: str) -> int:
    print(f"error: {what}\nhint: {repair}", file=sys.stderr)
    return 2


def _count(least: int) -> Any:
    def read(text: str) -> int:
        value = int(text)
        if value < least:
            raise argparse.ArgumentTypeError(f"must be at least {least}")
        return value

    return read


def _share(text: str) -> float:
    value = float(text)
    if not 0 <= value <= 1:
        raise argparse.ArgumentTypeError("must lie between 0 and 1")
    return value


if __name__ == "__main__":
    sys.exit(main())
