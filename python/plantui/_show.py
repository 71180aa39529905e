"""Figures as text, and small tables for notebooks."""

from __future__ import annotations

from html import escape
from typing import Mapping, Optional, Sequence

__all__ = ["bytes_text", "columns", "number", "seconds_text", "share", "table"]


def number(value: Optional[float]) -> str:
    """A number with four digits.

    >>> number(1137.354), number(0.0331), number(None)
    ('1137', '0.0331', '')
    """
    return "" if value is None else f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"


def seconds_text(value: Optional[float]) -> str:
    """Seconds in the unit that fits.

    >>> seconds_text(14.4054), seconds_text(0.0123), seconds_text(2e-5)
    ('14.41 s', '12.3 ms', '20 us')
    """
    if value is None:
        return ""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size or unit == "us":
            return f"{number(value / size)} {unit}"
    return ""


def bytes_text(value: Optional[float]) -> str:
    """Bytes in the unit that fits.

    >>> bytes_text(73954072985.6), bytes_text(512)
    ('68.9 GiB', '512 B')
    """
    if value is None:
        return ""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if value >= 2**power:
            return f"{value / 2**power:.1f} {unit}"
    return f"{value:.0f} B"


def share(value: Optional[float]) -> str:
    """A share as a percentage.

    >>> share(0.5163)
    '51.6 %'
    """
    return "" if value is None else f"{value:.1%}".replace("%", " %")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """HTML table; the texts may hold anything.

    >>> table(["a"], [["<b>"]])
    '<table><thead><tr><th>a</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    heads = "".join(f"<th>{escape(cell)}</th>" for cell in head)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table>"


def columns(figures: Mapping[str, str]) -> str:
    """HTML table of named figures."""
    return table(list(figures), [list(figures.values())])
