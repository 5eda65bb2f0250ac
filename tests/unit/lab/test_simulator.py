# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Every behaviour of the simulator names its source."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest
import pyVmomi

from tools import simulator

TYPES = (Path(pyVmomi.__file__).parent / "_typeinfo_vim.py").read_text()
EVERYTHING = simulator.everything()

CODE = """package power

// RebootHostTask reboots
// the host.
// VMware: a document, which
// is long.
// Ours: a reason.
func (m *hostMethods) RebootHostTask(
\tctx *simulator.Context, req *types.RebootHost_Task,
) soap.HasFault {
\treturn nil
}

func (m *hostMethods) QueryUptime(*types.QueryUptime) soap.HasFault { return nil }

func helper() {}

// words are texts.
// Ours: no source.
var words = map[string]string{}
"""


def unexplained(declared: Iterable[simulator.Declaration]) -> list[str]:
    """Return the functions that answer a call or a command, but do not name the source of their behaviour."""
    missing = []
    for entry in declared:
        command = "*esxcli.Response, *esxcli.Error)" in entry.code and entry.name in simulator.commands(entry.package)
        rest = entry.package == "lifecycle" and "http.ResponseWriter" in entry.code and entry.receiver
        if (entry.method or command or rest) and not entry.sources:
            missing.append(f"{entry.package}: {entry.name}")
    return missing


def test_every_call_and_command_names_the_source_of_its_behaviour() -> None:
    sourceless = unexplained(EVERYTHING)
    assert [f"{name}: end its comment with a line VMware: SOURCE or Ours: REASON" for name in sourceless] == []
    assert len([one for one in EVERYTHING if one.method]) > 70
    assert len(simulator.commands("host/software")) > 10


def test_every_package_with_behaviours_names_what_vcsim_does() -> None:
    packages = {one.package for one in EVERYTHING if one.sources}
    assert len(packages) > 15
    assert [package for package in sorted(packages) if not all(simulator.opening(package))] == []


def test_packages_use_only_packages_above_them_in_the_readme() -> None:
    readme = (simulator.CODE.parent / "README.md").read_text()
    order = re.findall(r"^\| `internal/([\w/]+)/` \|", readme, re.MULTILINE)
    assert sorted(order) == sorted({simulator.package_of(path) for path in simulator.files()})
    uses = [
        (simulator.package_of(path), used)
        for path in simulator.files()
        for used in re.findall(r'"dml\.vsphere/lab/vcenter/internal/([\w/]+)"', path.read_text())
    ]
    assert len(uses) > 100
    assert [f"{user} uses {used}" for user, used in uses if order.index(used) >= order.index(user)] == []


# Functions that return or await the time of the machine.
MACHINE_TIME = re.compile(r"\btime\.(Now|Since|Until|Sleep|After|AfterFunc|Tick|NewTicker|NewTimer)\(")


def uses_of_machine_time(files: Iterable[Path]) -> list[str]:
    """Return the lines that do not take their time from the clock of the data centre."""
    return [
        f"{path.name}: {line.strip()}"
        for path in files
        for line in path.read_text().splitlines()
        if MACHINE_TIME.search(line)
    ]


def test_time_comes_from_the_clock_which_a_test_can_advance() -> None:
    # Tests wait for the simulator, so their patience is that of the machine.
    files = [path for path in simulator.CODE.parent.rglob("*.go") if not path.name.endswith("_test.go")]
    assert len(files) > 60
    assert uses_of_machine_time(path for path in files if path.parent.name != "clock") == []


def test_a_time_of_the_machine_is_found(tmp_path: Path) -> None:
    (tmp_path / "a.go").write_text("begin := time.Now()\nclock.Sleep(time.Second)\n\ttime.Sleep(time.Second)\n")
    assert uses_of_machine_time([tmp_path / "a.go"]) == ["a.go: begin := time.Now()", "a.go: time.Sleep(time.Second)"]


def test_sources_are_spelt_as_they_are_read() -> None:
    lines = [line for path in simulator.files() for line in path.read_text().splitlines()]
    alike = [line.strip() for line in lines if re.match(r"\s*// *(vmware|ours?|vmware's) *:", line, re.IGNORECASE)]
    assert len(alike) > 200
    assert [line for line in alike if not re.match(r"// (VMware|Ours): \S", line)] == []
    assert len(alike) == sum(len(one.sources) for one in EVERYTHING)


def test_faults_marked_as_declared_by_pyvmomi_are_declared_there() -> None:
    reported = [
        (found[1], found[2].split(", "))
        for one in EVERYTHING
        for kind, text in one.sources
        if kind == "VMware" and (found := re.search(r"faults of (\w+): ([A-Z]\w+(?:, [A-Z]\w+)*)", text))
    ]
    assert len(reported) > 15
    for method, faults in reported:
        # up to the list of faults, but not into the next method
        definition = re.search(rf'"{method}", "vim[^"]*", (?:(?!\), \("\w+", "[A-Z]).)*?\[([^\]]*)\]', TYPES)
        assert definition, method
        assert [one for one in faults if f'.fault.{one}"' not in definition[1]] == [], method


@pytest.fixture
def declarations() -> dict[str, simulator.Declaration]:
    return {one.name: one for one in simulator.declarations("host/power", CODE)}


def test_a_comment_is_read(declarations: dict[str, simulator.Declaration]) -> None:
    reboot = declarations["RebootHostTask"]
    assert reboot.text == "reboots the host."
    assert reboot.sources == [("VMware", "a document, which is long."), ("Ours", "a reason.")]
    assert (reboot.method, reboot.receiver) == ("RebootHost_Task", "hostMethods")
    assert declarations["words"].sources == [("Ours", "no source.")]
    assert declarations["helper"].method is None


def test_a_call_without_source_is_found(declarations: dict[str, simulator.Declaration]) -> None:
    assert unexplained(declarations.values()) == ["host/power: QueryUptime"]
