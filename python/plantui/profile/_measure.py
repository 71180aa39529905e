"""Runs a module step by step under the clock."""

from __future__ import annotations

import time
from typing import Any, Callable, Dict, List, Mapping, Optional, Sequence, Set, Tuple, Union

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.export import ExportedProgram

from plantui.profile._graph import Part, Profile, merged, without_empty
from plantui.profile._trace import CannotTrace, FxTrace, Trace, by_fx, by_hooks, tensors_in

__all__ = ["profile"]

Progress = Callable[[int, int], None]


class _Stopwatch:
    """Reads the clock where parts begin and end, forward and backward.

    In the backward, a part begins where autograd comes to the node that made its output. Autograd works through one
    operation after the other, the last first, so what follows until the next such node is that part's.
    """

    def __init__(self, count: int, device: torch.device, clock: str) -> None:
        self.forward = [0.0] * count
        self.backward = [0.0] * count
        self.device = device
        self.read = time.process_time if clock == "cpu" else time.perf_counter
        self.begun = 0.0
        self.running = -1
        self.owned: Set[Any] = set()
        self.since = 0.0

    def now(self) -> float:
        """Seconds; what a device was given is finished first."""
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return self.read()

    def begin(self, part: int) -> None:
        self.begun = self.now()

    def end(self, part: int, outputs: Sequence[Tuple[Tensor, int]]) -> None:
        self.forward[part] += self.now() - self.begun
        for output, maker in outputs:
            node = output.grad_fn
            if node is not None and maker >= 0 and node not in self.owned:
                self.owned.add(node)
                node.register_prehook(lambda _gradients, part=maker: self.arrive(part))

    def arrive(self, part: int) -> None:
        """Autograd has come to a part."""
        if part != self.running:
            now = self.now()
            self.leave(now)
            self.running, self.since = part, now

    def leave(self, now: float) -> None:
        if self.running >= 0:
            self.backward[self.running] += now - self.since


class _Keeper:
    """Counts what autograd keeps for the backward, by part."""

    def __init__(self, parts: Sequence[Part], parameters: Sequence[Tensor]) -> None:
        self.parts = parts
        self.part: Optional[int] = None
        self.seen = {tensor.untyped_storage().data_ptr() for tensor in parameters}
        # Storages must not be freed and given to others while they are counted.
        self.alive: List[Tensor] = []

    def begin(self, part: int) -> None:
        self.part = part

    def end(self, part: int, outputs: Sequence[Tuple[Tensor, int]]) -> None:
        self.part = None

    def pack(self, tensor: Tensor) -> Tensor:
        pointer = tensor.untyped_storage().data_ptr()
        if self.part is not None and pointer not in self.seen:
            self.seen.add(pointer)
            self.alive.append(tensor.detach())
            self.parts[self.part].saved_bytes += tensor.numel() * tensor.element_size()
        return tensor


def profile(
    module: Union[nn.Module, ExportedProgram],
    example: Any = None,
    *,
    repeats: int = 5,
    warmup: int = 2,
    merge: float = 0.005,
    trace: str = "auto",
    clock: str = "wall",
    name: str = "",
    samples: Optional[int] = None,
    progress: Optional[Progress] = None,
) -> Profile:
    """Profiles a module on the device that it is on, forward and backward, as it trains.

    ``module`` may be a program of ``torch.export``, whose own example is taken if none is given. ``example`` is what the
    module is called with: a tensor, a tuple of arguments, a dictionary of keywords, or ``(arguments, keywords)``. ``repeats`` steps are measured after ``warmup`` others. ``merge`` joins chains of parts of
    which one has less than this share of the time; 0 joins none, 1 all. ``trace`` is ``fx``, ``hooks`` or ``auto``: fx,
    and hooks where that fails. ``clock`` is ``wall``, or ``cpu`` for the processor time of this process alone, which a busy
    machine disturbs less; they are the same thing on one thread and an idle machine. ``samples`` says how many the example
    holds where that is not the first dimension of its first tensor: times and sizes are those of so many.

    >>> import torch
    >>> from plantui.profile import profile
    >>> two = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Linear(256, 8))
    >>> done = profile(two, torch.randn(32, 64), repeats=3, merge=0)
    >>> [part.name for part in done.parts], done.parameters
    (['0 Linear', '1 Linear'], 18696)
    """
    if repeats < 1 or warmup < 0:
        raise ValueError("repeats is at least 1, warmup at least 0")
    if samples is not None and samples < 1:
        raise ValueError("samples is at least 1")
    if clock not in ("wall", "cpu"):
        raise ValueError(f"clock is wall or cpu, not {clock!r}")
    if isinstance(module, ExportedProgram):
        example = module.example_inputs if example is None else example
        name = name or "exported program"
        module = module.module()
    if example is None:
        raise ValueError("example is missing: what the module is called with")
    args, kwargs = _arguments(example)
    parameters = list(module.parameters())
    device = parameters[0].device if parameters else torch.device("cpu")
    trained = module.training
    _train(module, True)
    try:
        followed, why = _traced(module, args, kwargs, trace)
        new_watch = lambda: _Stopwatch(len(followed.parts), device, clock)  # noqa: E731
        steps = _repeat(module, args, kwargs, followed, new_watch, repeats, warmup, progress)
        _keep(followed, parameters)
    finally:
        _train(module, trained)
        module.zero_grad(set_to_none=True)
    used = sum(part.parameters for part in followed.parts)
    parts = merged(without_empty(followed.parts), merge)
    return Profile(
        name=name or type(module).__name__,
        parts=parts,
        traced_by="fx" if isinstance(followed, FxTrace) else "hooks",
        why=why,
        device=_device_name(device),
        batch=_shapes(args, kwargs),
        step_s=steps,
        samples=samples or _samples(args, kwargs),
        unused_parameters=sum(one.numel() for one in parameters) - used,
        warnings=_warnings(module, parts),
    )


def _train(module: nn.Module, training: bool) -> None:
    """Switches dropout and batch norm. An exported program has them as they were when it was exported."""
    try:
        module.train(training)
    except NotImplementedError:
        pass


#: Wrappers of a module, by the name of their class, and what of them is not in the profile.
_WRAPPERS = {
    "DistributedDataParallel": "its all-reduce runs inside the backward pass and is counted as computing",
    "FullyShardedDataParallel": "its collectives run inside the passes and are counted as computing",
    "DataParallel": "its copies to other devices are counted as computing",
    "OptimizedModule": "torch.compile fuses what the parts are made of: parts are those of the module before",
}


def _warnings(module: nn.Module, parts: Sequence[Part]) -> List[str]:
    """What a plan of the profile does not see."""
    found = [
        f"the module is wrapped in {type(one).__name__}: {_WRAPPERS[type(one).__name__]}"
        for one in module.modules()
        if type(one).__name__ in _WRAPPERS
    ]
    frozen = sum(one.numel() for one in module.parameters() if not one.requires_grad)
    if frozen:
        found.append(f"{frozen} parameters are frozen; their gradients and optimizer state are counted as if they were trained")
    if not any(part.backward for part in parts):
        found.append("nothing runs backward: no output depends on a parameter that is trained")
    found.append("the optimizer's step, the loss outside of the module, and the loading of data are not measured")
    return found


def _arguments(example: Any) -> Tuple[Tuple[Any, ...], Dict[str, Any]]:
    if isinstance(example, Mapping):
        return (), dict(example)
    if isinstance(example, (tuple, list)):
        if len(example) == 2 and isinstance(example[0], (tuple, list)) and isinstance(example[1], Mapping):
            return tuple(example[0]), dict(example[1])
        return tuple(example), {}
    return (example,), {}


def _traced(module: nn.Module, args: Any, kwargs: Any, how: str) -> Tuple[Trace, str]:
    if how not in ("auto", "fx", "hooks"):
        raise ValueError(f"trace is fx, hooks or auto, not {how!r}")
    if how == "hooks":
        return by_hooks(module, args, kwargs), "asked for"
    try:
        return by_fx(module, args, kwargs), ""
    except CannotTrace as error:
        if how == "fx":
            raise
        return by_hooks(module, args, kwargs), str(error)


def _repeat(
    module: nn.Module,
    args: Any,
    kwargs: Any,
    followed: Trace,
    new_watch: Callable[[], _Stopwatch],
    repeats: int,
    warmup: int,
    progress: Optional[Progress],
) -> List[float]:
    """Steps under the clock and steps that nobody watches in turns, so that both meet the same machine."""
    whole: List[float] = []
    for turn in range(warmup + repeats):
        module.zero_grad(set_to_none=True)
        watch = new_watch()
        begun = watch.now()
        _backward(module(*args, **kwargs))
        step = watch.now() - begun
        module.zero_grad(set_to_none=True)
        result = followed.run(watch)
        _backward(result)
        watch.leave(watch.now())
        if turn >= warmup:
            whole.append(step)
            for part, forward, backward in zip(followed.parts, watch.forward, watch.backward):
                part.forward_s.append(forward)
                part.backward_s.append(backward)
        del result, watch
        if progress:
            progress(turn + 1, warmup + repeats)
    return whole


def _backward(result: Any) -> None:
    loss = getattr(result, "loss", None)
    found = [loss] if isinstance(loss, Tensor) else list(tensors_in(result))
    outputs = [one for one in found if one.requires_grad]
    if outputs:
        torch.autograd.backward(outputs, [torch.ones_like(one) for one in outputs])


def _keep(followed: Trace, parameters: Sequence[Tensor]) -> None:
    keeper = _Keeper(followed.parts, parameters)
    with saved_tensors_hooks(keeper.pack, lambda tensor: tensor):
        followed.run(keeper)


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return str(torch.cuda.get_device_name(device))
    return f"{device.type}, {torch.get_num_threads()} threads" if device.type == "cpu" else device.type


def _samples(args: Any, kwargs: Any) -> int:
    """The first dimension of the first tensor; 1 where it has none."""
    first = next(iter(tensors_in((args, kwargs))), None)
    return max(1, int(first.shape[0])) if first is not None and first.ndim > 0 else 1


def _shapes(args: Any, kwargs: Any) -> str:
    shapes = ["x".join(map(str, one.shape)) or "scalar" for one in tensors_in((args, kwargs))]
    return ", ".join(shapes) or "nothing"

