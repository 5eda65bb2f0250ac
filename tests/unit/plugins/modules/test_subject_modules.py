"""The modules of subjects check their options before any session, and show what is to be done by hand."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.calling import call
from tests.fakes.esxi import FakeHost
from tests.fakes.gpus import FakeGpus, Gpu
from tests.fakes.vibs import DRIVER, NEW

WRONG: list[tuple[str, dict[str, Any], str]] = [
    ("graphics", {"restart_xorg": True}, "one of the following is required: type, policy, vgpu_mode"),
    ("kernel_module", {"cluster": "gpu", "name": "x", "options": {"a": 1}}, "mutually exclusive: hosts|cluster"),
    ("passthrough", {}, "missing required arguments: enabled"),
    ("pvrdma", {}, "state is present but all of the following are missing: vmk"),
    ("roce", {"priority": 3, "dscp": 34}, "DSCP 34 is of priority 4, not 3"),
    ("vib", {"name": DRIVER}, "version, source"),
    ("vib", {"name": DRIVER, "version": NEW, "source": "X.zip"}, "is a relative path"),
]


@pytest.mark.parametrize(("module", "options", "words"), WRONG)
def test_refuses_wrong_options_before_any_session(module: str, options: dict[str, Any], words: str) -> None:
    host = FakeHost()
    assert words in call(f"esxi_{module}", [host], **options)["msg"]
    assert host.properties == {}


def test_graphics_shows_the_mig_steps() -> None:
    host = FakeHost()
    FakeGpus(host, Gpu())
    done = call("esxi_graphics", [host], type="shared_direct", policy="consolidation", vgpu_mode="mixed_size")
    assert done["changed"] and any("nvidia-smi" in step for step in done["mig_procedure"]), done
