"""The volumes of a worker: its setup can write what its ranks only read."""

from __future__ import annotations

from .test_manifests import container, made, spec_of


def test_only_the_setup_may_write_a_volume() -> None:
    source = {"hostPath": {"path": "/e", "type": "Directory"}}
    job = made(volumes=[{"name": "e", "path": "/e", "source": source, "only_setup_writes": True}])

    (setup,), worker = spec_of(job, "Worker")["initContainers"], container(job, "Worker")

    assert setup["volumeMounts"][-1] == {"name": "e", "mountPath": "/e"}
    assert worker["volumeMounts"][-1] == {"name": "e", "mountPath": "/e", "readOnly": True}
