# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""The failed tests of DCGM's short diagnostic, from the JSON of ``dcgmi diag -r 1 -j``.

DCGM 4 names the GPU (``entity_id``) and the severity of an error; DCGM 3 has neither the severity nor one form of the
number: ``gpu_id`` or ``gpu_ids``. Its source has the fields: https://github.com/NVIDIA/DCGM.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from ..core.json_values import mapping, objects, parse_json
from ..core.names import printable

ROOTS = ("DCGM Diagnostic", "DCGM GPU Diagnostic")
# dcgm_errors.h: the severities of errors for which a GPU must leave its jobs, be reset or be examined.
_SICK = (2, 4, 6)
_LONGEST = 300
_NUMBERS = ("entity_id", "gpu_id", "gpu_ids")


class FailedTest(NamedTuple):
    """A test that a GPU did not pass; ``gpu`` is its number for DCGM, and ``is_sick`` says that no job may use it."""

    gpu: str
    name: str
    text: str
    is_sick: bool


def failed_tests(text: str) -> list[FailedTest] | None:
    """Return the failed tests of all GPUs; None if the text is not the result of a diagnostic."""
    try:
        found = parse_json(text[text.find("{") :])
    except (ValueError, RecursionError):
        return None
    roots = (mapping(mapping(found).get(name)) for name in ROOTS)
    root = next(filter(None, roots), {})
    if not root:
        return None
    return list(_failed(root))


def _failed(root: Mapping[str, Any]) -> Iterator[FailedTest]:
    for category in objects(root.get("test_categories")):
        for test in objects(category.get("tests")):
            for result in objects(test.get("results")):
                if str(result.get("status")).lower() == "fail":
                    yield _of_result(str(test.get("name")), result)


def _of_result(name: str, result: Mapping[str, Any]) -> FailedTest:
    # DCGM 3 has texts in this list.
    given = result.get("warnings")
    warnings = [mapping(each) or {"warning": each} for each in given] if isinstance(given, list) else []
    words = "; ".join(" ".join(str(each.get("warning")).split()) for each in warnings) or "without a reason"
    number = next((result[key] for key in _NUMBERS if result.get(key) is not None), "unknown")
    is_sick = any(each.get("error_severity") in _SICK for each in warnings)
    return FailedTest(printable(str(number)), printable(name), printable(words[:_LONGEST]), is_sick)
