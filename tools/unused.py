"""Lists code that nothing uses, and code outside the lab that only tests use: ``python -m tools.unused``.

``[tool.vulture]`` in pyproject.toml lists the names that only foreign programs use, with the reasons.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator

from vulture import Vulture
from vulture.config import make_config

TESTS = ("tests", "molecule", "bench")


class Uses(Vulture):  # type: ignore[misc] # vulture has no types
    """Counts a string as a use of the name in it, because the keys of a TypedDict are read as strings."""

    def visit_Constant(self, node: ast.Constant) -> None:  # noqa: N802 # the name in ast
        if isinstance(node.value, str):
            self.used_names.add(node.value)


def unused(*groups: list[str]) -> Iterator[list[str]]:
    """Yield after each group of paths one line for each name in the files up to there that nothing in them uses."""
    config = make_config([path for paths in groups for path in paths])
    uses = Uses(ignore_names=config["ignore_names"], ignore_decorators=config["ignore_decorators"])
    for paths in groups:
        uses.scavenge(paths)
        yield [entry.get_report() for entry in uses.get_unused_code()]


def main() -> int:
    paths: list[str] = make_config([])["paths"]
    rest = [path for path in paths if path not in TESTS]
    without_tests, found = unused(rest, [path for path in paths if path in TESTS])
    found += [f"{line}, except by tests" for line in without_tests if line not in found and not line.startswith("lab/")]
    print("".join(f"{line}\n" for line in found), end="")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
