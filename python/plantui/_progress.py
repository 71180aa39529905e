"""Progress bars on long calls, with tqdm if it is installed."""

from __future__ import annotations

import sys
from typing import Any, Optional

__all__ = ["bar", "progress_bars"]

_shown: Optional[bool] = None


def progress_bars(shown: Optional[bool]) -> None:
    """Shows progress bars always, never, or (`None`, the default) in a notebook or terminal."""
    global _shown
    _shown = shown


class _Bar:
    """A bar that appears with the first report of progress."""

    def __init__(self, tqdm: Any) -> None:
        self._tqdm = tqdm
        self._bar: Any = None

    def __call__(self, title: str, fraction: float, message: str) -> None:
        if self._bar is None:
            form = "{desc} {percentage:3.0f}%|{bar}| {elapsed} {postfix}"
            self._bar = self._tqdm(total=1.0, leave=False, bar_format=form)
        self._bar.set_description_str(title, refresh=False)
        self._bar.set_postfix_str(message, refresh=False)
        self._bar.n = min(max(fraction, 0.0), 1.0)
        self._bar.refresh()

    def __del__(self) -> None:
        if self._bar is not None:
            self._bar.close()


def bar() -> Optional[_Bar]:
    """A bar for a call, if bars are shown and tqdm is there."""
    notebook = "ipykernel" in sys.modules
    wanted = _shown if _shown is not None else notebook or (sys.stderr is not None and sys.stderr.isatty())
    if not wanted:
        return None
    try:
        from tqdm.auto import tqdm
    except ImportError:
        return None
    return _Bar(tqdm)
