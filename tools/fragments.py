"""Finds changes that users notice without a fragment: ``python -m tools.fragments BASE`` compares HEAD with BASE."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterable

SEEN_BY_USERS = re.compile(
    r"roles/\w+/meta/argument_specs\.yml|plugins/(modules|doc_fragments)/\w+\.py|playbooks/.+\.yml"
)
FRAGMENT = re.compile(r"changelogs/fragments/[\w.-]+\.ya?ml")


def unexplained(changed: Iterable[str]) -> list[str]:
    """Return the changed files that users notice; none if a fragment changed too."""
    names = list(changed)
    return [] if any(map(FRAGMENT.fullmatch, names)) else [name for name in names if SEEN_BY_USERS.fullmatch(name)]


def main() -> None:
    command = ["git", "diff", "--name-only", "--diff-filter=d", sys.argv[1], "HEAD"]
    found = unexplained(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines())
    if found:
        remedy = "Write one; its section is trivial if users do not notice the change"
        sys.exit(f"These changed without a fragment in changelogs/fragments: {', '.join(found)}. {remedy}.")


if __name__ == "__main__":
    main()
