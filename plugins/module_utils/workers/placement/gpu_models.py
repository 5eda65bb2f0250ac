# Copyright: (c) 2026, dml.vsphere contributors
# Simplified BSD License (see licenses/BSD-2-Clause.txt or https://opensource.org/licenses/BSD-2-Clause)
"""Models of GPUs, compared whole: an A10 is no A100, an L40 no L40S."""

from __future__ import annotations

import re

_PARTS = re.compile(r"[a-z]+|[0-9]+")
# Profiles tell forms of a model by letters that the name of the GPU does not bear: grid_a100d-80c, nvidia_h100xm-80c.
_FORM = re.compile(r"(.*[0-9])(?:d|dx|x|xm|xl|l|gl)")


def is_of_model(name: str, model: str) -> bool:
    """Whether a GPU of that name, such as NVIDIA A100-PCIE-40GB, is of a model, such as A100 or Tesla T4."""
    wanted = "".join(_PARTS.findall(model.lower()))
    return bool(wanted) and wanted in _runs(name.lower())


def fits_profile(name: str, model: str) -> bool:
    """The same for the model in the name of a vGPU profile, such as a100d or rtx6000-ada."""
    form = _FORM.fullmatch(model.lower())
    return is_of_model(name, model) or (form is not None and is_of_model(name, form[1]))


def _runs(name: str) -> set[str]:
    """The neighbouring parts of a name joined in all ways that neither begin nor end within a word."""
    parts = list(_PARTS.finditer(name))
    begins = [i for i, one in enumerate(parts) if not (i and parts[i - 1].end() == one.start())]
    ends = [i for i, one in enumerate(parts) if i + 1 == len(parts) or parts[i + 1].start() != one.end()]
    return {"".join(one[0] for one in parts[i : j + 1]) for i in begins for j in ends if i <= j}
