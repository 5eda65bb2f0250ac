# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The network of a lab is one that this machine does not use, and the demo's workers have their addresses in it."""

from __future__ import annotations

import ipaddress
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from lab import demo
from lab.nodes import network
from lab.nodes.programs import LabError
from lab.running import Desired, Lab
from lab.simulator import ROOT
from tests import rendering

TUNNEL = "10.0.0.0/8"
INVENTORIES = ("lab", "lab_machines")


def uses(monkeypatch: pytest.MonkeyPatch, *subnets: str) -> None:
    """Let this machine have routes to these networks, and out."""
    routes = json.dumps([{"dst": "default"}, *({"dst": one} for one in subnets)])
    monkeypatch.setattr(network, "run", lambda *_words: routes)


@pytest.mark.parametrize(
    ("used", "expected", "free"),
    [
        ((), "10.0.1.0/24", "10.86.16.0/24"),
        (("10.0.0.0/16", "10.86.16.0/24"), "auto", "10.86.17.0/24"),
        (("10.0.1.7",), "auto", "10.86.16.0/24"),
        ((TUNNEL,), "auto", "198.18.16.0/24"),
    ],
)
def test_a_network_that_is_used_already_is_not_taken(
    monkeypatch: pytest.MonkeyPatch, used: tuple[str, ...], expected: str, free: str
) -> None:
    uses(monkeypatch, *used)
    assert (network.requested_or_free("10.0.1.0/24"), network.free_subnet()) == (expected, free)


def test_reports_that_no_address_is_free(monkeypatch: pytest.MonkeyPatch) -> None:
    uses(monkeypatch, TUNNEL, "198.18.0.0/15")
    with pytest.raises(LabError, match="choose one with --network"):
        network.free_subnet()


@pytest.mark.parametrize("inventory", INVENTORIES)
@pytest.mark.parametrize("reported", ["", "10.0.1.0/24", "198.18.16.0/24"])
def test_workers_of_the_demo_are_in_the_network_of_its_lab(
    monkeypatch: pytest.MonkeyPatch, inventory: str, reported: str
) -> None:
    monkeypatch.setenv("LAB_NETWORK", reported)
    known: dict[str, Any] = {}
    for name in ("lab", inventory):
        text = (ROOT / "inventories" / name / "group_vars" / "clusters.yml").read_text()
        known.update(yaml.safe_load(text))
    place, lan = rendering.rendered(known["lab_place"]), ipaddress.IPv4Network(reported or "10.0.1.0/24")
    for worker in known["worker_vms"]:
        address = rendering.rendered(worker["guest"]["address"], lab_place=place)
        assert ipaddress.IPv4Interface(address).network == lan


@pytest.mark.parametrize(("used", "expected"), [((), "10.0.1.0/24"), (("10.0.0.0/16",), "auto")])
def test_the_demo_asks_for_such_a_network_and_a_lab_that_does_not_start_is_one_sentence(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    used: tuple[str, ...],
    expected: str,
) -> None:
    def up(_lab: Lab, desired: Desired) -> None:
        raise LabError(f"No lab starts in {desired.subnet}.")

    uses(monkeypatch, *used)
    monkeypatch.setattr(Lab, "up", up)
    monkeypatch.setattr(Lab, "down", lambda _lab: None)
    monkeypatch.setattr(demo, "_no_guests", lambda _requested: "")
    monkeypatch.setattr(demo, "HOROVOD", tmp_path)
    assert demo.main(["--folder", str(tmp_path / "demo")]) == 1
    assert capsys.readouterr().err == f"No lab starts in {expected}.\n"
