"""Fixtures of the integration tests: a simulated data centre, and Ansible run against it as a user would."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.simulator import DATACENTRES, Simulator
from tests import contract
from tests.integration import callers, installed
from tests.integration.ansible import Ansible, AnsibleFor, Start
from tests.integration.releases import KNOWN, NEWEST, OLDER, RELEASES

COMPLAINTS: pytest.StashKey[list[str]] = pytest.StashKey()


def pytest_configure() -> None:
    """Have a place where the processes of this run gather what was called."""
    callers.begin()


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which a module made a call that the table of privileges does not give it, or the reverse."""
    if not hasattr(session.config, "workerinput") and (complaints := callers.judge(session)):
        session.config.stash[COMPLAINTS] = complaints
        session.exitstatus = max(int(session.exitstatus), 1)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say what is missing in the table, and where."""
    for complaint in config.stash.get(COMPLAINTS, []):
        terminalreporter.write_line(f"PRIVILEGES: {complaint}", red=True)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run the main path of a playbook on the newest release, and with the slow tests on all others."""
    if metafunc.definition.get_closest_marker("every_release"):
        older = [pytest.param(one, marks=pytest.mark.slow) for one in OLDER]
        metafunc.parametrize("release", [*older, NEWEST], indirect=True)


@pytest.fixture
def release(request: pytest.FixtureRequest) -> str:
    """The release of vSphere of the data centres of a test; empty for that of their descriptions."""
    marked = request.node.get_closest_marker("release")
    return str(getattr(request, "param", marked.args[0] if marked else ""))


@pytest.fixture
def encryption() -> str:
    """Return whether moves are encrypted, as they are where no one says otherwise; a test may ask for the other."""
    return "on"


def skip_if_unknown(release: str) -> None:
    """Skip a test on a release that this pyVmomi does not know."""
    if release in RELEASES and release not in KNOWN:
        pytest.skip(f"this pyVmomi is older than vSphere {release}")


@pytest.fixture
def start(request: pytest.FixtureRequest, tmp_path: Path, release: str) -> Iterator[Start]:
    """Start simulators: ``start()``, ``start("mixed.yml", "--delay=5")``, or ``start(text=YAML)``.

    At the end, no transition broke a rule of the simulator's judge, and each exchange over the REST API fits VMware's
    descriptions, except for the rules of the marker ``breaks``, of which each must have been broken.
    """
    running: list[Simulator] = []

    def begin(datacentre: str = "ready.yml", *options: str, text: str | None = None) -> Simulator:
        if allowed := request.node.get_closest_marker("hosts_out"):
            options = (*options, f"--hosts-out={allowed.args[0]}")
        if release:
            options = (*options, f"--release={release}")
        for option in options:
            skip_if_unknown(option.removeprefix("--release="))
        path: Path = DATACENTRES / datacentre
        if text is not None:
            path = tmp_path / f"datacentre{len(running)}.yml"
            path.write_text(text)
        running.append(Simulator(path, *options, folder=tmp_path / f"vcenter{len(running)}"))
        return running[-1]

    yield begin
    broken = [rule for simulator in running for rule in end(simulator)]
    marked = request.node.get_closest_marker("breaks")
    expected = set(marked.args if marked else ())
    assert {rule for rule, _what in broken} == expected, f"broken: {broken}; expected: {sorted(expected)}"


def end(simulator: Simulator) -> list[tuple[str, str]]:
    """Stop a simulator, and return what broke a rule or, under ``rest``, does not fit the REST API."""
    callers.note(simulator)
    if simulator.process.poll() is not None:
        return []
    misfits = {problem for exchange in simulator.exchanges() for problem in contract.problems(exchange)}
    broken = [(one["rule"], one["what"]) for one in simulator.violations()]
    simulator.stop()
    return [*broken, *(("rest", problem) for problem in sorted(misfits))]


@pytest.fixture
def vcenter(start: Start, request: pytest.FixtureRequest) -> Simulator:
    """The data centre of the marker ``datacentre``, or the lab's: cluster ``gpu`` with five fresh hosts."""
    marked = request.node.get_closest_marker("datacentre")
    return start(*marked.args, **marked.kwargs) if marked else start()


@pytest.fixture
def ansible(vcenter: Simulator, tmp_path: Path) -> Ansible:
    """Ansible against the lab's data centre."""
    return Ansible(vcenter.environment, tmp_path)


@pytest.fixture
def ansible_for(tmp_path: Path) -> AnsibleFor:
    """Ansible against any simulator."""

    def make(simulator: Simulator, **environment: Any) -> Ansible:
        return Ansible({**simulator.environment, **environment}, tmp_path)

    return make


@pytest.fixture
def tarball() -> Path:
    """The collection, built from this checkout."""
    return installed.tarball()


@pytest.fixture
def elsewhere() -> Path:
    """A folder into which only the tarball was installed."""
    return installed.elsewhere()
