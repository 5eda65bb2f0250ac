"""The packages that a training program needs in addition to the stack: the key of their environment, and conflicts."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping

# The only lines whose text alone decides what pip installs: a name with versions, extras and a marker, or a URL, and
# options without files. Any other line may refer to a file, in one of the many forms that pip accepts.
_URL = r"https?://\S+"
_NAMED = re.compile(rf"(?P<name>[A-Za-z0-9][\w.-]*) ?(\[[\w ,.-]*\] ?)?(\(?[<>=!~][^;@/\\$]*|@ ?{_URL} ?)?(;.*)?")
_HASH = re.compile(r" --hash[= ]\S+")
_OPTION = re.compile(
    rf"(-i|--index-url|--extra-index-url|-f|--find-links)[= ]{_URL}"
    r"|--(no-index|pre|prefer-binary|require-hashes)"
    r"|--(no-binary|only-binary|use-feature|trusted-host)[= ][\w.:,-]+"
)
# A name that ends like an archive is a file if it exists.
_ARCHIVE = re.compile(r"\.(whl|zip|egg|tar|t[gblx]z2?|tar\.(gz|bz2|xz|lz|lzma|zst))", re.IGNORECASE)
_COMMENT = re.compile(r"(^|\s)#.*")


def key(text: str, stack: Mapping[str, str], python: str, code: str, folder: str) -> str:
    """Return the name of the environment; ``code`` counts if the text may refer to files of the folder.

    The ``folder`` of the run counts if a package is used in it, without a copy.
    """
    parts = [text, dict(sorted(stack.items())), python, code if refers_to_files(text) else ""]
    parts += [folder] if is_editable(text) else []
    return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def refers_to_files(text: str) -> bool:
    """Return whether a requirements file may refer to files, whose content is not part of the text."""
    return any(line and not _is_self_contained(_HASH.sub("", line)) for line in _lines(text))


def is_editable(text: str) -> bool:
    """Return whether pip installs a package in a way that its files stay in the folder of the run."""
    return any(line.startswith(("-e", "--editable")) for line in _lines(text))


def _lines(text: str) -> Iterator[str]:
    joined = re.sub(r"\\\r?\n", " ", text)
    return (" ".join(_COMMENT.sub("", line).split()) for line in joined.splitlines())


def _is_self_contained(line: str) -> bool:
    named = _NAMED.fullmatch(line)
    if named and " -" not in line:
        return not _ARCHIVE.search(named["name"])
    return bool(_OPTION.fullmatch(line))


def constraints(stack: Mapping[str, str]) -> str:
    """Return the packages of the stack as constraints for pip."""
    return "".join(f"{name}=={version}\n" for name, version in sorted(stack.items()))


def cause(printed: str, stack: Mapping[str, str]) -> str:
    """Return the errors of pip, with the versions in the stack of the packages that they name."""
    lines = [line.strip() for line in printed.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR:")] or lines[-1:]
    text = " ".join(errors) or "pip printed nothing"
    words = {_plain(word) for word in re.findall(r"[A-Za-z0-9][\w.-]*", "\n".join(lines))}
    named = [f"{name} {version}" for name, version in sorted(stack.items()) if _plain(name) in words]
    return f"{text} (the stack has {', '.join(named)})" if named else text


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
