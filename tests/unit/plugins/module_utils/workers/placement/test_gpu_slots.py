"""The number of vGPUs that fit."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest

from plugins.module_utils.workers.placement import gpu_slots
from plugins.module_utils.workers.placement.gpu_slots import (
    PhysicalGpu,
    Slots,
    VgpuProfile,
    fits_profile,
    is_of_model,
    parse,
)

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


def host(name: str, gigabytes: float, *offered: str, used: tuple[str, ...] = (), mixed: bool = False) -> Slots:
    return Slots((PhysicalGpu("0000:3b:00.0", name, gigabytes, used, mixed),), offered)


T4 = ("grid_t4-16c", "grid_t4-8c", "grid_t4-4c")
BLACKWELL = tuple(
    f"nvidia_rtx_pro_6000_blackwell_dc-{size}" for size in ("96c", "4-96c", "2-48c", "2-24c", "1-24c", "1-12c")
)
MOCK = replace(
    host("VMware Mockup GPU", 15.5, "mockup-vmiop-8c", "mockup-vmiop-16c"),
    described=tuple(VgpuProfile(f"mockup-vmiop-{size}c", "15ad", size) for size in (8, 16)),
)
A100 = ("grid_a100-40c", "grid_a100-10c", "grid_a100-2-10c", "grid_a100-1-5c", "grid_a100-3-20c")


@pytest.mark.parametrize(
    ("slots", "profile", "free"),
    [
        (host("Tesla T4", 15.75, *T4), "grid_t4-16c", 1),
        (host("Tesla T4", 14.75, *T4), "grid_t4-8c", 2),
        (host("Tesla T4", 15.75, *T4, used=("grid_t4-8c",)), "grid_t4-8c", 1),
        (host("Tesla T4", 15.75, *T4, used=("grid_t4-8c",)), "grid_t4-4c", 0),
        (host("Tesla T4", 15.75, *T4, used=("grid_t4-8c",), mixed=True), "grid_t4-4c", 2),
        (host("Tesla T4", 15.75, *T4), "grid_t4-2c", 0),
        (host("NVIDIA A40", 44.99, "nvidia_a40-48c", "nvidia_a40-24c"), "nvidia_a40-24c", 2),
        (host("NVIDIA A100-PCIE-40GB", 39.6, *A100), "grid_a100-10c", 4),
        (host("NVIDIA A100-PCIE-40GB", 39.6, *A100), "grid_a100-2-10c", 3),
        (host("NVIDIA A100-PCIE-40GB", 39.6, *A100), "grid_a100-1-5c", 7),
        (host("NVIDIA A100-PCIE-40GB", 39.6, *A100, used=("grid_a100-3-20c",)), "grid_a100-2-10c", 2),
        (host("NVIDIA A100-PCIE-40GB", 39.6, *A100, used=("grid_a100-40c",)), "grid_a100-1-5c", 0),
        (host("NVIDIA A100 80GB PCIe", 80, "grid_a100d-80c"), "grid_a100d-80c", 1),
        (host("NVIDIA A30", 23.5, "grid_a30-24c", "grid_a30-1-6c", used=("grid_a30-2-12c",)), "grid_a30-1-6c", 2),
        (host("Tesla T4", 15.75, "something-odd"), "something-odd", 0),
        # The mock GPU of nested ESXi, whose names do not contain the word that NVIDIA's have.
        (MOCK, "mockup-vmiop-8c", 2),
        (replace(MOCK, described=()), "mockup-vmiop-8c", 0),
        (MOCK.occupy(["mockup-vmiop-8c"]), "mockup-vmiop-8c", 1),
        (MOCK.occupy(["mockup-vmiop-8c"]), "mockup-vmiop-16c", 0),
    ],
)
def test_counts_the_free_slots_of_a_profile(slots: Slots, profile: str, free: int) -> None:
    assert slots.free(profile) == free


# NVIDIA AI Enterprise, vGPU types of Blackwell: four slices, and vGPUs that share a MIG instance in time slices.
@pytest.mark.parametrize(
    ("size", "free"), [("96c", 1), ("4-96c", 1), ("2-48c", 2), ("2-24c", 4), ("1-24c", 4), ("1-12c", 8)]
)
def test_blackwell_gpus_have_four_slices_for_shared_vgpus(size: str, free: int) -> None:
    gpu = host("NVIDIA RTX PRO 6000 Blackwell Server Edition", 95.6, *BLACKWELL)
    assert gpu.free(f"nvidia_rtx_pro_6000_blackwell_dc-{size}") == free


def test_profile_fits_only_gpus_of_its_model() -> None:
    both = Slots((PhysicalGpu("a", "Tesla T4", 16), PhysicalGpu("b", "NVIDIA A100-PCIE-40GB", 40)), (*T4, *A100))
    assert both.free("grid_t4-8c") == 2 and both.free("grid_a100-40c") == 1


def test_refuses_profiles_after_all_places_are_taken() -> None:
    slots = host("Tesla T4", 15.75, *T4)
    full = slots.take_all(["grid_t4-8c", "grid_t4-8c"])
    assert full is not None and full.free("grid_t4-8c") == 0 and full.total("grid_t4-8c") == 2
    assert slots.take_all(["grid_t4-8c"] * 3) is None


@pytest.mark.parametrize("name", ["", "grid_t4", "grid_t4-0c", "t4-16c", "grid_t4-16"])
def test_other_texts_are_not_profiles(name: str) -> None:
    assert gpu_slots.parse(name) is None


def test_parses_the_parts_of_a_profile_name() -> None:
    assert gpu_slots.parse("grid_a100-2-10c") == gpu_slots.VgpuProfile("grid_a100-2-10c", "a100", 10, 2)
    assert gpu_slots.parse("nvidia_rtxa6000-48q") == gpu_slots.VgpuProfile("nvidia_rtxa6000-48q", "rtxa6000", 48, 0)


def test_spreads_a_workers_profiles_over_gpus_that_fit() -> None:
    offered = ("nvidia_a40-48c", "nvidia_a40-24c", "nvidia_a40-12c")
    mixed = Slots(tuple(PhysicalGpu(address, "NVIDIA A40", 48.0, (), True) for address in "ab"), offered)
    assert mixed.take_all(["nvidia_a40-12c", "nvidia_a40-24c", "nvidia_a40-24c", "nvidia_a40-24c"])
    assert mixed.take_all(["nvidia_a40-12c", "nvidia_a40-24c", "nvidia_a40-24c", "nvidia_a40-48c"]) is None
    two = Slots(tuple(PhysicalGpu(address, "Tesla T4", 15.75) for address in "ab"), T4)
    spread = two.take_all(["grid_t4-4c", "grid_t4-16c", "grid_t4-4c"])
    assert spread is not None and spread.free("grid_t4-4c") == 2


def test_counts_running_profiles_of_two_sizes_per_gpu() -> None:
    one = host("Tesla T4", 15.75, *T4)
    assert one.take_all(["grid_t4-8c", "grid_t4-4c"]) is None
    full = one.occupy(["grid_t4-4c", "grid_t4-8c"])
    assert full.gpus[0].used == ("grid_t4-8c", "grid_t4-4c")
    assert [full.free(profile) for profile in T4] == [0, 0, 0]
    assert host("Tesla T4", 15.75).occupy(["grid_t4-8c"]).gpus[0].used == ()


@pytest.mark.parametrize("more", [("nvidia_a16-1c",), ("nvidia_a16-16c",), ("nvidia_a16-2c",) * 3])
def test_rejects_many_unfitting_profiles_at_once(more: tuple[str, ...]) -> None:
    offered = tuple(f"nvidia_a16-{size}c" for size in (16, 2, 1))
    many = Slots(tuple(PhysicalGpu(str(n), "NVIDIA A16", 16.0, (), True) for n in range(4)), offered)
    began = time.process_time()
    assert many.take_all([*["nvidia_a16-1c"] * 60, *["nvidia_a16-2c"] * 2]) is not None
    assert many.take_all([*["nvidia_a16-1c"] * 60, *["nvidia_a16-2c"] * 2, *more]) is None
    assert time.process_time() - began < 5


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
