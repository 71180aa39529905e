"""Which parts a module has and what they hand to each other: by torch.fx, else by module hooks.

Both give a `Trace`: the parts in the order in which they run, with their sources, and a way to run the module once more
while a `Clock` is told where a part begins and ends.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import is_dataclass
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Protocol, Sequence, Set, Tuple

import torch
from torch import Tensor, fx, nn
from torch.overrides import TorchFunctionMode

from plantui.profile._graph import Part

__all__ = ["CannotTrace", "Clock", "Trace", "by_fx", "by_hooks", "tensors_in"]


class CannotTrace(Exception):
    """Why a module cannot be traced in this way."""


class Clock(Protocol):
    """Is told what runs."""

    def begin(self, part: int) -> None:
        """From here on this part runs."""

    def end(self, part: int, outputs: Sequence[Tuple[Tensor, int]]) -> None:
        """The part has run and gave these, each with the part that made it."""


class Trace(Protocol):
    """A module whose parts are known."""

    parts: List[Part]

    def run(self, clock: Clock) -> Any:
        """Runs the module forward once and gives its output."""


def tensors_in(value: Any) -> Iterator[Tensor]:
    """The tensors in nested lists, dictionaries and dataclasses."""
    if isinstance(value, Tensor):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from tensors_in(one)
    elif isinstance(value, (list, tuple, set)):
        for one in value:
            yield from tensors_in(one)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from tensors_in(vars(value))


def bytes_of(tensors: Sequence[Tensor]) -> int:
    """Bytes of the elements, each storage once."""
    seen: Dict[int, int] = {}
    for tensor in tensors:
        seen[tensor.untyped_storage().data_ptr()] = max(
            seen.get(tensor.untyped_storage().data_ptr(), 0), tensor.numel() * tensor.element_size()
        )
    return sum(seen.values())


class _Parameters:
    """Gives each parameter to the part that uses it first."""

    def __init__(self) -> None:
        self.taken: Set[int] = set()

    def give(self, part: Part, parameters: Sequence[Tensor]) -> None:
        for parameter in parameters:
            if id(parameter) not in self.taken:
                self.taken.add(id(parameter))
                part.parameters += parameter.numel()
                part.parameter_bytes += parameter.numel() * parameter.element_size()


class FxTrace:
    """Parts are the operations and leaf modules that torch.fx finds."""

    def __init__(self, module: nn.Module, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        try:
            graph = fx.Tracer().trace(module)
        except Exception as error:  # torch.fx raises whatever the module's Python did with a proxy
            raise CannotTrace(f"torch.fx: {_first_line(error)}") from error
        self.graph_module = fx.GraphModule(module, graph)
        self.args = self._placeholders(graph, args, kwargs)
        self.parts: List[Part] = []
        self.place: Dict[fx.Node, int] = {}
        try:
            self._record()
        except CannotTrace:
            raise
        except Exception as error:
            raise CannotTrace(f"torch.fx's graph does not run: {_first_line(error)}") from error

    @staticmethod
    def _placeholders(graph: fx.Graph, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> List[Any]:
        values = list(args)
        names = [node for node in graph.nodes if node.op == "placeholder"]
        for node in names[len(args) :]:
            target = str(node.target)
            if target in kwargs:
                values.append(kwargs[target])
            elif node.args:
                values.append(node.args[0])
            else:
                raise CannotTrace(f"torch.fx: the example has no `{target}`")
        return values

    def _record(self) -> None:
        trace, parameters = self, _Parameters()
        sources: Dict[fx.Node, Set[int]] = {}

        class Recorder(fx.Interpreter):
            def run_node(self, node: fx.Node) -> Any:
                result = super().run_node(node)
                reads: Set[int] = set().union(*(sources[other] for other in node.all_input_nodes), set())
                found = list(tensors_in(result))
                if node.op in ("call_module", "call_function", "call_method") and found:
                    part = Part(name=_fx_name(node, self.module), output_bytes=bytes_of(found), sources=reads)
                    given = [self.fetch_attr(str(one.target)) for one in node.all_input_nodes if one.op == "get_attr"]
                    if node.op == "call_module":
                        given += list(self.fetch_attr(str(node.target)).parameters())
                    parameters.give(part, [one for one in given if isinstance(one, nn.Parameter)])
                    trace.place[node] = len(trace.parts)
                    sources[node] = {len(trace.parts)}
                    trace.parts.append(part)
                else:
                    # What holds no tensor (a shape, a slice) hands on nothing; a tuple's element is its tuple's.
                    sources[node] = reads if found else set()
                return result

        Recorder(self.graph_module).run(*self.args)

    def run(self, clock: Clock) -> Any:
        place = self.place

        class Timed(fx.Interpreter):
            def run_node(self, node: fx.Node) -> Any:
                at = place.get(node)
                if at is None:
                    return super().run_node(node)
                clock.begin(at)
                result = super().run_node(node)
                clock.end(at, [(tensor, at) for tensor in tensors_in(result)])
                return result

        return Timed(self.graph_module).run(*self.args)


def _fx_name(node: fx.Node, module: nn.Module) -> str:
    if node.op == "call_module":
        return f"{node.target} {type(module.get_submodule(str(node.target))).__name__}"
    return str(node.name)


class HookTrace:
    """Parts are leaf modules and what runs between them.

    The parts are intervals of one forward, so that what one reads was made by an earlier one: the graph has no circle.
    """

    def __init__(self, module: nn.Module, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> None:
        self.module, self.args, self.kwargs = module, args, kwargs
        tracer = fx.Tracer()
        self.leaves = [
            (name, leaf)
            for name, leaf in module.named_modules()
            if leaf is not module and _is_leaf(tracer, leaf, name)
        ]
        inside = {id(inner) for _, leaf in self.leaves for inner in leaf.modules() if inner is not leaf}
        self.leaves = [(name, leaf) for name, leaf in self.leaves if id(leaf) not in inside]
        self.parts: List[Part] = []
        #: By interval of a forward, the part that it belongs to.
        self.intervals: List[int] = []
        #: By interval, for each tensor at its end the part that made it; -1 for what came from outside.
        self.makers: List[List[int]] = []
        self._record()

    def _record(self) -> None:
        flow = _Flow(self.parts, self.intervals, self.makers)
        with torch.enable_grad(), flow, self._watch(flow.enter, flow.leave):
            flow.open("input")
            result = self.module(*self.args, **self.kwargs)
            flow.close(list(tensors_in(result)))

    @contextmanager
    def _watch(
        self,
        enter: Callable[[str, nn.Module, Sequence[Tensor]], None],
        leave: Callable[[str, nn.Module, Sequence[Tensor]], None],
    ) -> Iterator[None]:
        handles = []
        for name, leaf in self.leaves:

            def before(one: nn.Module, args: Any, kwargs: Any, name: str = name) -> None:
                enter(name, one, list(tensors_in((args, kwargs))))

            def after(one: nn.Module, args: Any, result: Any, name: str = name) -> None:
                leave(name, one, list(tensors_in(result)))

            handles.append(leaf.register_forward_pre_hook(before, with_kwargs=True))
            handles.append(leaf.register_forward_hook(after))
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def run(self, clock: Clock) -> Any:
        at = 0

        def end(tensors: Sequence[Tensor]) -> None:
            clock.end(self.intervals[at], list(zip(tensors, self.makers[at])))

        def border(tensors: Sequence[Tensor]) -> None:
            nonlocal at
            end(tensors)
            at += 1
            clock.begin(self.intervals[at])

        with self._watch(lambda _n, _m, found: border(found), lambda _n, _m, found: border(found)):
            clock.begin(self.intervals[at])
            result = self.module(*self.args, **self.kwargs)
            end(list(tensors_in(result)))
        return result


class _Flow(TorchFunctionMode):
    """Follows tensors from part to part while a module runs with hooks."""

    def __init__(self, parts: List[Part], intervals: List[int], makers: List[List[int]]) -> None:
        super().__init__()
        self.parts, self.intervals, self.makers, self.parameters = parts, intervals, makers, _Parameters()
        self.maker: Dict[int, int] = {}
        # Ids are of living objects only.
        self.alive: List[Tensor] = []
        self.part: Optional[Part] = None
        self.last_name = "input"
        self.worked = False

    def __torch_function__(
        self, function: Any, types: Any, args: Tuple[Any, ...] = (), kwargs: Optional[Dict[str, Any]] = None
    ) -> Any:
        kwargs = kwargs or {}
        result = function(*args, **kwargs)
        made = list(tensors_in(result))
        if made:
            self.read(list(tensors_in((args, kwargs))))
            self.worked = True
            self.made(made)
        return result

    def read(self, tensors: Sequence[Tensor]) -> None:
        assert self.part is not None
        here = len(self.parts)
        for tensor in tensors:
            if isinstance(tensor, nn.Parameter):
                self.parameters.give(self.part, [tensor])
            elif self.maker.get(id(tensor), here) != here:
                self.part.sources.add(self.maker[id(tensor)])

    def made(self, tensors: Sequence[Tensor]) -> None:
        for tensor in tensors:
            if not isinstance(tensor, nn.Parameter):
                self.maker[id(tensor)] = len(self.parts)
                self.alive.append(tensor)

    def open(self, name: str) -> None:
        self.part, self.worked = Part(name=name), False

    def close(self, outputs: Sequence[Tensor]) -> None:
        assert self.part is not None
        mine = [tensor for tensor in outputs if self.maker.get(id(tensor)) == len(self.parts)]
        self.makers.append([self.maker.get(id(tensor), -1) for tensor in outputs])
        if self.worked or not self.parts:
            self.part.output_bytes = bytes_of(mine)
            self.intervals.append(len(self.parts))
            self.parts.append(self.part)
        else:
            # Nothing happened between two modules: the moment belongs to the first.
            self.intervals.append(len(self.parts) - 1)

    def enter(self, name: str, module: nn.Module, inputs: Sequence[Tensor]) -> None:
        self.close(inputs)
        self.open(f"{name} {type(module).__name__}")
        self.last_name = name
        self.worked = True
        assert self.part is not None
        self.read(inputs)
        self.parameters.give(self.part, list(module.parameters()))

    def leave(self, name: str, module: nn.Module, outputs: Sequence[Tensor]) -> None:
        self.made([tensor for tensor in outputs if id(tensor) not in self.maker])
        self.close(outputs)
        self.open(f"after {name}")


def by_fx(module: nn.Module, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> FxTrace:
    """Traces with torch.fx.

    Raises `CannotTrace` with the reason.
    """
    return FxTrace(module, args, kwargs)


def by_hooks(module: nn.Module, args: Tuple[Any, ...], kwargs: Dict[str, Any]) -> HookTrace:
    """Traces with module hooks."""
    return HookTrace(module, args, kwargs)


def _is_leaf(tracer: fx.Tracer, module: nn.Module, name: str) -> bool:
    """Whether a module is one part: it holds no others, or torch itself defines it. Lists of modules are never called."""
    if isinstance(module, (nn.ModuleList, nn.ModuleDict, nn.ParameterList, nn.ParameterDict)):
        return False
    return tracer.is_leaf_module(module, name) or not any(True for _ in module.children())


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0]

