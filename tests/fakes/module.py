"""The part of AnsibleModule that the runner uses, and a subject that logs its writes and can misbehave."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.errors import CollectionError
from plugins.module_utils.plan import Plan


class FakeModule:
    """Keeps how the module ended; has nothing that a body should not touch."""

    def __init__(self, *, check_mode: bool = False, **params: Any) -> None:
        self.check_mode, self.params = check_mode, params
        self.ended: list[tuple[str, dict[str, Any]]] = []
        self.warned: list[str] = []

    def exit_json(self, **result: Any) -> None:
        self.ended.append(("exit", result))

    def fail_json(self, msg: str, **result: Any) -> None:
        self.ended.append(("fail", {"msg": msg, **result}))

    def warn(self, text: str) -> None:
        self.warned.append(text)


class FakeSubject:
    """A dict that can be configured; ``deaf`` accepts and keeps nothing, the errors are raised where they are named."""

    name = "settings"

    def __init__(
        self,
        target: str,
        state: dict[str, Any],
        *,
        deaf: bool = False,
        on_read: CollectionError | None = None,
        on_apply: CollectionError | None = None,
    ) -> None:
        self.target, self.state, self.deaf = target, dict(state), deaf
        self.on_read, self.on_apply = on_read, on_apply
        self.writes: list[dict[str, Any]] = []

    def read(self) -> dict[str, Any]:
        if self.on_read:
            raise self.on_read
        return dict(self.state)

    def apply(self, plan: Plan) -> None:
        if self.on_apply:
            raise self.on_apply
        self.writes.append({change.key: change.after for change in plan.due})
        if not self.deaf:
            self.state.update(self.writes[-1])
