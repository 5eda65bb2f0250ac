"""Run all checks within eight minutes, and write docs/gpu-runs/NAME.json and NAME.md.

python3 -m tools.gpu [--out FOLDER] [--name NAME] [CHECK ...]
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from .checks import CHECKS, Refused, Wrong, versions

MOST_SECONDS = 480.0
OUT = Path(__file__).parents[2] / "docs" / "gpu-runs"


def run(name: str, folder: Path, deadline: float) -> dict[str, Any]:
    """Return the result of one check: ok, refused or wrong, with a sentence and data."""
    began = time.monotonic()
    if began > deadline:
        return {"result": "refused", "said": "The time of all checks is over.", "seconds": 0.0}
    try:
        said, data = CHECKS[name](folder)
        outcome: dict[str, Any] = {"result": "ok", "said": said, "data": data}
    except Refused as refused:
        outcome = {"result": "refused", "said": str(refused)}
    except Wrong as wrong:
        outcome = {"result": "wrong", "said": str(wrong)}
    except Exception as error:
        outcome = {"result": "wrong", "said": f"{type(error).__name__}: {error}"}
    return {**outcome, "seconds": round(time.monotonic() - began, 1)}


def page(name: str, machine: dict[str, Any], results: dict[str, dict[str, Any]]) -> str:
    """Return the page of a run."""
    rows = [f"| {check} | {one['result']} | {_cell(one['said'])} |" for check, one in results.items()]
    facts = ", ".join(f"{key} {value}" for key, value in machine.items() if value)
    head = [f"# GPU run {name}", "", f"`make gpu` on a machine with {facts}.", ""]
    return "\n".join([*head, "| Check | Result | Observed |", "|---|---|---|", *rows, ""])


def _cell(text: str) -> str:
    return re.sub(r"\s+", " ", text).replace("|", "/")[:300]


def main() -> None:
    """Run the checks, and fail if one shows something else than the collection says."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--out", type=Path, default=OUT)
    parser.add_argument("--name", default=time.strftime("%Y-%m-%d", time.gmtime()))
    parser.add_argument("checks", nargs="*", choices=[*CHECKS, []], help="the checks to run, by default all of them")
    given = parser.parse_args()
    deadline, results = time.monotonic() + MOST_SECONDS, dict[str, dict[str, Any]]()
    with tempfile.TemporaryDirectory() as folder:
        for number, check in enumerate(given.checks or CHECKS):
            results[check] = run(check, Path(folder) / str(number), deadline)
            print(f"{results[check]['result']:8} {check}: {_cell(results[check]['said'])}", flush=True)
    machine = versions()
    given.out.mkdir(parents=True, exist_ok=True)
    content = {"machine": machine, "checks": results}
    (given.out / f"{given.name}.json").write_text(json.dumps(content, indent=1) + "\n")
    (given.out / f"{given.name}.md").write_text(page(given.name, machine, results))
    sys.exit(any(one["result"] == "wrong" for one in results.values()))


if __name__ == "__main__":
    main()
