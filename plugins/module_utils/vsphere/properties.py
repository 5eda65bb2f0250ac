"""Batched reads of properties, and waits for changes that the server pushes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager, suppress
from functools import partial
from typing import Any, TypeAlias

from ..errors import Failed, Unreachable
from .escaped_names import plain
from .faults import CONNECTION_ERRORS, is_caused_by, note_account, translating_faults
from .sdk import ApiObject, vim, vmodl
from .session import Session

# Properties of an object by their paths, such as those of one read.
Properties: TypeAlias = "Mapping[str, Any]"
Values = dict[str, Any]
Found = tuple[Any, Values]
# The same paths for all objects, or the paths of each kind of object.
Paths: TypeAlias = "Sequence[str] | Mapping[Any, Sequence[str]]"
PUSH_SECONDS = 10
# The states of a task that has ended.
ENDED = ("success", "error")


def id_of(ref: ApiObject) -> str:
    """Return the server's id of an object, such as vm-42; empty for None."""
    return str(ref._moId) if ref is not None else ""


def find_all(session: Session, kind: ApiObject, paths: Sequence[str]) -> list[Found]:
    """Return every object of a type in the inventory with the named properties, in one read."""
    with translating_faults(session.server, f"list its objects of kind {kind.__name__}"), _view(session, kind) as view:
        walk = vmodl.query.PropertyCollector.TraversalSpec(
            name="view", path="view", skip=False, type=vim.view.ContainerView
        )
        start = vmodl.query.PropertyCollector.ObjectSpec(obj=view, skip=True, selectSet=[walk])
        return _retrieve(session, [start], kind, paths)


@contextmanager
def _view(session: Session, kind: object) -> Iterator[ApiObject]:
    view = session.content.viewManager.CreateContainerView(session.content.rootFolder, [kind], True)
    try:
        yield view
    finally:
        _tidy(session, view.DestroyView)


def _tidy(session: Session, remove: Callable[[], None]) -> None:
    """Remove an object that ends with the session anyhow: a failure here must not hide the first error."""
    if not session.stub.silent:
        with suppress(vmodl.MethodFault, *CONNECTION_ERRORS):
            remove()


def read_many(session: Session, refs: Sequence[ApiObject], paths: Sequence[str]) -> dict[str, Values]:
    """Return the named properties of many objects of one type in one read, by object id.

    On a busy vCenter, virtual machines vanish between two reads. If several were requested, the missing ones are left
    out. An answer without any of the objects is an error: otherwise a host would seem to have no virtual machines.
    """
    left = list(refs)
    while left:
        objects = [vmodl.query.PropertyCollector.ObjectSpec(obj=ref) for ref in left]
        tried = f"read {len(left)} objects of kind {type(left[0]).__name__}"
        with translating_faults(session.server, tried):
            try:
                found = {ref._moId: values for ref, values in _retrieve(session, objects, type(left[0]), paths)}
                if not found:
                    raise Failed(session.server, tried, "its answer names none of them", "run again")
                return found
            except vmodl.fault.ManagedObjectNotFound as fault:
                rest = [ref for ref in left if ref._moId != id_of(fault.obj)]
                if not isinstance(left[0], vim.VirtualMachine) or len(refs) == 1 or len(rest) == len(left):
                    raise
                left = rest
    return {}


def by_type(refs: Iterable[ApiObject]) -> list[list[ApiObject]]:
    """Return objects of several types as lists of one type, for ``read_many``, each object once."""
    found: dict[type, dict[str, ApiObject]] = {}
    for ref in refs:
        found.setdefault(type(ref), {})[ref._moId] = ref
    return [list(alike.values()) for alike in found.values()]


def read_linked(
    session: Session, refs: Sequence[ApiObject], link: str, kind: object, paths: Sequence[str]
) -> list[Found]:
    """Return the named properties of the objects that a property of other objects refers to, in one read."""
    if not refs:
        return []
    step = vmodl.query.PropertyCollector.TraversalSpec(name=link, path=link, skip=False, type=type(refs[0]))
    objects = [vmodl.query.PropertyCollector.ObjectSpec(obj=ref, skip=True, selectSet=[step]) for ref in refs]
    with translating_faults(session.server, f"read the {link} of {len(refs)} objects of kind {type(refs[0]).__name__}"):
        return _retrieve(session, objects, kind, paths)


def _retrieve(session: Session, objects: list[ApiObject], kind: object, paths: Sequence[str]) -> list[Found]:
    collector = session.content.propertyCollector
    page = collector.RetrievePropertiesEx(
        [_filter(objects, kind, paths)], vmodl.query.PropertyCollector.RetrieveOptions()
    )
    found: list[Found] = []
    while page is not None:
        for entry in page.objects:
            for missing in entry.missingSet or []:
                note_account(missing.fault, session.params["username"])
                raise missing.fault
            found.append((entry.obj, {item.name: _value(entry.obj, item) for item in entry.propSet}))
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None
    return found


def _value(ref: ApiObject, item: ApiObject) -> ApiObject:
    """Return the value of one property; a name as users write it, whatever the server's form."""
    return plain(item.val) if item.name == "name" and isinstance(ref, vim.ManagedEntity) and item.val else item.val


def _filter(objects: list[ApiObject], kind: object, paths: Paths) -> ApiObject:
    by_kind = paths if isinstance(paths, Mapping) else {kind: paths}
    spec = vmodl.query.PropertyCollector.PropertySpec
    desired = [spec(type=one, all=False, pathSet=list(its_paths)) for one, its_paths in by_kind.items()]
    return vmodl.query.PropertyCollector.FilterSpec(objectSet=objects, propSet=desired)


def watch(
    session: Session,
    refs: Sequence[ApiObject],
    paths: Paths,
    deadline: float,
    every: float = PUSH_SECONDS,
    *,
    removable: ApiObject = (),
) -> Iterator[dict[str, Values]]:
    """Yield the values of the objects: now, after each change, and after ``every`` seconds without a change.

    A task that has ended keeps its values, because a busy server forgets it within minutes. An object of a
    ``removable`` type loses its entry if it is removed; any other removed object is an error.
    """
    values: dict[str, Values] = {ref._moId: {} for ref in refs}
    may_go = partial(_may_go, values, removable)
    with closing(_Feed(session, refs, paths, may_go)) as feed:
        while (left := deadline - time.monotonic()) > 0:
            update = feed.next(min(left, every))
            if update is not None:
                _merge(values, update, may_go)
            yield values


def _may_go(values: dict[str, Values], removable: ApiObject, ref: ApiObject) -> bool:
    """Return whether the watch goes on without this object, which the server no longer has."""
    if values.get(ref._moId, {}).get("info.state") in ENDED:
        return True
    if isinstance(ref, removable):
        values.pop(ref._moId, None)
        return True
    return False


class _Feed:
    """The server's updates about some objects: all values, then changes; None if nothing changed for a while."""

    def __init__(
        self, session: Session, refs: Sequence[ApiObject], paths: Paths, may_go: Callable[[object], bool]
    ) -> None:
        self._session, self._refs, self._may_go = session, list(refs), may_go
        self._filter = partial(_filter, kind=type(refs[0]), paths=paths)
        self._version = ""
        self._subscribe()

    def next(self, seconds: float) -> ApiObject:
        """Return the next answer; if it is lost, or if an object is gone, subscribe again, but only once."""
        try:
            return self._ask(seconds)
        except Unreachable:
            pass
        except Failed as error:
            if not self._goes_on(error):
                raise
        # The server does not repeat the content of a lost answer: a new subscription begins with all values.
        self.close()
        self._subscribe()
        return self._ask(seconds)

    def close(self) -> None:
        _tidy(self._session, self._collector.DestroyPropertyCollector)

    def _ask(self, seconds: float) -> object:
        # The server must answer well before the connection times out.
        longest = min(seconds, self._session.params["timeout"] / 2)
        options = vmodl.query.PropertyCollector.WaitOptions(maxWaitSeconds=max(1, int(longest)))
        with translating_faults(self._session.server, "wait for changes"):
            update = self._collector.WaitForUpdatesEx(self._version, options)
        self._version = update.version if update is not None else self._version
        return update

    def _subscribe(self) -> None:
        """Subscribe with a new collector, so that two waits of one session do not mix."""
        with translating_faults(self._session.server, "watch objects"):
            self._collector, self._version = self._session.content.propertyCollector.CreatePropertyCollector(), ""
        while self._refs:
            objects = [vmodl.query.PropertyCollector.ObjectSpec(obj=ref) for ref in self._refs]
            try:
                with translating_faults(self._session.server, "watch objects"):
                    # Complete properties, not only changed parts: a part arrives under another name and would be lost.
                    self._collector.CreateFilter(self._filter(objects), partialUpdates=False)
                return
            except Failed as error:
                if not self._goes_on(error):
                    raise

    def _goes_on(self, error: Failed) -> bool:
        """Return whether the error is about an object that may be gone, which is not watched any more."""
        gone = getattr(error.__cause__, "obj", None)
        if not is_caused_by(error, vmodl.fault.ManagedObjectNotFound) or gone is None or not self._may_go(gone):
            return False
        before = len(self._refs)
        self._refs = [ref for ref in self._refs if ref._moId != gone._moId]
        return len(self._refs) < before


def _merge(values: dict[str, Values], update: ApiObject, may_go: Callable[[object], bool]) -> None:
    for filtered in update.filterSet:
        for changed in filtered.objectSet or []:
            if changed.kind == "leave":
                if may_go(changed.obj):
                    continue
                raise Failed(changed.obj._moId, "watch it", "it was removed meanwhile", "run again")
            for change in changed.changeSet or []:
                values[changed.obj._moId][change.name] = _value(changed.obj, change)
