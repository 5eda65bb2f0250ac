"""Fixtures of the attacks."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.simulator import DATACENTRES, Simulator


@pytest.fixture(scope="session")
def certs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates for all data centres of a run."""
    folder = tmp_path_factory.mktemp("certs")
    Simulator(DATACENTRES / "ready.yml", folder=folder).stop()
    (folder / "ready.json").unlink(missing_ok=True)
    return folder
