"""Output of programs is JSON, no text at all, or data that Ansible has read already."""

from __future__ import annotations

import pytest

from plugins.module_utils.core.json_values import parse_json


@pytest.mark.parametrize(
    ("value", "data"), [('{"a": [1]}', {"a": [1]}), (" \n", None), ({"a": 1}, {"a": 1}), (None, None)]
)
def test_parse_reads_text_and_keeps_data(value: object, data: object) -> None:
    assert parse_json(value) == data
