"""Equal requirements have one environment, and a conflict is named with the versions of the stack."""

from __future__ import annotations

import pytest

from plugins.module_utils.training.launch.requirements import cause, constraints, key

STACK = {"torch": "2.5.1+cu121", "numpy": "1.26.4", "Pillow_Simd": "9"}


def test_packages_python_and_text_make_the_key() -> None:
    keys = {
        key("rich", STACK, "/p", "", ""),
        key("rich==14", STACK, "/p", "", ""),
        key("rich", {**STACK, "numpy": "2"}, "/p", "", ""),
        key("rich", STACK, "/q", "", ""),
    }
    assert len(keys) == 4
    assert key("rich", dict(reversed(STACK.items())), "/p", "other", "/other") in keys, "the code does not count"


REFERRING = (
    *("./wheel.whl", "rich\n-r more.txt", "x @ file:///y", "-e .", "a-1.whl", "--find-links wheels\nx", "..[all]"),
    *("--find-links=./wheels\nx", "wheels/x-1-py3-none-any.whl # note", "wheels/x.whl ; python_version > '3'"),
    *("x.whl # note", "X-1.WHL", "x-1.tar.gz; marker", "--requirement=more.txt", "rich \\\n  -c more.txt", "sub/"),
    *("x @ ./x", "x-1.tgz", "rich --config-settings=dir=wheels", "--extra-index-url=file:///w", "C:\\x", "-rmore"),
    *("${WHEELS}/x", "-f wheels\nx"),
)
PLAIN = (
    *("rich", "rich==14 # note", "# -r more.txt", "rich[all,more] >=1, <2 ; python_version > '3'", "a.b-c_d~=1.0", ""),
    *("rich @ https://example.com/rich-1.whl", "--index-url https://example.com/simple", "-i https://example.com/s"),
    *("--no-index", "--pre\nrich", "--no-binary :all:", "rich==14 \\\n    --hash=sha256:ab \\\n    --hash=sha256:cd"),
)


@pytest.mark.parametrize("text", PLAIN)
def test_the_key_ignores_code_if_text_decides(text: str) -> None:
    assert key(text, STACK, "/p", "one", "/one") == key(text, STACK, "/p", "two", "/two")


@pytest.mark.parametrize("text", REFERRING)
def test_the_key_includes_code_that_requirements_refer_to(text: str) -> None:
    assert key(text, STACK, "/p", "one", "/one") != key(text, STACK, "/p", "two", "/two")


@pytest.mark.parametrize(
    "text", ["-e .", "rich\n  --editable=./lib  # mine\n", "--editable \\\n  .", "-e.", "-e git+https://x/y"]
)
def test_runs_with_editable_requirements_share_no_installation(text: str) -> None:
    """The second run would import the package from the folder of the first one, and write beside it."""
    assert key(text, STACK, "/p", "same", "/runs/one/work") != key(text, STACK, "/p", "same", "/runs/two/work")


def test_runs_with_equal_folders_share_an_installation() -> None:
    assert key(".\nrich", STACK, "/p", "same", "/runs/one/work") == key(
        ".\nrich", STACK, "/p", "same", "/runs/two/work"
    )


def test_the_stack_becomes_constraints() -> None:
    assert constraints(STACK) == "Pillow_Simd==9\nnumpy==1.26.4\ntorch==2.5.1+cu121\n"


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("", "pip printed nothing"),
        ("killed\n", "killed"),
        (
            "The user requested numpy>=2\nERROR: Cannot install numpy>=2\nERROR: ResolutionImpossible\n",
            "ERROR: Cannot install numpy>=2 ERROR: ResolutionImpossible (the stack has numpy 1.26.4)",
        ),
        ("ERROR: No pillow-simd==8", "ERROR: No pillow-simd==8 (the stack has Pillow_Simd 9)"),
    ],
)
def test_explains_a_conflict_with_the_stacks_versions(printed: str, expected: str) -> None:
    assert cause(printed, STACK) == expected
