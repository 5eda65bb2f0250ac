"""The syntax check of all playbooks and roles together finds an error in any of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import ansible_lint

GOOD, BROKEN = "[{debug: {}}]", "[{debug: {}, command: echo}]"


@pytest.mark.parametrize(
    ("play", "tasks", "passes"), [(GOOD, GOOD, True), (BROKEN, GOOD, False), (GOOD, BROKEN, False)]
)
def test_check_passes_only_when_each_file_does(
    tmp_path: Path, play: str, tasks: str, passes: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSIBLE_HOME", str(tmp_path / "home"))
    (tmp_path / "role" / "tasks").mkdir(parents=True)
    (tmp_path / "role" / "tasks" / "main.yml").write_text(tasks)
    for name, shown in (("first.yml", GOOD), ("second.yml", play)):
        (tmp_path / name).write_text(f"[{{hosts: localhost, tasks: {shown}}}]")
    playbooks = [str(tmp_path / name) for name in ("first.yml", "second.yml")]

    assert ansible_lint.passes(playbooks, [str(tmp_path / "role")]) == passes
