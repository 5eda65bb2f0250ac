"""Placeholders in the command of a run."""

from __future__ import annotations

import pytest

from plugins.module_utils.training.runs.rank_words import rank_words
from plugins.module_utils.training.runs.training_run import Prepared
from tests.fakes.training_options import OPTIONS


@pytest.mark.parametrize(
    ("given", "resume", "ran"),
    [
        ("--trainer.num_nodes={nodes} -n {ranks}", "", "--trainer.num_nodes=2 -n 8"),
        ("--data {data}/x --from {resume}", "/w/last.pt", "--data /lib/data/x --from /w/last.pt"),
        ("--a b --from {resume} c", "", "--a b c"),
        ("--from={resume} -r={resume} ckpt={resume} +trainer.ckpt={resume} -x", "", "-x"),
        ("--from={resume}", "/w/last.pt", "--from=/w/last.pt"),
        ("-r {resume} --fast --from {resume}", "", "--fast"),
        # Not only the checkpoint, so that the program gets the rest.
        ("a {resume} --from=x{resume}", "", "a  --from=x"),
        ("--two a {resume}", "", "--two a "),
    ],
)
def test_replaces_the_placeholders_of_a_command(given: str, resume: str, ran: str) -> None:
    o = {**OPTIONS, "command": ["/bin/app", *given.split(" ")], "ranks_per_node": 4, "steps_by": "none"}
    prepared = Prepared("/venv/bin/python", 29500, resume=resume, data={"path": "/lib/data"})

    assert rank_words(o, prepared).words == ["/bin/app", *ran.split(" ")]
