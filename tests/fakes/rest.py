"""vCenter's REST API without a server: the image of one cluster and its drafts."""

from __future__ import annotations

from typing import Any

from plugins.module_utils.errors import Failed
from plugins.module_utils.vsphere.forms import ANY, misfit

CLUSTER = "/api/esx/settings/clusters/domain-c1"


class FakeRest:
    """Answers as plugins.module_utils.vsphere.rest.Rest does."""

    server = "vcenter.lab:443"

    def __init__(self, *, managed: bool = True, **components: str) -> None:
        self.managed, self.components = managed, dict(components)
        self.parts: dict[str, Any] = {"base_image": {"version": "8.0.3-0.0"}}
        self.draft: dict[str, str] | None = None
        self.hosts: dict[str, dict[str, str]] = {}
        self.check_statuses: list[dict[str, Any]] = []
        self.applied: dict[str, Any] = {}
        self.tasks: dict[str, dict[str, Any]] = {}
        self.policy: dict[str, Any] = {}
        self.deaf = False
        self.compliance = "NON_COMPLIANT"
        self.errors: list[str] = []
        self.fails = ""
        self.writes: list[tuple[str, str]] = []

    def get(self, path: str, *, tried: str, remedy: str = "", form: Any = ANY) -> Any:
        answer = self._answer(path)
        assert misfit(answer, form) == ""
        return answer

    def _answer(self, path: str) -> Any:
        if path == f"{CLUSTER}/enablement/software":
            return {"enabled": self.managed}
        if path == f"{CLUSTER}/policies/apply/effective":
            return self.policy
        assert path == f"{CLUSTER}/software"
        components = {name: {"version": version, "details": {}} for name, version in self.components.items()}
        return {**self.parts, "components": components}

    def find(self, path: str, *, tried: str, form: Any = ANY) -> Any:
        if path.startswith("/api/cis/tasks/"):
            return self.tasks[path.rpartition("/")[2]]
        assert path == f"{CLUSTER}/software/compliance"
        return {"status": self.compliance, "hosts": self.hosts} if self.compliance else None

    def send(self, verb: str, path: str, body: Any = None, *, tried: str, remedy: str = "", form: Any = ANY) -> Any:
        if path == "/api/cis/tasks?action=list":
            assert body["filter_spec"]["services"]
            return {name: {key: task[key] for key in task if key != "result"} for name, task in self.tasks.items()}
        self._log(verb, path, tried)
        if verb == "POST":
            if self.draft is not None:
                raise Failed(self.server, tried, "the server said 400 NOT_ALLOWED_IN_CURRENT_STATE", remedy)
            self.draft = dict(self.components)
            return "7"
        if verb == "DELETE":
            self.draft = None
        elif verb == "PUT":
            self.parts[path.rpartition("/")[2].replace("-", "_")] = body
        elif self.draft is not None:
            self.draft.update(body["components_to_set"])
            for name in body["components_to_delete"]:
                del self.draft[name]
        return None

    def task(self, path: str, body: Any = None, *, tried: str, seconds: float, form: Any = ANY, **query: str) -> Any:
        if query["action"] == "scan":
            return {"hosts": self.hosts}
        if query["action"] == "check":
            return {"status": "OK", "entity_results": [{"check_statuses": self.check_statuses}]}
        self._log(query["action"], path, tried)
        if query["action"] == "apply":
            return self._apply(body["hosts"], query["report"])
        if query["action"] == "validate":
            errors = [{"message": {"id": "x", "default_message": text}} for text in self.errors]
            return {"notifications": {"errors": errors}}
        if not self.deaf and self.draft is not None:
            self.components = self.draft
        self.draft = None
        return None

    def _apply(self, hosts: list[str], report: Any) -> Any:
        report({"status": "RUNNING", "progress": {"total": 4, "completed": 1}})
        if self.applied:
            return self.applied
        for moid in hosts:
            if not self.deaf:
                self.hosts[moid] = {"status": "COMPLIANT", "impact": "NO_IMPACT"}
        return {"failed_hosts": [], "host_status": {moid: {"status": "OK"} for moid in hosts}}

    def _log(self, verb: str, path: str, tried: str) -> None:
        self.writes.append((verb, path.removeprefix(CLUSTER)))
        if verb == self.fails:
            raise Failed(self.server, tried, "the server said 500 ERROR")
