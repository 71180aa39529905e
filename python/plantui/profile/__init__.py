"""Profiles a PyTorch module for planning: times, sizes and the graph of its parts.

    python -m plantui.profile your_module:build --input your_module:example --output model.txt

writes what ``plantui model.txt`` opens. `profile` does the same from Python. A program of ``torch.export``, or a file with one, may stand for the module. Only this
part of the package needs torch.

How it measures. The module runs forward and backward as it is; no part is run by itself. While it runs, the clock is read
where one part ends and the next begins: in the forward at the parts' borders, in the backward where autograd arrives at a
part's output. Every moment of a step so belongs to one part, and the parts add up to the step; `Profile.coverage` says how
nearly, against steps that nobody watched.
"""

from typing import Any

from plantui.profile._graph import Part, Profile
from plantui.profile._write import to_graph_txt, to_piper

__all__ = ["Part", "Profile", "profile", "to_graph_txt", "to_piper"]


def __getattr__(name: str) -> Any:
    """Imports what needs torch when it is first used, so that a machine without torch is told so in a sentence."""
    if name == "profile":
        try:
            from plantui.profile._measure import profile
        except ModuleNotFoundError as error:
            if error.name != "torch":
                raise
            raise ImportError("plantui.profile needs torch: pip install 'plantui[profile]'") from None
        return profile
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
