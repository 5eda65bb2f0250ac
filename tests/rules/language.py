"""List words that the project does not use, with their location and the words to use instead.

`python -m tests.rules.language [PATH...] [--kind KIND] [--count]`; tests/rules/language.yml has the patterns.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import yaml

from tests.rules import prose

PATTERNS = yaml.safe_load(Path(__file__).with_suffix(".yml").read_text(encoding="utf-8"))
# The start of a text, a sentence, a paragraph, a list item, a heading or a table cell.
START = r"(?:\A|[.!?:;|]\)?\s|\n\s*\n|(?:\A|\n)\s*(?:[-*>#]+|\d+\.)\s)\s*"


class Hit(NamedTuple):
    """Words of a file that the project does not use."""

    path: str
    line: int
    kind: str
    words: str
    instead: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.words} -> {self.instead}"


@cache
def expression(find: str) -> re.Pattern[str]:
    """Return the compiled pattern; its first group is the words that it finds."""
    body = find.removeprefix("^").replace(" ", r"\s+")
    return re.compile(f"{START if find.startswith('^') else ''}({body})")


def hits(texts: Iterable[prose.Prose]) -> Iterator[Hit]:
    """Yield each place that a pattern finds, in the order of the lines of each text."""
    for text in texts:
        entries = [entry for entry in PATTERNS if text.kind in entry.get("kinds", prose.KINDS)]
        found = [(match, entry) for entry in entries for match in expression(entry["find"]).finditer(text.text)]
        for match, entry in sorted(found, key=lambda pair: pair[0].start(1)):
            first = match.start(1) + len(match[1]) - len(match[1].lstrip())
            words = " ".join(text.text[first : max(match.end(1), first + 50)].split())
            yield Hit(text.path, text.line + text.text.count("\n", 0, first), text.kind, words, entry["instead"])


def of(paths: list[Path]) -> list[Hit]:
    """Return the hits in the files, or in the files of the folders; without paths, in the whole checkout."""
    return sorted(hits(text for file in prose.files(paths) for text in prose.read(file)))


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.rules.language", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="files or folders; by default all")
    parser.add_argument("--kind", action="append", choices=prose.KINDS, help="only this kind of prose; may be repeated")
    parser.add_argument("--count", action="store_true", help="print the number of hits by kind")
    options = parser.parse_args(arguments)
    found = [
        hit for hit in of([path.resolve() for path in options.paths]) if not options.kind or hit.kind in options.kind
    ]
    print("\n".join(table(found) if options.count else map(str, found)))
    return 1 if found else 0


def table(found: list[Hit]) -> list[str]:
    """Return the lines of a table: the number of hits of each kind, and of all."""
    count = Counter(hit.kind for hit in found)
    return [*(f"{kind:10}{count[kind]:6}" for kind in prose.KINDS), f"{'all':10}{len(found):6}"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
