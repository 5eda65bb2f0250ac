"""The name of a template that is made of an item differs from those that people give."""

from __future__ import annotations

import pytest

from plugins.module_utils.vsphere.libraries import LibraryItem
from plugins.module_utils.workers.library_templates import is_made_of_item, template_name

ITEM = LibraryItem("images", "dlvm", "1b6f0c02-9d8e", "ovf", "2", is_subscribed=False, cached=True)


@pytest.mark.parametrize("cluster", ["gpu", "GPU cluster 1", "a" * 80])
def test_names_of_made_templates_are_recognised(cluster: str) -> None:
    assert is_made_of_item(template_name(cluster, ITEM))


@pytest.mark.parametrize("name", ["dml-ubuntu24", "dml-gpu-mine", "ubuntu-24-1b6f0c02-v2"])
def test_names_that_people_give_are_not(name: str) -> None:
    assert not is_made_of_item(name)
