"""A host is not touched any more once the run that requested it has ended."""

from __future__ import annotations

import pytest

from plugins.module_utils.errors import Abandoned
from plugins.module_utils.maintenance.service_options import ServiceOptions


def test_next_step_needs_the_run_that_requested_it() -> None:
    ServiceOptions("ada").go_on("esx1", "reboot it")

    with pytest.raises(Abandoned, match="the ansible run that requested it has ended"):
        ServiceOptions("ada", run_lives=lambda: False).go_on("esx1", "reboot it")
