# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The documentation site has every page once, its links lead somewhere, and it lists the errors of the code."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

from plugins.module_utils.vsphere.tasks import STILL_RUNS
from tools import docs_site, site_links, troubleshooting

ROOT = Path(__file__).parents[2]
REPOSITORY = "https://example.com/dml"
GITHUB = "https://github.com/example/dml"
LINK = re.compile(rf"{GITHUB}/(?:blob|edit)/[^\"?]*")


def test_each_page_of_the_repository_is_in_the_sidebar_once() -> None:
    listed = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    there = sorted(name.removesuffix(".md") for name in listed.split() if not name.startswith(".github/"))
    assert sorted(docs_site.pages()) == there, "add the page to docs/docsite/site.yml"


def test_the_parts_lead_from_the_start_to_development() -> None:
    assert list(docs_site.structure()) == [
        "Start",
        "How-to for administrators",
        "How-to for data scientists",
        "Troubleshooting",
        "Reference",
        "More about roles",
        "Trust",
        "Develop",
    ]
    assert next(iter(docs_site.structure()["Troubleshooting"])) == docs_site.TROUBLESHOOTING


def test_the_sidebar_names_tasks_and_no_role() -> None:
    for part, pages in docs_site.structure().items():
        if part.startswith("How-to"):
            assert all(title and "dml.vsphere" not in title for title in pages.values()), part


def test_the_first_page_is_a_quickstart() -> None:
    page = docs_site.index()
    visible = page.partition("```{toctree}")[0]
    assert re.findall(r"^(?:make|ansible-playbook) .*$", visible, re.MULTILINE) == [
        "make demo",
        "ansible-playbook dml.vsphere.discover",
    ]
    for link in re.findall(r"\]\(([^)#\s]+)", visible):
        name = link.removesuffix(".md")
        assert name in docs_site.pages() or name == docs_site.TROUBLESHOOTING or (ROOT / link).is_file(), link
    assert page.count("```{toctree}") == page.count(":hidden:") == len(docs_site.structure())


def test_the_first_page_names_the_versions_of_the_readme() -> None:
    table = (ROOT / "README.md").read_text().partition("| ansible-core |")[2].partition("\n\n")[0]
    rows = [[cell.strip() for cell in row.split("|")[1:3]] for row in table.splitlines()[2:]]
    pythons = {int(minor) for _core, python in rows for minor in re.findall(r"3\.(\d+)", python)}
    versions = f"ansible-core {rows[-1][0]} to {rows[0][0]} and Python 3.{min(pythons)} to 3.{max(pythons)}"

    page = " ".join(docs_site.index().split())

    assert versions in page and "vSphere 8.0 U2 to 9.1" in page and "Not yet run on real ESXi" in page


def test_links_to_files_other_than_pages_lead_to_the_repository() -> None:
    text = (
        "[a](status.md#x) [b](../LICENSE) [c](../inventories/) [d](https://x.org/y) ![e](house.svg) `[f](../LICENSE)`"
    )
    assert docs_site.linked(text, ROOT / "docs", REPOSITORY) == (
        f"[a](status.md#x) [b]({REPOSITORY}/blob/main/LICENSE) [c]({REPOSITORY}/tree/main/inventories) "
        "[d](https://x.org/y) ![e](house.svg) `[f](../LICENSE)`"
    )


@pytest.mark.parametrize("page", docs_site.pages())
def test_each_link_of_a_page_leads_to_a_page_or_the_repository(page: str) -> None:
    source = ROOT / f"{page}.md"
    text = re.sub(
        r"```.*?```|`[^`\n]+`", "", docs_site.linked(source.read_text(), source.parent, REPOSITORY), flags=re.DOTALL
    )
    pages = {ROOT / f"{each}.md" for each in docs_site.pages()}
    for link in re.findall(r"\]\(([^)#\s]+)", text):
        target = (source.parent / link).resolve()
        assert "://" in link or target in pages or target.suffix in docs_site.PICTURES, link


def test_dead_links_are_listed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "index.html").write_text(
        '<a href="a/b.html#there">1</a><a href="a/b.html#gone">2</a><a href="c.html">3</a>'
    )
    (tmp_path / "a" / "b.html").write_text('<p id="there"><a href="../index.html">4</a><img src="no.png"></p>')
    assert site_links.dead_links(tmp_path) == ["a/b.html: no.png", "index.html: a/b.html#gone", "index.html: c.html"]


def test_the_theme_writes_no_error_over_a_table_of_contents(tmp_path: Path) -> None:
    """As the pages of plugins have one, rendered with the settings of the site."""
    source, built = tmp_path / "source", tmp_path / "built"
    (source / "_search").mkdir(parents=True)
    (source / "_search" / "search.js").write_text(docs_site.search())
    (source / "conf.py").write_text(docs_site.configuration(GITHUB))
    (source / "index.rst").write_text("Title\n=====\n\n.. contents::\n   :local:\n\nSynopsis\n--------\n\nText.\n")
    render = [sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html"]
    subprocess.run([*render, str(source), str(built)], check=True)
    page = (built / "index.html").read_text()
    assert "Synopsis" in page and site_links.pages_with_errors(built) == []
    (built / "index.html").write_text(page.replace(site_links.ALLOWED, ""))
    assert site_links.pages_with_errors(built) == ["index.html"]


def test_a_page_links_to_its_file_on_the_main_branch_if_it_has_one(tmp_path: Path) -> None:
    source, built = tmp_path / "source", tmp_path / "built"
    for folder in ("_search", "docs", "collection"):
        (source / folder).mkdir(parents=True)
    (source / "_search" / "search.js").write_text(docs_site.search())
    (source / "conf.py").write_text(docs_site.configuration(GITHUB))
    (source / "index.rst").write_text(
        "Title\n=====\n\n.. toctree::\n\n   docs/faults\n   collection/a\n   troubleshooting\n"
    )
    (source / "docs" / "faults.md").write_text("# Faults\n")
    for page in ("collection/a", "troubleshooting"):
        (source / f"{page}.md").write_text("# Made\n")

    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(source), str(built)], check=True)

    links = {page.relative_to(built).as_posix(): LINK.findall(page.read_text()) for page in built.rglob("*.html")}
    assert links["docs/faults.html"] == [f"{GITHUB}/blob/main/docs/faults.md", f"{GITHUB}/edit/main/docs/faults.md"]
    assert links["index.html"] == links["collection/a.html"] == links["troubleshooting.html"] == []


def test_options_in_errors_keep_their_two_hyphens(tmp_path: Path) -> None:
    options = [line for line in troubleshooting.page().splitlines() if "--" in line]
    assert len(options) > 5
    source, built = tmp_path / "source", tmp_path / "built"
    (source / "_search").mkdir(parents=True)
    (source / "_search" / "search.js").write_text(docs_site.search())
    (source / "conf.py").write_text(docs_site.configuration(GITHUB))
    (source / "index.md").write_text("\n\n".join(["# Errors", *(line.removeprefix(": ") for line in options)]))

    subprocess.run([sys.executable, "-m", "sphinx", "-q", "-W", "-b", "html", str(source), str(built)], check=True)

    page = (built / "index.html").read_text()
    named = {name for line in options for name in re.findall(r"--[a-z-]+", line.replace("\\", ""))}
    assert "--gpu-reset" in named and [name for name in sorted(named) if name not in page] == []
    assert "\N{EN DASH}" not in page


ERROR = """
def check(host, wrong):
    remedy = "set passthrough" if wrong else "turn it off"
    raise Refused(host.name, f"change {wrong}", "the GPU_0 is in use", remedy)

def findings():
    text = f"{one.alarm} is red; acknowledge it"
    yield cluster.finding(STOP, "red_alarm", text)
"""


def test_errors_and_findings_are_read_with_their_remedies() -> None:
    found = set(troubleshooting.of_python(ast.parse(ERROR), "hosts"))
    message = r"HOST: could not change WRONG: the GPU\_0 is in use"
    assert found == {
        ("hosts", message, "Set passthrough."),
        ("hosts", message, "Turn it off."),
        ("hosts", "ALARM is red", "Acknowledge it."),
    }


def test_each_error_with_its_own_words_is_on_the_page() -> None:
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


def test_an_entry_has_the_words_of_the_caller_of_a_function_that_raises() -> None:
    found = {(one.message, one.remedy) for one in troubleshooting.of_python(ast.parse(CALLERS), "hosts")}

    assert found == {
        ("esxcli: could not read its answer: the answer has no field KEY", "Run again."),
        ("NAME: could not leave it: the server said FAULT", f"R{troubleshooting.REPORTED[1:]}."),
        ("NAME: could not leave it: the task did not end within SECONDS s", "Look at the host."),
        ("of USED places FREE are free (RESERVED reserved)", troubleshooting.CONTINUES),
        ("of USED places FREE are free", troubleshooting.CONTINUES),
        ("a.json: could not read a result: it is empty", r"Set HOST\_NAME, USER\_NAME."),
    }


def test_no_entry_hides_what_was_tried_and_each_has_a_remedy() -> None:
    page = troubleshooting.page()
    assert re.findall("^.*could not [A-Z. ]*:.*$", page, re.MULTILINE) == []
    assert "The message contains" not in page and "{{" not in page.replace("\\", "") and "Look at it" not in page
    assert re.findall(r"^: .*(?: of| variables| the) ?\.$", page, re.MULTILINE) == []
    assert len(re.findall("^: ", page, re.MULTILINE)) >= len(re.findall("^[^:#\n].*\n(?=: )", page, re.MULTILINE))


@pytest.mark.parametrize(
    ("message", "remedies"),
    [
        (
            "could not leave maintenance mode: the task did not end within",
            ("stays in maintenance mode", "esxi_host_maintenance_timeout", "Recent Tasks", "run again"),
        ),
        (
            "could not enter maintenance mode: after",
            ("still in service", "power off these virtual machines", "esxi_host_maintenance_timeout", "run again"),
        ),
        (
            "could not reboot: it went down and did not return within",
            ("stays in maintenance mode", "console", "esxi_host_reboot_timeout", "run again"),
        ),
    ],
)
def test_a_host_that_takes_too_long_has_an_entry_with_its_state_and_its_option(
    message: str, remedies: tuple[str, ...]
) -> None:
    entries = re.findall(f"^TARGET: {message}.*\n(: .*)", troubleshooting.page().replace("\\", ""), re.MULTILINE)
    assert entries and all(words in entry for entry in entries for words in remedies), entries


def test_the_reasons_that_the_page_adds_are_those_of_the_code() -> None:
    code = "\n".join(path.read_text() for path in (ROOT / "plugins" / "module_utils").rglob("*.py"))
    reasons = [one.reason for one in troubleshooting.RAISING.values()] + [
        reason for _target, reason in troubleshooting.TRYING.values()
    ]
    for reason in reasons:
        assert re.sub(r" [A-Z]+\b.*", "", reason) in code, reason
    assert troubleshooting.RAISING["Started"].otherwise == STILL_RUNS


def test_refusals_of_playbooks_are_on_the_page() -> None:
    assert "Write to another file with -e discover" in troubleshooting.page().replace("\\", "")
