"""A name that contains a secret, which Ansible masks, is refused; a row of asterisks in a text is not."""

from __future__ import annotations

import pytest

from plugins.module_utils.core.masked import refuse
from plugins.module_utils.errors import Refused


@pytest.mark.parametrize(
    "value", ["esx-********", {"hosts": ["$REDACTED$01"]}, ("the host esx-******** is off",), {"name $REDACTED$x": 1}]
)
def test_partly_masked_name_or_word_is_refused(value: object) -> None:
    with pytest.raises(Refused, match="is a masked name: it contains a secret"):
        refuse(value, "gpu", "write its page")


@pytest.mark.parametrize("value", ["esx1", "the password ******** is masked", {"rows": ["*** ********* ***", 7, None]}])
def test_texts_with_separate_masks_are_accepted(value: object) -> None:
    refuse(value, "gpu", "write its page")
