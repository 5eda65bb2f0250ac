"""The options of a job, after the templates of every supported ansible-core."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.kubernetes import manifests
from plugins.module_utils.kubernetes.job_spec import JobError, job_of

JOB: dict[str, Any] = {
    "name": "train",
    "image": "example.com/train:1",
    "command": ["python", "train.py"],
    "workers": 4,
    "toleration_seconds": 120,
    "records": "/var/lib/dml/runs/train",
    "records_on_node": True,
}


def test_accepts_numbers_and_booleans_as_template_text() -> None:
    texts = {"workers": "4", "toleration_seconds": "120", "is_spread": "False", "records_on_node": "yes"}
    job = job_of({**JOB, **texts})
    assert (job.workers, job.toleration_seconds, job.is_spread, job.records_on_node) == (4, 120, False, True)
    assert manifests.mpijob(job) == manifests.mpijob(job_of({**JOB, "is_spread": False}))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"workers": "four"}, "workers of the job is 'four': expected a whole number."),
        ({"slots": 2.5}, "slots of the job is 2.5: expected a whole number."),
        ({"suspend": "perhaps"}, "suspend of the job is 'perhaps': expected true or false."),
    ],
)
def test_a_value_of_another_type_is_refused(given: dict[str, Any], words: str) -> None:
    with pytest.raises(JobError) as raised:
        job_of({**JOB, **given})
    assert str(raised.value) == words
