# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Fingerprints of keys, held against those that GnuPG told when it made the keys."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plugins.module_utils.logic.nodes.openpgp import fingerprints, key_misfits

# An RSA key with a subkey, armored, and a key on a curve.
RSA = (Path(__file__).parents[5] / "fixtures" / "keys" / "rsa.asc").read_bytes()
RSA_PRINT = "90976ACABB3CA1B1E7625F5B23014A35C74E6E2C"
CURVE = base64.b64decode(
    "mDMEawG+LRYJKwYBBAHaRw8BAQdA12bXxWo0RlKeY4OmsYufqPxBOHAllsU3XDdpNLe/wvO0ElJl"
    "cG9zaXRvcnkgZWQyNTUxOYiQBBMWCAA4FiEEbmDj6+YS6UndaRwnwCv1SfGuV0sFAmsBvi0CGwMF"
    "CwkIBwIGFQoJCAsCBBYCAwECHgECF4AACgkQwCv1SfGuV0tdmQD/Rvmb/URT3ImOtrkBbfVbu3ga"
    "Y/299tLcJtJN3ejmO4gBAPrWnPxnl8ftWnJsOSVjNRGWLU7/MIP+h6NAmKvfViMP"
)
CURVE_PRINT = "6E60E3EBE612E949DD691C27C02BF549F1AE574B"
ARMORED_CURVE = (
    b"-----BEGIN PGP PUBLIC KEY BLOCK-----\r\nComment: x\r\n\r\n"
    + base64.encodebytes(CURVE).replace(b"\n", b"\r\n")
    + b"=AAAA\r\n-----END PGP PUBLIC KEY BLOCK-----\r\n"
)


def encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


@pytest.mark.parametrize(
    ("content", "prints"),
    [
        (RSA, [RSA_PRINT]),
        (CURVE, [CURVE_PRINT]),
        (ARMORED_CURVE, [CURVE_PRINT]),
        (RSA + ARMORED_CURVE, [RSA_PRINT, CURVE_PRINT]),
        (CURVE + CURVE, [CURVE_PRINT, CURVE_PRINT]),
        (b"<html>404 Not Found</html>", []),
        (b"", []),
        (CURVE[:1], []),
        (RSA.replace(b"\n\nm", b"\n\n!"), []),
    ],
)
def test_every_primary_key_in_a_file_is_found(content: bytes, prints: list[str]) -> None:
    assert fingerprints(encoded(content)) == prints


def test_the_right_key_is_taken_however_its_fingerprint_is_written() -> None:
    spaced = " ".join(RSA_PRINT[at : at + 4] for at in range(0, 40, 4)).lower()
    assert key_misfits(encoded(RSA), "site", spaced) == []


def test_another_key_and_a_second_key_are_refused_and_named() -> None:
    assert key_misfits(encoded(RSA), "site", CURVE_PRINT) == [f"The key site is {RSA_PRINT}, not {CURVE_PRINT}."]
    both = key_misfits(encoded(RSA + ARMORED_CURVE), "site", RSA_PRINT)
    assert both == [f"The key site is {RSA_PRINT} and {CURVE_PRINT}, not {RSA_PRINT}."]
    assert key_misfits(encoded(b"lost"), "site", RSA_PRINT) == [f"The key site is no OpenPGP key, not {RSA_PRINT}."]


@given(st.binary(max_size=64), st.integers(0, len(CURVE)))
def test_no_bytes_break_it(noise: bytes, cut: int) -> None:
    for content in (noise, CURVE[:cut] + noise, noise + CURVE[cut:]):
        assert all(len(one) == 40 for one in fingerprints(encoded(content)))
