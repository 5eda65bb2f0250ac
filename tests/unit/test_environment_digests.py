"""The manifest of a run has digests of the environment, and no value of it."""

from __future__ import annotations

import hashlib

from plugins.module_utils.training.runs import training_run


def test_result_contains_digests_of_the_environment() -> None:
    environment = {"TOKEN": "hush-hush-token", "ONE": 1}
    options = {
        "environment": environment,
        "command": [],
        "framework": "pytorch",
        "options": [],
        "image": "",
        "gdr": "auto",
    }
    requested = training_run.request_of({**options, "ranks_per_node": 1, "stack": "current"})
    assert requested["environment"] == {
        name: hashlib.sha256(str(value).encode()).hexdigest() for name, value in environment.items()
    }
    assert "hush-hush-token" not in str(requested)
