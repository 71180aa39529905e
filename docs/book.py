"""Makes the documentation a site that stands alone.

mdBook calls it as a preprocessor (book.toml): links to files outside of docs/src, which a site does not have, become
links to the repository. `docs/book.py --check FOLDER` looks for links that lead nowhere in a site that was built.
"""

import json
import os
import re
import sys
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
LINK = re.compile(r"(!?)(\[[^\]]*\])\(([^)\s]+)\)")
PICTURES = {".svg", ".png"}


def repository():
    manifest = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    return re.search(r'^repository = "(.*)"', manifest, re.M).group(1)


def outside(page, address, link):
    """Link of a page, at the repository if it leaves docs/src."""
    picture, text, target = link.groups()
    if "://" in target or target.startswith("#"):
        return link.group()
    path = (DOCS / "src" / page).parent / target.partition("#")[0]
    path = Path(os.path.normpath(path))
    if path.is_relative_to(DOCS / "src"):
        return link.group()
    kind = "raw" if picture or path.suffix in PICTURES else "tree" if path.is_dir() else "blob"
    return f"{picture}{text}({address}/{kind}/main/{path.relative_to(ROOT).as_posix()})"


def chapters(items):
    for item in items:
        if chapter := isinstance(item, dict) and item.get("Chapter"):
            yield chapter
            yield from chapters(chapter["sub_items"])


def preprocess():
    _, book = json.load(sys.stdin)
    address = repository()
    for chapter in chapters(book.get("sections") or book["items"]):
        page = chapter["path"]
        if page:
            chapter["content"] = LINK.sub(lambda link: outside(page, address, link), chapter["content"])
    json.dump(book, sys.stdout)


def check(folder):
    """Number of links of a site that lead nowhere; each is printed."""
    pages = {page: page.read_text(encoding="utf-8") for page in folder.rglob("*.html") if page.name != "404.html"}
    anchors = {page: set(re.findall(r'\bid="([^"]+)"', text)) for page, text in pages.items()}
    missing = 0
    for page, text in sorted(pages.items()):
        for link in sorted(set(re.findall(r'\b(?:href|src)="([^":]+)"', text))):
            file, _, anchor = link.partition("#")
            target = Path(os.path.normpath(page.parent / file)) if file else page
            found = target.exists() and (not anchor or anchor in anchors.get(target, {anchor}))
            if not found and page.name != "print.html":
                missing += 1
                print(f"{page.relative_to(folder)}: nothing at {link}")
    return missing


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments[:1] == ["--check"]:
        sys.exit(min(check(Path(arguments[1])), 1))
    # mdBook asks first whether a renderer is supported: all are.
    if arguments[:1] != ["supports"]:
        preprocess()
