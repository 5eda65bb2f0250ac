"""The documentation site has every page once, and it lists the errors of the code."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

from plugins.module_utils.vsphere.tasks import STILL_RUNS
from tools import docs_site, troubleshooting

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://example.com/dml"


def test_sidebar_lists_each_page_once() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    there = sorted(name.removesuffix(".md") for name in listed.split() if not name.startswith(".github/"))
    assert sorted(docs_site.pages()) == there, "add the page to docs/docsite/site.yml"


def test_links_to_other_files_lead_to_the_repository() -> None:
    text = (
        "[a](status.md#x) [b](../LICENSE) [c](../inventories/) [d](https://x.org/y) ![e](house.svg) `[f](../LICENSE)`"
    )
    assert docs_site.linked(text, ROOT / "docs", REPOSITORY) == (
        f"[a](status.md#x) [b]({REPOSITORY}/blob/main/LICENSE) [c]({REPOSITORY}/tree/main/inventories) "
        "[d](https://x.org/y) ![e](house.svg) `[f](../LICENSE)`"
    )


ERROR = """
def check(host, wrong):
    remedy = "set passthrough" if wrong else "turn it off"
    raise Refused(host.name, f"change {wrong}", "the GPU_0 is in use", remedy)

def findings():
    text = f"{one.alarm} is red; acknowledge it"
    yield cluster.finding(STOP, "red_alarm", text)
"""


def test_reads_errors_and_findings_with_their_remedies() -> None:
    found = set(troubleshooting.of_python(ast.parse(ERROR), "hosts"))
    message = r"HOST: could not change WRONG: the GPU\_0 is in use"
    assert found == {
        ("hosts", message, "Set passthrough."),
        ("hosts", message, "Turn it off."),
        ("hosts", "ALARM is red", "Acknowledge it."),
    }


def test_page_contains_every_error_with_its_own_text() -> None:
    page = troubleshooting.page()
    assert len(re.findall("^: ", page, re.MULTILINE)) > 300
    for path in (ROOT / "plugins").rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in troubleshooting.ERRORS:
                words = [each.value for each in node.args[1:] if isinstance(each, ast.Constant)]
                if len(words) == 3 and " " in str(words[0]):
                    assert all(troubleshooting.escape(str(text))[1:].rstrip(".") in page for text in words), words


CALLERS = """
LEAVE, AGAIN = "leave it", "run again"
NAMES = {"host": "HOST_NAME", "user": "USER_NAME"}

class Row:
    about = ("esxcli", "read its answer")

    def missing(self, key):
        raise Failed(*self.about, f"the answer has no field {key}", AGAIN)

    def leave(self, used, free, reserved):
        with translating_faults(self.name, LEAVE):
            task = start()
        wait(Started(task, self.name, LEAVE, "look at the host"))
        total = used["used"] + free["free"]
        yield WARN, "slots", f"of {total} places {free['free']} are free{_tail(reserved)}"
        _read("a.json", "read a result")

def _tail(reserved):
    return f" ({reserved} reserved)" if reserved else ""

def _read(path, tried):
    raise Refused(path, tried, "it is empty", f"set {', '.join(NAMES.values())}")
"""


def test_entry_uses_the_text_of_the_caller() -> None:
    found = {(one.message, one.remedy) for one in troubleshooting.of_python(ast.parse(CALLERS), "hosts")}

    assert found == {
        ("esxcli: could not read its answer: the answer has no field KEY", "Run again."),
        ("NAME: could not leave it: the server said FAULT", f"R{troubleshooting.REPORTED[1:]}."),
        ("NAME: could not leave it: the task did not end within SECONDS s", "Look at the host."),
        ("of USED places FREE are free (RESERVED reserved)", troubleshooting.CONTINUES),
        ("of USED places FREE are free", troubleshooting.CONTINUES),
        ("a.json: could not read a result: it is empty", r"Set HOST\_NAME, USER\_NAME."),
    }


def test_entries_name_the_failed_action_and_a_remedy() -> None:
    page = troubleshooting.page()
    assert re.findall("^.*could not [A-Z. ]*:.*$", page, re.MULTILINE) == []
    assert "The message contains" not in page and "{{" not in page.replace("\\", "") and "Look at it" not in page
    assert re.findall(r"^: .*(?: of| variables| the) ?\.$", page, re.MULTILINE) == []
    assert len(re.findall("^: ", page, re.MULTILINE)) >= len(re.findall("^[^:#\n].*\n(?=: )", page, re.MULTILINE))


def test_reasons_added_by_the_page_occur_in_code() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "plugins" / "module_utils").rglob("*.py"))
    reasons = [one.reason for one in troubleshooting.RAISING.values()] + [
        reason for _target, reason in troubleshooting.TRYING.values()
    ]
    for reason in reasons:
        assert re.sub(r" [A-Z]+\b.*", "", reason) in code, reason
    assert troubleshooting.RAISING["Started"].otherwise == STILL_RUNS
