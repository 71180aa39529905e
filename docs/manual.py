#!/usr/bin/env python3
"""Writes the tables of the reference from the program itself.

    python3 docs/manual.py target/release/plantui

Everything below the marker line of commands.md, planner-options.md, keys.md and configuration.md is replaced. Text above
the marker is written by hand and stays.
"""
import json
import os
import re
import subprocess
import sys
from pathlib import Path

PAGES = Path(__file__).resolve().parent / "src" / "manual"
MARKER = "<!-- Written by docs/manual.py. Do not edit below this line. -->"
# Options that many commands share are shown once: heading of the page, command and heading of the help.
SHARED = [
    ("Limits", "plan", "Limits"),
    ("Training", "plan", "Training"),
    ("Layer profiles", "plan", "Layer profiles"),
    ("Simulation", "simulate", "How it is simulated"),
]
ALWAYS = ("-h, --help", "-V, --version")


def output(program, *arguments):
    env = dict(os.environ, COLUMNS="100", XDG_CONFIG_HOME="/nonexistent")
    return subprocess.run([program, *arguments], env=env, capture_output=True, text=True, check=True, stdin=subprocess.DEVNULL).stdout


def write(page, text):
    path = PAGES / page
    head = path.read_text(encoding="utf-8").split(MARKER)[0]
    path.write_text(f"{head}{MARKER}\n\n{text.strip()}\n", encoding="utf-8")


def cell(text):
    return text.replace("|", "\\|")


def code(text):
    return f"`{cell(text)}`"


def unwrapped(text):
    return " ".join(text.split())


class Entry:
    """An option or argument of a command."""

    def __init__(self, option):
        self.option, self.name = option, option["shown"]

    def text(self):
        """One line: sentences, possible values, default."""
        sentences = [unwrapped(part) for part in re.split(r"\n\n", self.option["help"].strip())]
        values = self.option["values"]
        told = ""
        if any(value["help"] for value in values):
            told = "".join(f"<br>`{value['name']}`: {unwrapped(value['help'])}" for value in values)
        elif values:
            sentences.append("One of: " + self.listed([value["name"] for value in values]))
        if self.option["default"]:
            sentences.append(f"Default: {self.option['default']}")
        sentences = [re.sub(r"\[default: ([^\]]*)\]", r"Default: \1", part) for part in sentences]
        sentences += [f"Also `--{alias}`" for alias in self.option["aliases"]]
        text = " ".join(part if part[-1:] in ".!?>" else part + "." for part in sentences if part)
        text = text.replace(" Default:", ". Default:").replace("..", ".").replace("). Default", "). Default")
        return cell(re.sub(r"<(?!br>)", "&lt;", text) + told)

    @staticmethod
    def listed(names):
        if len(names) > 15:
            return "the [planners](planner-options.md)"
        return ", ".join(f"`{name}`" for name in names)

    def row(self):
        return f"| {code(self.name)} | {self.text()} |"


def parse(command):
    """A command of `plantui man --json`: summary, usage, sections of entries, examples, closing paragraphs."""
    sections, examples, closing = {}, [], []
    for option in command["options"]:
        own = "Arguments" if option["positional"] else "Options"
        sections.setdefault(option["heading"] or own, []).append(Entry(option))
    state = "closing"
    for line in command["after"].split("\n"):
        if line in ("Examples:", "Example:"):
            state = "examples"
        elif line.startswith("  plantui ") or state == "examples" and line.startswith("  "):
            state = "examples"
            examples.append(line[2:])
        else:
            state = "closing"
            closing.append(line)
    return command["about"], [line.strip() for line in command["usage"].split("\n")], sections, examples, closing


def paragraphs(lines):
    """Prose of the help, unwrapped; indented lines stay as they are."""
    text, block = [], []
    for line in [*lines, ""]:
        if line.startswith("  "):
            block.append(line[2:])
            continue
        if block and line:
            text.append("\n```text\n" + "\n".join(block) + "\n```\n")
            block = []
        text.append(line)
    told = "\n".join(text)
    if block:
        told += "\n```text\n" + "\n".join(block) + "\n```\n"
    parts = re.split(r"\n\s*\n", told.strip())
    return "\n\n".join(part if "```" in part else re.sub(r"<", "&lt;", " ".join(part.split())) for part in parts if part.strip())


def link(heading, taken, entries):
    """Link to a group of shared options, with their names where not all are taken."""
    target = f"[{heading}](#{heading.lower().replace(' ', '-')})"
    if len(taken) == len(entries):
        return target
    names = ", ".join(f"`{entry.name.split()[0]}`" for entry in taken)
    return f"{names} of {target}"


def commands(program):
    known = {command["name"]: command for command in json.loads(output(program, "man", "--json"))}
    helps = {name: parse(command) for name, command in known.items() if name != "plantui"}
    shared = {}
    for heading, command, prefix in SHARED:
        for title, entries in helps[command][2].items():
            if title.startswith(prefix):
                shared[heading] = entries
    told = {(entry.name, entry.text()): heading for heading, entries in shared.items() for entry in entries}
    takers = {heading: [] for heading in shared}
    pages = []
    for name, (summary, usage, sections, examples, closing) in helps.items():
        own, common = [], {}
        for title, entries in sections.items():
            for entry in entries:
                heading = told.get((entry.name, entry.text()))
                if heading:
                    common.setdefault(heading, []).append(entry)
                elif entry.name not in ALWAYS:
                    own.append(entry)
        for heading in common:
            takers[heading].append(name)
        page = [f"## {name}", f"{summary}.", "```text\n" + "\n".join(usage) + "\n```"]
        if own:
            page.append("| argument or option | meaning |\n|---|---|\n" + "\n".join(entry.row() for entry in own))
        if common:
            links = ", ".join(link(heading, entries, shared[heading]) for heading, entries in common.items())
            page.append(f"Shared options: {links}.")
        if examples:
            page.append("```sh\n" + "\n".join(examples).strip() + "\n```")
        if prose := paragraphs(closing):
            page.append(prose)
        pages.append("\n\n".join(page))
    groups = []
    for heading, entries in shared.items():
        names = ", ".join(f"[`{name}`](#{name})" for name in takers[heading])
        table = "| option | meaning |\n|---|---|\n" + "\n".join(entry.row() for entry in entries)
        groups.append(f"## {heading}\n\nTaken by {names}.\n\n{table}")
    _, usage, sections, _, _ = parse(known["plantui"])
    screen = [entry for title, entries in sections.items() for entry in entries
              if title.startswith(("Screen", "Session", "Planning")) and entry.name not in ALWAYS]
    head = "## plantui without a command\n\nOpens the screen. Without a terminal it prints the report of `plantui plan`.\n\n```text\n" + "\n".join(usage)
    head += "\n```\n\n| option | meaning |\n|---|---|\n" + "\n".join(entry.row() for entry in screen)
    head += "\n\nShared options: [Limits](#limits), [Training](#training), [Layer profiles](#layer-profiles)."
    write("commands.md", "\n\n".join([head, *pages, *groups]))


def planners(program):
    spelled, planner = {}, ""
    for line in output(program, "planners").split("\n"):
        if found := re.match(r"(\S+)  \(", line):
            planner = found[1]
        elif found := re.match(r"    (\w+)=(.*?)(?:  \[default: (.*)\])?$", line):
            spelled[planner, found[1]] = (found[2], found[3] or "")
    pages = []
    for planner in json.loads(output(program, "planners", "--json")):
        objective = planner["objective"]
        unit = {"x": "times one device"}.get(objective["unit"], objective["unit"])
        limits = ", ".join(f"`{limit}`" for limit in planner["limits"])
        page = f"## {planner['id']}\n\n{planner['name']}: {planner['summary']}. Source: {planner['paper']}.\n\n"
        page += f"Objective: `{objective['name']}` in {unit}. Limits: {limits}."
        rows = []
        for option in planner["options"]:
            values = option["values"]
            helps = []
            if option["type"] == "flag":
                told = "`true`, `false`"
            elif option["type"] == "choice":
                told = ", ".join(f"`{value['value']}`" for value in values)
                helps = [f"`{value['value']}`: {value['help']}" for value in values if value["help"]]
            else:
                told = spelled[planner["id"], option["name"]][0].strip("<>")
            default = spelled[planner["id"], option["name"]][1]
            meaning = cell("<br>".join([option["help"], *helps]))
            rows.append(f"| `{option['name']}` | {cell(told)} | {'`' + default + '`' if default else ''} | {meaning} |")
        if rows:
            page += "\n\n| option | values | default | meaning |\n|---|---|---|---|\n" + "\n".join(rows)
        else:
            page += "\n\nNo options."
        pages.append(page)
    write("planner-options.md", "\n\n".join(pages))


SCOPES = {
    "panel": "The left panel", "overview": "Overview (view 1)", "stages": "Editing a plan (Overview and Stages)", "tree": "Trees (Stages, Workload)",
    "suggestions": "What would help (below Stages)", "devices": "Devices (view 3)", "timeline": "Timeline (view 4)", "compare": "Compare (view 5)",
    "sweep": "Sweep (view 6)", "workload": "Workload (view 7)", "lists": "Any list", "everywhere": "Everywhere",
}
SHOWN = {"left": "←", "right": "→", "up": "↑", "down": "↓", "backtab": "Shift-Tab", "pageup": "PgUp", "pagedown": "PgDn"}


def key(name):
    parts = name.split("-") if len(name) > 1 else [name]
    last = parts[-1]
    shown = SHOWN.get(last, last.capitalize() if len(last) > 1 else last)
    if len(parts) > 1 and len(last) == 1:
        shown = last.upper()
    return "`" + "-".join([part.capitalize() for part in parts[:-1]] + [shown]) + "`"


def settings(program):
    text = output(program, "--print-config")
    head, keys = text.split("[keys.", 1)
    pages = []
    for part in ("[keys." + keys).split("\n["):
        name, *lines = part.lstrip("[").split("\n")
        scope = name.removeprefix("keys.").rstrip("]")
        rows = []
        for line in lines:
            if found := re.match(r"([\w-]+) = \[(.*?)\]\s+# (.*)", line.replace('"]"', '"\x01"').replace('"["', '"\x02"')):
                names = [one.replace("\x01", "]").replace("\x02", "[") for one in re.findall(r'"([^"]*)"', found[2])]
                rows.append(f"| {cell(' '.join(key(one) for one in names))} | `{found[1]}` | {cell(found[3])} |")
        pages.append(f"## {SCOPES.get(scope, scope)}\n\nSection `[keys.{scope}]` of the configuration.\n\n| keys | action | effect |\n|---|---|---|\n" + "\n".join(rows))
    write("keys.md", "\n\n".join(pages))
    tables, rows, comment, heading = [], [], [], "Top of the file"
    for line in head.split("\n")[2:]:
        if found := re.match(r"\[(\w+)\]", line):
            tables.append((heading, rows))
            heading, rows, comment = f"Section `[{found[1]}]`", [], []
        elif found := re.match(r"(# )?([\w-]+) = (.*)$", line):
            unset = " (not set)" if found[1] else ""
            rows.append(f"| `{found[2]}` | `{cell(found[3])}`{unset} | {cell(' '.join(comment))} |")
            comment = []
        elif line.startswith("# "):
            comment.append(line[2:])
        elif not line:
            comment = []
    tables.append((heading, rows))
    write("configuration.md", "\n\n".join(f"## {heading}\n\n| setting | default | meaning |\n|---|---|---|\n" + "\n".join(rows) for heading, rows in tables))


def main():
    program = str(Path(sys.argv[1]).resolve())
    commands(program)
    planners(program)
    settings(program)


if __name__ == "__main__":
    main()
