"""Models of GPUs, compared by complete name parts: an A10 does not match an A100, nor an L40 an L40S."""

from __future__ import annotations

import re

_PARTS = re.compile(r"[a-z]+|[0-9]+")
# Profiles mark variants of a model with letters that a GPU's name does not have: grid_a100d-80c, nvidia_h100xm-80c,
# nvidia_rtx_pro_6000_blackwell_dc-96c.
_FORM = re.compile(r"(.*[0-9])(?:d|dx|x|xm|xl|l|gl)|(.*)_dc")


def is_of_model(name: str, model: str) -> bool:
    """Return whether a GPU's name, such as NVIDIA A100-PCIE-40GB, matches a model, such as A100 or Tesla T4."""
    desired = "".join(_PARTS.findall(model.lower()))
    return bool(desired) and desired in _runs(name.lower())


def fits_profile(name: str, model: str) -> bool:
    """Return whether a GPU's name matches the model in a vGPU profile, such as a100d or rtx6000-ada."""
    form = _FORM.fullmatch(model.lower())
    return is_of_model(name, model) or (form is not None and is_of_model(name, form[1] or form[2]))


def _runs(name: str) -> set[str]:
    """Return the adjacent parts of a name, joined in all ways that start and end at a word boundary."""
    parts = list(_PARTS.finditer(name))
    begins = [i for i, part in enumerate(parts) if not (i and parts[i - 1].end() == part.start())]
    ends = [i for i, part in enumerate(parts) if i + 1 == len(parts) or parts[i + 1].start() != part.end()]
    return {"".join(part[0] for part in parts[i : j + 1]) for i in begins for j in ends if i <= j}
