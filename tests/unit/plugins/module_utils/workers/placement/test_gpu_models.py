"""Models of GPUs match in the spellings of vCenter, the PCI database and vGPU profiles."""

from __future__ import annotations

import pytest

from plugins.module_utils.workers.placement.gpu_slots import fits_profile, is_of_model, parse

# Names from nvidia-smi, vCenter and the PCI database.
NAMES = {
    "a10": ["NVIDIA A10", "GA102GL [A10]"],
    "a100": ["NVIDIA A100-PCIE-40GB", "NVIDIA A100 80GB PCIe", "GA100 [A100 SXM4 40GB]"],
    "a16": ["NVIDIA A16", "GA107GL [A2 / A16]"],
    "h100": ["NVIDIA H100 80GB HBM3", "GH100 [H100 PCIe]"],
    "h200": ["NVIDIA H200"],
    "l4": ["NVIDIA L4", "AD104GL [L4]"],
    "l40": ["NVIDIA L40", "AD102GL [L40]"],
    "l40s": ["NVIDIA L40S", "AD102GL [L40S]"],
    "t4": ["Tesla T4", "TU104GL [Tesla T4]"],
    "rtxa6000": ["NVIDIA RTX A6000", "GA102GL [RTX A6000]"],
    "rtx6000-ada": ["NVIDIA RTX 6000 Ada Generation"],
    "b200": ["NVIDIA B200", "GB100 [B200]"],
    "rtxpro6000": ["NVIDIA RTX PRO 6000 Blackwell Server Edition", "GB202GL [RTX PRO 6000 Blackwell Server Edition]"],
}


@pytest.mark.parametrize("model", NAMES)
def test_a_name_matches_only_its_model(model: str) -> None:
    for other, names in NAMES.items():
        for name in names:
            assert is_of_model(name, model) == (other == model), (name, model)


@pytest.mark.parametrize("text", ["T4", "Tesla T4", "tesla t4"])
def test_accepts_a_longer_gpu_model_name(text: str) -> None:
    assert is_of_model("Tesla T4", text) and not is_of_model("Tesla T40", text)
    assert not is_of_model("Tesla T4", "")


# NVIDIA vGPU software documentation, the profiles of each GPU.
@pytest.mark.parametrize(
    ("profile", "model", "gigabytes", "slices"),
    [
        ("grid_t4-16c", "t4", 16, 0),
        ("grid_p40-24q", "p40", 24, 0),
        ("nvidia_a16-4c", "a16", 4, 0),
        ("grid_a100-2-10c", "a100", 10, 2),
        ("grid_a100d-80c", "a100", 80, 0),
        ("grid_a100-1-5cme", "a100", 5, 1),
        ("nvidia_h100xm-80c", "h100", 80, 0),
        ("nvidia_h100-1-10c", "h100", 10, 1),
        ("nvidia_l40s-48q", "l40s", 48, 0),
        ("nvidia_l4-24q", "l4", 24, 0),
        ("nvidia_rtxa6000-48q", "rtxa6000", 48, 0),
        ("nvidia_rtx6000-ada-48q", "rtx6000-ada", 48, 0),
        ("nvidia_rtx_pro_6000_blackwell_dc-96q", "rtxpro6000", 96, 0),
        ("nvidia_rtx_pro_6000_blackwell_dc-4-96q", "rtxpro6000", 96, 4),
    ],
)
def test_profiles_of_all_families_fit_their_gpus(profile: str, model: str, gigabytes: int, slices: int) -> None:
    found = parse(profile)
    assert found is not None and (found.gigabytes, found.slices) == (gigabytes, slices)
    fitting = {other for other, names in NAMES.items() if all(fits_profile(name, found.model) for name in names)}
    assert fitting == ({model} if model in NAMES else set())
