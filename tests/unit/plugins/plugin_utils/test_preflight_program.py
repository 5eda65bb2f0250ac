"""The program that reads a cluster before its hosts are prepared: its findings, its lines and its one error."""

from __future__ import annotations

from typing import Any

import pytest

from tests.fakes.programs import Answers, run
from tests.unit.plugins.module_utils.hosts.preflight.preflight_data import gpu, host, read

OTHER = {"hosts": {"hosts": [host(gpus=[gpu(name="NVIDIA A100")])]}, "gpu": "T4"}


def judge(answers: dict[str, Any] | None = None, **changed: Any) -> dict[str, Any]:
    given = read(**changed)
    hosts = {**given.pop("hosts"), "acceptance": given.pop("acceptance", {})}
    cluster = given.pop("cluster")
    read_cluster = {**cluster, "cluster": {"occupied": [], **cluster["cluster"]}}
    found = {"esxi_info": hosts, "cluster_info": read_cluster, "esxi_profile": given.pop("plan")}
    emptying = (given.pop("emptying", None) or [{}])[0]
    calls = Answers(**{**found, "esxi_power": emptying, **(answers or {})})
    return run("preflight", calls, cluster="gpu", **given)


def test_a_cluster_without_stops_is_not_refused() -> None:
    judged = judge()
    assert (judged["stops"], judged["refused"]) == ([], "")
    assert judged["lines"][-1].startswith("0 stop, ")


def test_stop_error_shows_how_to_accept_it() -> None:
    judged = judge(**OTHER)
    assert [one["rule"] for one in judged["stops"]] == ["gpu"]
    assert judged["refused"].startswith("gpu: 1 finding stops the preparation of its hosts: esx1: it has NVIDIA A100")
    assert judged["refused"].endswith("Correct that, or accept it by its rule in preflight_accept.")


def test_accepted_stop_remains_a_finding_without_error() -> None:
    judged = judge(**OTHER, accepted=["gpu:esx1"])
    assert (judged["stops"], judged["refused"]) == ([], "")
    assert [one["severity"] for one in judged["findings"] if one["rule"] == "gpu"] == ["stop"]
    assert any(line.startswith("accepted") for line in judged["lines"])
    assert judged["lines"][-1].startswith("0 stop, ") and judged["lines"][-1].endswith(", 1 accepted")


@pytest.mark.parametrize("gpu", [["T4", "A100"], {"esx1": "A100"}, {"esx1": ["T4", "A100"]}, {"esx2": "T4"}, [], ""])
def test_expected_model_is_listed_or_set_per_host(gpu: Any) -> None:
    assert judge(**{**OTHER, "gpu": gpu})["stops"] == []


@pytest.mark.parametrize(
    ("gpu", "expected"),
    [(["T4", "L40S"], "T4 or L40S"), ({"esx1": "L40S", "esx2": "A100"}, "L40S"), ({"esx1": ["T4"]}, "T4")],
)
def test_gpu_of_an_unexpected_model_stops(gpu: Any, expected: str) -> None:
    (stop,) = judge(**{**OTHER, "gpu": gpu})["stops"]
    assert f"but {expected} is expected" in stop["text"]


def test_notes_a_model_for_an_unknown_host() -> None:
    found = judge(gpu={"esx1": "T4", "esx77": "A100"})["findings"]
    (note,) = [one for one in found if one["rule"] == "gpu"]
    assert note["severity"] == "note" and "esx77" in note["text"]


@pytest.mark.parametrize("gpu", [4, ["T4", 4], {"esx1": {"model": "T4"}}])
def test_a_model_that_is_not_text_is_refused(gpu: Any) -> None:
    refused = judge(gpu=gpu)
    assert refused["failed"] and "gpu: could not read it as models of GPUs" in refused["msg"]


def test_checks_evacuation_only_of_occupied_hosts_that_leave() -> None:
    """A host that stays in service, and one without machines, need not be emptied."""
    plan = [{"host": name, "needs": needs, "changed": True} for name, needs in (("e1", ["reboot"]), ("e2", []))]
    given = read()
    calls = Answers(
        esxi_info={**given["hosts"], "acceptance": {}},
        cluster_info={**given["cluster"], "cluster": {**given["cluster"]["cluster"], "occupied": ["e1", "e2"]}},
        esxi_profile={"hosts": plan},
        esxi_power={},
    )

    run("preflight", calls, cluster="gpu", power_off=True)

    assert (calls.calls["esxi_power"]["hosts"], calls.calls["esxi_power"]["power_off"]) == (["e1"], True)


@pytest.mark.parametrize(
    ("profiles", "packages_are_read"),
    [
        ({"profile": {"kernel_modules": [{"name": "nmlx5_core"}], "vibs": []}}, False),
        ({"host_profiles": {"esx1": None}}, False),
        ({"profile": {"vibs": [{"name": "tool"}]}}, True),
        ({"host_profiles": {"esx1": {"vibs": [{"name": "tool"}]}}}, True),
    ],
)
def test_reads_costly_groups_only_if_findings_need_them(profiles: dict[str, Any], packages_are_read: bool) -> None:
    given = read()
    calls = Answers(
        esxi_info={**given["hosts"], "acceptance": {}},
        cluster_info={**given["cluster"], "cluster": {**given["cluster"]["cluster"], "occupied": []}},
        esxi_profile=given["plan"],
    )

    run("preflight", calls, cluster="gpu", **profiles)

    gathered = calls.calls["esxi_info"]["gather"]
    assert ("vib" in gathered) == packages_are_read
    assert not {"all", "rdma", "driver"} & set(gathered)
