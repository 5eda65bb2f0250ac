# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The demo says of each chapter whether its promise was kept, and its lab is bare."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest
import yaml

from lab import demo, demo_end, digest
from lab.chapters import GUESTS, GUESTS_MEANWHILE, KUBERNETES, MACHINES, NODES, REPAIR, TEARDOWN, Chapter, meanwhile
from lab.demo import Demo
from lab.kubernetes import images
from lab.simulator import DATACENTRES, ROOT

WRITE = {"method": "PowerOnVM_Task", "name": "worker01"}


def played(chapter: Chapter, tmp_path: Path, *, code: int, writes: list[dict[str, str]]) -> tuple[str, bool, list[str]]:
    """Return what the demo says of a chapter whose run ended so, and the command that it ran."""
    vcenter: Any = SimpleNamespace(clear=lambda: None, writes=lambda: writes)
    with mock.patch.object(digest, "run", return_value=code) as run:
        line, kept = Demo(vcenter, {}, tmp_path).play(1, chapter)
    return line, kept, run.call_args.args[0]


@pytest.mark.parametrize(
    ("chapter", "code", "writes", "kept"),
    [
        (Chapter("t", "site.yml"), 0, [WRITE], True),
        (Chapter("t", "site.yml"), 0, [], False),
        (Chapter("t", "site.yml"), 2, [WRITE], False),
        (Chapter("t", "site.yml", writes=False), 0, [], True),
        (Chapter("t", "site.yml", writes=False), 0, [WRITE], False),
        (Chapter("t", "teardown.yml", writes=False), 0, [], True),
        (Chapter("t", "teardown.yml", writes=False), 2, [], False),
        (Chapter("t", "teardown.yml", writes=False), 0, [WRITE], False),
    ],
)
def test_a_broken_promise_is_seen(
    chapter: Chapter, code: int, writes: list[dict[str, str]], kept: bool, tmp_path: Path
) -> None:
    line, good, _command = played(chapter, tmp_path, code=code, writes=writes)
    assert good is kept
    assert f"{len(writes)} writes" in line and f"exit code {code}" in line


@pytest.mark.parametrize(
    ("release", "changes"), [("9.1", [True]), ("9.0", [True]), ("8.0 U3", []), ("8.0 U2", []), (None, [])]
)
def test_an_image_manages_the_cluster_of_a_release_without_baselines(release: str | None, changes: list[bool]) -> None:
    made = list[bool]()
    vcenter: Any = SimpleNamespace(set_cluster=lambda _name, image_managed: made.append(image_managed))
    variables = demo._image_managed(SimpleNamespace(release=release), vcenter)  # type: ignore[arg-type]
    assert made == changes and bool(variables.get("LAB_IMAGE_MANAGED")) == bool(changes)


def test_machines_without_guests_are_stopped_with_the_option_for_it(tmp_path: Path) -> None:
    option, demo = "unreachable_is_idle=true", Demo(mock.Mock(writes=list), {}, tmp_path, without_guests=True)
    with mock.patch.object(digest, "run", return_value=0) as run:
        for number, chapter in enumerate([*NODES[:3], REPAIR, *TEARDOWN], 1):
            demo.play(number, chapter)

    assert [option in call.args[0] for call in run.call_args_list] == [False] * 3 + [True, False, True]
    assert option not in played(NODES[-1], tmp_path, code=0, writes=[WRITE])[2]


def test_hosts_are_set_back_to_the_first_evidence(tmp_path: Path) -> None:
    evidence = tmp_path / "evidence"
    evidence.mkdir()
    for name in ("gpu-20260102T000000Z.json", "gpu-20260101T000000Z.json", "gpu-shared-settings.json"):
        (evidence / name).touch()
    _line, _kept, command = played(NODES[-1], tmp_path, code=0, writes=[WRITE])
    assert command[-4:] == ["-e", "confirm=true", "-e", f"rollback_evidence={evidence}/gpu-20260101T000000Z.json"]


def test_while_horovod_is_compiled_the_guests_get_the_rest_of_the_stack_first() -> None:
    first, second = GUESTS_MEANWHILE
    at = NODES.index(GUESTS)
    assert meanwhile(NODES) == [*NODES[:at], first, second, *NODES[at + 1 :]]
    assert (first.needs_horovod, second.needs_horovod, GUESTS.needs_horovod) == (False, True, True)
    tags = {tag for part in GUESTS_MEANWHILE for tag in part.arguments[-1].split(",")}
    roles = yaml.safe_load((ROOT / "stacks" / "lab-cpu.yml").read_text()).keys() & {"openmpi", "horovod"}
    assert tags == {"node", "versions", "stack", *roles}


def test_each_chapter_has_its_own_connections_to_workers(tmp_path: Path) -> None:
    vcenter: Any = SimpleNamespace(clear=lambda: None, writes=list)
    with mock.patch.object(digest, "run", return_value=0) as run:
        for _chapter in range(2):
            Demo(vcenter, {}, tmp_path).play(1, NODES[0])
    first, second = (call.args[2]["ANSIBLE_SSH_CONTROL_PATH_DIR"] for call in run.call_args_list)
    assert first != second and not Path(first).exists()


def test_ranks_that_wait_let_others_run() -> None:
    variables = yaml.safe_load((ROOT / "inventories" / "lab" / "group_vars" / "workers.yml").read_text())
    assert variables["openmpi_mca"] == {"mpi_yield_when_idle": 1}


def test_simulated_hosts_reboot_fast(tmp_path: Path) -> None:
    with (
        mock.patch.object(demo, "Simulator") as simulator,
        mock.patch.object(demo, "state", return_value={}),
        mock.patch.object(Demo, "play", lambda _demo, _number, chapter: (chapter.title, True)),
    ):
        vcenter = simulator.return_value.__enter__.return_value
        vcenter.ask.return_value = ["esx01.lab"]
        assert demo.main(["--folder", str(tmp_path / "demo"), "--without-guests"]) == 0
    vcenter.set_host.assert_called_once_with("esx01.lab", reboot_seconds=demo.REBOOT_SECONDS)


def test_every_chapter_runs_a_playbook_that_there_is() -> None:
    assert all((ROOT / "playbooks" / chapter.playbook).exists() for chapter in (*NODES, *MACHINES, *KUBERNETES))


def test_each_chapter_gets_its_folders_and_leaves_what_is_json_as_it_is(tmp_path: Path) -> None:
    for chapter in (*NODES, *MACHINES, *KUBERNETES):
        _line, _kept, command = played(dataclasses.replace(chapter, harm=None), tmp_path, code=0, writes=[])
        assert not [word for word in command if word.startswith("{") and not isinstance(json.loads(word), dict)]


def shown(kind: str, folder: Path, *arguments: str) -> tuple[list[tuple[Demo, Chapter]], Any, mock.Mock]:
    """The chapters that the demo goes through on a lab of this kind, that lab, and what was required for it."""
    lab: Any = mock.MagicMock(environment={}, lab="dml0")
    seen: list[tuple[Demo, Chapter]] = []
    with (
        mock.patch.object(demo, "require") as require,
        mock.patch.object(demo, "Lab", return_value=lab),
        mock.patch.object(demo, "HOROVOD", folder),
        mock.patch.object(demo, "state", return_value={}),
        mock.patch.object(Demo, "play", lambda self, _number, one: seen.append((self, one)) or (one.title, True)),
    ):
        assert demo.main(["--lab", kind, "--folder", str(folder / "demo"), *arguments]) == 0
    return seen, lab, require


def test_machines_are_shown_with_their_own_inventory(tmp_path: Path) -> None:
    with mock.patch.object(demo.host, "memory_bytes", return_value=5 << 20) as memory:
        seen, lab, require = shown("vm", tmp_path)
        assert seen[0][0].memory() == 5 << 20
    memory.assert_called_with("dml0")
    require.assert_called_once_with(machines=True)
    (desired,) = lab.up.call_args.args
    assert desired.machines and [share.partition(":")[2] for share in desired.shares] == ["/opt/dml/lab"]
    assert [chapter for _demo, chapter in seen] == list(MACHINES)
    assert seen[0][0].inventories == ("inventories/lab", "inventories/lab_machines")
    assert lab.method_calls[-1] == mock.call.down()


def test_on_kubernetes_the_workers_train_in_pods(tmp_path: Path) -> None:
    seen, lab, require = shown("kubernetes", tmp_path)
    require.assert_called_once_with(machines=False)
    (desired,) = lab.up.call_args.args
    assert (desired.kubernetes, desired.machines) == (True, False)
    assert [share.partition(":")[2] for share in desired.shares] == ["/opt/dml/lab"]
    assert [chapter for _demo, chapter in seen] == list(KUBERNETES)
    variables = yaml.safe_load((ROOT / "inventories/lab_kubernetes/group_vars/workers.yml").read_text())
    assert variables["training_backend"] == "kubernetes"
    assert variables["training_kubernetes"]["image"] == images.OPENMPI


def test_the_most_memory_of_all_chapters_is_kept(tmp_path: Path) -> None:
    sizes = iter((1, 3, 2))
    vcenter: Any = SimpleNamespace(clear=lambda: None, writes=list)
    one = Demo(vcenter, {}, tmp_path, memory=lambda: next(sizes))
    with mock.patch.object(digest, "run", return_value=0):
        for chapter in MACHINES[:3]:
            one.play(1, chapter)
    assert one.most_memory == 3


def test_without_root_the_guests_are_skipped_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    ran: list[Chapter] = []

    def play(_demo: Demo, _number: int, chapter: Chapter) -> tuple[str, bool]:
        ran.append(chapter)
        return chapter.title, True

    with (
        mock.patch.object(demo, "require", side_effect=demo.LabError("Nodes cannot be made: root is required.")),
        mock.patch.object(demo, "Simulator"),
        mock.patch.object(demo, "state", return_value={}),
        mock.patch.object(Demo, "play", play),
    ):
        assert demo.main(["--folder", str(tmp_path / "demo")]) == 0
    assert ran == [chapter for chapter in NODES if not chapter.in_guests]
    assert len(ran) < len(NODES)
    assert "Not shown: guests, training, and vMotion under load. Nodes cannot be made" in capsys.readouterr().out


def test_runs_on_another_vsphere_and_without_guests_on_request(tmp_path: Path) -> None:
    folder = ["--folder", str(tmp_path / "demo")]
    with (
        mock.patch.object(demo, "require", side_effect=AssertionError("the requirements of guests are not checked")),
        mock.patch.object(demo, "Simulator") as simulator,
        mock.patch.object(demo, "state", return_value={}),
        mock.patch.object(Demo, "play", lambda _demo, _number, chapter: (chapter.title, True)),
    ):
        assert demo.main([*folder, "--without-guests", "--release", "9.0", "--encryption", "off"]) == 0
    assert simulator.call_args.args == (DATACENTRES / "lab.yml", "--release=9.0", "--encryption=off")


def test_a_data_centre_that_is_kept_is_not_torn_down(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen, lab, _require = shown("nodes", tmp_path, "--keep")
    # The folder has no Horovod yet.
    assert [chapter for _demo, chapter in seen] == [one for one in meanwhile(NODES) if not one.is_teardown]
    assert len(seen) == len(NODES) + 1 - 2
    assert lab.down.call_count == 1, "only what an earlier demo left is removed"
    output = capsys.readouterr().out
    assert output.startswith("SIMULATED: ")
    assert "make demo-down removes them" in output and "vCenter compared" not in output


def test_the_demo_ends_at_the_first_chapter_that_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (
        mock.patch.object(demo, "Simulator"),
        mock.patch.object(demo, "state", return_value={}),
        mock.patch.object(Demo, "play", side_effect=[("first", True), ("second", False)]),
    ):
        assert demo.main(["--folder", str(tmp_path / "demo"), "--without-guests"]) == 1
    output = capsys.readouterr().out
    assert "yes  first" in output and "NO   second" in output and "vCenter compared" not in output


def test_the_end_names_the_verdict_and_the_report(tmp_path: Path) -> None:
    verdict = {"verdict": "continuous", "moved": "all", "moves": [{"gap_s": 1.25}, {"gap_s": None}, {"gap_s": 2.04}]}
    (tmp_path / "vmotion" / "one").mkdir(parents=True)
    (tmp_path / "vmotion" / "one" / "verdict.json").write_text(json.dumps(verdict))
    (tmp_path / "report").mkdir()
    (tmp_path / "report" / "report.html").touch()
    first, second, _third = demo_end.results(tmp_path)
    (tmp_path / "vmotion" / "one" / "window.json").write_text("[]")
    of_a_window = next(demo_end.results(tmp_path))
    assert first == "The training while its workers moved: continuous, moved: all, longest silence 2.0 s."
    assert of_a_window.startswith("The training while its hosts changed: continuous")
    assert second == f"Report: {tmp_path}/report/report.html"


def test_shows_differences_from_the_previous_state(capsys: pytest.CaptureFixture[str]) -> None:
    assert demo._as_before({"a": "1"}, {"a": "1"})[1]
    line, good = demo._as_before({"a": "1", "b": "2"}, {"a": "3", "c": "4"})
    assert not good and "2 properties, 3 differ" in line
    assert "a: was 1, is 3" in capsys.readouterr().out


def test_the_ready_data_centre_is_the_lab_with_its_network() -> None:
    lab, ready = (yaml.safe_load((DATACENTRES / f"{name}.yml").read_text()) for name in ("lab", "ready"))
    assert "switches" not in lab
    (switch,) = ready.pop("switches")
    assert switch["uplinks"] == ["vmnic2"]
    vmk1 = ready["host_defaults"]["vmkernel"].pop()
    assert (vmk1["device"], vmk1["switch"]) == ("vmk1", "rdma")
    assert ready == lab
