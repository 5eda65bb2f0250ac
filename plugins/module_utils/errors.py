"""The errors of the collection: each is a sentence with the object, the action, the reported cause and the remedy."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


class CollectionError(Exception):
    """Base of all expected failures."""

    def __init__(self, target: str, tried: str, reason: str, remedy: str = "") -> None:
        self.target, self.tried, self.reason, self.remedy = target, tried, reason, remedy
        sentence = f"{target}: could not {tried}: {reason.rstrip('.')}"
        super().__init__(one_line(f"{sentence}; {remedy}" if remedy else sentence))

    def about(self, target: str) -> CollectionError:
        """Return the same error with its object, which a planner may not know."""
        if target in self.target:
            return self
        return type(self)(f"{target}: {self.target}", self.tried, self.reason, self.remedy)


class WholeError(CollectionError):
    """An error with a complete text, such as that of a failed module."""

    def __init__(self, text: str, target: str = "") -> None:
        super().__init__(target, "", text)

    def __str__(self) -> str:
        return "\n".join(map(one_line, self.reason.split("\n")))


def one_line(text: str) -> str:
    """Return a text without line breaks and terminal control characters: the text may come from a node or a file."""
    return "".join(sign if sign.isprintable() else " " if sign.isspace() else "?" for sign in text)


def os_words(error: OSError, path: str) -> str:
    """Return the file and the message of a system error; a failed write names no file, so ``path`` replaces it."""
    return f"{error.filename or path}: {error.strerror or error}"


class SeveralErrors(CollectionError):
    """Errors of several objects in one change: a sentence for each reason, and a note that applies to all of them."""

    def __init__(self, errors: Sequence[CollectionError], note: str) -> None:
        first = errors[0]
        super().__init__(first.target, first.tried, first.reason, first.remedy)
        self.errors, self.note = tuple(errors), note

    def __str__(self) -> str:
        return f"{summary(self.errors)}; {self.note}"

    def about(self, _target: str) -> CollectionError:
        """Return this error; each of its sentences names its objects."""
        return self


def summary(errors: Iterable[CollectionError]) -> str:
    """Return all errors as one text; objects with the same error share a sentence."""
    whole: list[str] = []
    targets: dict[tuple[str, str, str, str], list[str]] = {}
    for error in errors:
        if isinstance(error, (SeveralErrors, WholeError)):
            whole.append(str(error))
            continue
        name, _colon, part = error.target.partition(": ")
        targets.setdefault((part, error.tried, error.reason, error.remedy), []).append(name)
    shared = (
        str(CollectionError(", ".join(dict.fromkeys(named)) + (f": {part}" if part else ""), *words))
        for (part, *words), named in targets.items()
    )
    return " | ".join(dict.fromkeys((*whole, *shared)))


class NotFound(CollectionError):
    """No object, or more than one, has the name."""


class Refused(CollectionError):
    """The request is impossible; nothing was written."""


class Unreachable(CollectionError):
    """The server or a host does not answer."""


class NotConnected(Unreachable):
    """No session with the server could be opened, so nothing was changed: the call can be repeated."""


class Failed(CollectionError):
    """The server refused or failed an operation."""


class TimedOut(CollectionError):
    """A deadline passed."""


class Abandoned(CollectionError):
    """The run that started the module has ended, so the module starts nothing more."""


class StillDiffers(CollectionError):
    """The server accepted a change and yet shows the old state."""
