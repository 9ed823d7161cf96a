#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes docs/measured and docs/lanes.svg of the files in results/. `--check` writes nothing, and exits with 1 where a
page is out of date or a file in results/ is cited by no document and by no source."""
import argparse
import pathlib
import re
import sys

from lanes import picture
from others import OTHERS
from pages import PAGES
from results import Results

NOTE = "<!-- Made by `./dev measured` of the files in results/. -->"
INDEX = """Each table is made of the files in `results/` by `./dev measured`, and a test fails when one is out of date.
A file has its machine, driver, commit, date and command. Nothing here is an estimate; what the software GPU showed is
called so. `tools/measured/others.py` names results that stand in no table."""


def wrapped(text, width=118):
    """Prose in lines of so many characters; tables stay as they are."""
    paragraphs = []
    for paragraph in text.split("\n\n"):
        if paragraph.startswith(("|", "#", "<")):
            paragraphs.append(paragraph)
            continue
        lines = [""]
        for word in paragraph.split():
            if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
                lines.append("")
            lines[-1] += (" " if lines[-1] else "") + word
        paragraphs.append("\n".join(lines))
    return "\n\n".join(paragraphs) + "\n"


def documents(root):
    """Every document that is made, by its path, and the results that were read for them."""
    results = Results(root)
    made = {}
    titles = {}
    for name, page in PAGES.items():
        titles[name], text = page(results)
        made[f"docs/measured/{name}.md"] = f"# {titles[name]}\n\n{NOTE}\n\n{wrapped(text)}"
    links = "\n".join(f"- [{title}]({name}.md)" for name, title in titles.items())
    for name in OTHERS:
        results.link(name)
    made["docs/measured/README.md"] = f"# Measured\n\n{wrapped(INDEX)}\n{links}\n"
    made["docs/lanes.svg"] = picture(results)
    return made, results.used


def cited(root):
    """The files of results/ that some other file of the repository names, from a folder of source or documents."""
    names = set()
    for folder in (".", "docs", "examples", "include", "kernel", "lab", "packaging", "src", "tests", "tools"):
        paths = (root / folder).glob("*") if folder == "." else (root / folder).rglob("*")
        for path in paths:
            if path.is_file() and path.suffix in (".md", ".h", ".c", ".cpp", ".def", ".py", ".sh", ".mk", ".toml"):
                names.update(re.findall(r"results/[\w./+-]+\.json", path.read_text(errors="replace")))
    return names


def problems(root):
    made, used = documents(root)
    found = [f"{path} is out of date: ./dev measured" for path, text in made.items()
             if not (root / path).is_file() or (root / path).read_text() != text]
    known = used | cited(root)
    for path in sorted((root / "results").rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.is_file() and name not in known:
            found.append(f"{name} is cited by no document and by no source")
    return found


def main():
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--check", action="store_true")
    options.add_argument("--root", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[2])
    chosen = options.parse_args()
    if chosen.check:
        found = problems(chosen.root)
        print("\n".join(found), file=sys.stderr, end="\n" if found else "")
        return 1 if found else 0
    made, _ = documents(chosen.root)
    for path, text in made.items():
        (chosen.root / path).parent.mkdir(parents=True, exist_ok=True)
        (chosen.root / path).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
