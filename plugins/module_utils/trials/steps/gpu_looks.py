# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The GPUs of a moving job: a sick GPU after a move ends the test, and ranks of a silent job wait for others; pure."""

from __future__ import annotations

from typing import Any

from ...core.findings import stops
from ...durable.program import Program
from ...errors import Failed
from ...training.runs.training_run import RECORDERS
from .trial import Trial


def findings(p: Program, trial: Trial) -> list[Any]:
    """Return the findings on the GPUs of the nodes; errors in the log of the kernel count since the test began."""
    p.say("checks the health of the GPUs")
    age = max(p.now() - trial.facts.began, 0.0)
    return list(trial.site.nodes.read_gpus(trial.settings["nodes"], idle=False, xid_seconds=age)["findings"])


def keep_hang(p: Program, trial: Trial, number: int) -> None:
    """Keep which ranks of a silent job wait for which others; only ranks over NCCL on nodes report it."""
    if trial.settings.get("kubernetes") or not trial.settings.get("run_dir"):
        return

    def read() -> list[str]:
        p.say("asks the ranks which of them wait for others")
        recorders = f"{trial.settings['run_dir']}/{RECORDERS}"
        return trial.site.nodes.read_hang(**trial.nodes, recorders=recorders)

    for sentence in p.once(("hang", number), read):
        p.say(sentence)
        trial.facts.hangs.append(sentence)


def require_healthy(p: Program, trial: Trial, number: int) -> None:
    """Raise Failed if a GPU is sick after the latest moves, which are judged already."""
    if not trial.settings["guest_checks"]:
        return
    found: list[Any] = p.once(("gpus", number), lambda: findings(p, trial))
    texts = " ".join(str(finding["text"]) for finding in stops(found, trial.settings["accept"]))
    if texts:
        workers = ", ".join(dict.fromkeys(str(move["worker"]) for move in trial.facts.last_wave))
        remedy = "repair it, then test again, or accept it with vmotion_test_accept"
        raise Failed(f"Cluster {trial.facts.cluster}", f"go on after the move of {workers}", texts, remedy)
