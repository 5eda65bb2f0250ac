"""Check mode on fresh nodes: it succeeds, reports the changes that it would make, and writes nothing."""

from __future__ import annotations

from tests.scenario import GUESTS, node, run, start, workers

NODES = workers()
# Every file with its size and times, except those that every login with ssh and sudo writes.
LIST = r"""find / -xdev \( -path /proc -o -path /sys -o -path /run -o -path /tmp -o -path /var/tmp -o -path /var/log \
  -o -path /var/lib/systemd -o -path '*/.ansible' -o -path '*/.ssh' \) -prune -o -printf '%p %y %m %s %C@\n' | sort"""


def written(name: str) -> set[str]:
    """Return the files on a node."""
    return {line for line in run(node(name), LIST).splitlines() if not line.startswith(("/home/molecule d", "/root d"))}


def test_check_mode_writes_nothing_on_fresh_nodes() -> None:
    before = {name: written(name) for name in NODES}
    running = start(GUESTS, "--check", "--diff")
    output, _nothing = running.communicate(timeout=900)
    assert running.returncode == 0, output
    assert "The package openmpi-bin is missing, not 4.1.4-3+b1." in output
    assert {name: sorted(written(name) ^ before[name]) for name in NODES} == {name: [] for name in NODES}
