"""Names that contain a secret: Ansible masks them in results, and files made from these results are wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from ..errors import Refused

# Ansible's masks for secrets: the first one before ansible-core 2.22, the second one since then.
MASKS = ("********", "$REDACTED$")
REMEDY = "choose a password that is not a part of a name or a word"
_ANY = "|".join(map(re.escape, MASKS))
# A mask next to letters. A separate mask or row of asterisks in a text may be intended.
_PART = re.compile(rf"[^\W_][._-]?(?:{_ANY})(?!\*)|(?<!\*)(?:{_ANY})[._-]?[^\W_]")


def masked_names(value: object) -> Iterator[str]:
    """Yield the names with a masked part in nested data; a longer text may contain asterisks."""
    for text in texts(value):
        if " " not in text and any(mask in text for mask in MASKS):
            yield text


def masked_words(value: object) -> Iterator[str]:
    """Yield the names with a masked part in nested data, and the partly masked words of longer texts."""
    yield from masked_names(value)
    for text in texts(value):
        if " " in text and _PART.search(text):
            yield from filter(_PART.search, text.split())


def refuse(value: object, target: str, tried: str) -> None:
    """Refuse nested data with a partly masked name or word: a page or file made from it would be wrong."""
    if wrong := next(masked_words(value), ""):
        cause = f"{wrong} is a masked name: it contains a secret, such as the password"
        raise Refused(target, tried, cause, REMEDY)


def contains(value: object, secret: str) -> bool:
    """Return whether a text in nested data contains a secret, so that Ansible would mask a part of it."""
    return bool(secret) and any(secret in text for text in texts(value))


def texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from (text for pair in value.items() for part in pair for text in texts(part))
    elif isinstance(value, (list, tuple)):
        yield from (text for part in value for text in texts(part))
