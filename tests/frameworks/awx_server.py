# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The part of the REST API of AWX that ``awx import`` uses, with the refusals of its serializers and of its surveys."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

Page = dict[str, Any]
# The fields of each resource that a POST may contain; * marks the key of another object, of the type id in AWX.
FIELDS = {
    "organizations": "name",
    "credential_types": "name kind",
    "credentials": "name organization* credential_type*",
    "execution_environments": "name image organization*",
    "projects": "name organization* scm_type scm_url default_environment*",
    "inventory": "name organization*",
    "inventory_sources": "name inventory* source source_project* source_path execution_environment* overwrite"
    " overwrite_vars update_on_launch",
    "job_templates": "name description job_type inventory* project* playbook execution_environment*"
    " ask_job_type_on_launch ask_limit_on_launch ask_diff_mode_on_launch survey_enabled",
    # The client creates none of these, but asks for their addresses.
    **dict.fromkeys(
        (
            *("users", "teams", "notification_templates", "workflow_job_templates", "applications", "schedules"),
            *("system_job_templates", "hosts", "groups", "labels", "workflow_job_template_nodes"),
        ),
        "name",
    ),
}
PATHS = {"inventory": "inventories"}
TYPES = {"inventories": "inventory"}
# The resource of a key with another name than the resource.
TARGETS = {"default_environment": "execution_environments", "source_project": "projects", "inventory": "inventories"}
ANSWERS = {"text": str, "textarea": str, "password": str, "multiplechoice": str, "integer": int, "float": float}


def target(key: str) -> str:
    return TARGETS.get(key, f"{key}s")


class Awx:
    """An AWX with an organization, the credential of vCenter, and a project whose files are known."""

    def __init__(self, playbooks: set[str]) -> None:
        self.playbooks, self.pages, self.attached = playbooks, dict[str, list[Page]](), dict[str, list[int]]()
        self.surveys: dict[str, Page] = {}
        self.create("organizations", {"name": "Default"})
        self.create("credential_types", {"name": "VMware vCenter", "kind": "cloud"})
        self.create("credentials", {"name": "vcenter", "organization": 1, "credential_type": 1})

    def create(self, path: str, fields: Page) -> Page:
        known = self.pages.setdefault(path, [])
        url = f"/api/v2/{path}/{len(known) + 1}/"
        keys = [key.rstrip("*") for key in self.fields(path) if key.endswith("*") and fields.get(key.rstrip("*"))]
        related = {key: f"/api/v2/{target(key)}/{fields[key]}/" for key in keys}
        if path == "job_templates":
            # The organization of a job template is that of its project, as that of a source is its inventory's.
            related |= {"survey_spec": f"{url}survey_spec/", "organization": "/api/v2/organizations/1/"}
        if path == "inventory_sources":
            related["organization"] = "/api/v2/organizations/1/"
        related["credentials"] = f"{url}credentials/"
        kind = TYPES.get(path, path.removesuffix("s"))
        state = {"status": "successful", "event_processing_finished": True} if path == "projects" else {}
        page = {**fields, "id": len(known) + 1, "type": kind, "url": url, "related": related, **state}
        known.append(page)
        return page

    @staticmethod
    def fields(path: str) -> list[str]:
        return next(text for name, text in FIELDS.items() if PATHS.get(name, name) == path).split()

    def refusal(self, path: str, fields: Page) -> str:
        """Return why AWX refuses an object; it lacks the object of a key, or the playbook in the project."""
        for key in self.fields(path):
            name = key.rstrip("*")
            optional = path == "execution_environments" and name == "organization"
            if name not in fields and not optional and name != "description":
                return f"{name}: This field is required."
            if key.endswith("*") and name in fields and not 0 < fields[name] <= len(self.pages.get(target(name), [])):
                return f"{name}: Invalid pk."
        if path == "job_templates" and fields["playbook"] not in self.playbooks:
            return "playbook: Playbook not found for project."
        return ""

    def survey_refusal(self, survey: Page) -> str:
        """Return why AWX refuses a survey."""
        named = all(isinstance(survey.get(key), str) for key in ("name", "description"))
        if not named or not survey.get("spec"):
            return "name, description or spec is missing"
        variables = [question["variable"] for question in survey["spec"]]
        if len(set(variables)) < len(variables):
            return "a variable stands twice"
        return next(filter(None, map(self._question_refusal, survey["spec"])), "")

    @staticmethod
    def _question_refusal(question: Page) -> str:
        texts = all(isinstance(question.get(key), str) for key in ("type", "question_name", "variable"))
        if not texts or not isinstance(question.get("required"), bool):
            return f"a field is missing: {question}"
        if question["type"] not in ANSWERS or "default" in question:
            return f"an unknown type: {question}"
        if any(not isinstance(question.get(key, 0), int) for key in ("min", "max")):
            return f"a limit is not an integer: {question}"
        choices = question.get("choices", [])
        if question["type"] == "multiplechoice" and not (choices and all(isinstance(each, str) for each in choices)):
            return f"choices are missing: {question}"
        return ""

    def get(self, path: str, query: Page) -> Page | None:
        """Return the page of a path."""
        if path == "/api/":
            return {"current_version": "/api/v2/", "available_versions": {"v2": "/api/v2/"}}
        if path == "/api/v2/":
            return {name: f"/api/v2/{PATHS.get(name, name)}/" for name in FIELDS}
        name, *rest = path.removeprefix("/api/v2/").strip("/").split("/")
        found = self.pages.get(name, [])
        if len(rest) == 1:
            return found[int(rest[0]) - 1]
        if rest:
            found = [page for page in self.pages["credentials"] if page["id"] in self.attached.get(path, [])]
            query = {}
        listed = [page for page in found if page["name"] == query.get("name", page["name"])]
        return {"count": len(listed), "next": None, "previous": None, "results": listed}

    def post(self, path: str, body: Page) -> tuple[int, Page]:
        name, *rest = path.removeprefix("/api/v2/").strip("/").split("/")
        if rest and rest[-1] == "credentials":
            self.attached.setdefault(path, []).append(body["id"])
            return 204, {}
        why = self.survey_refusal(body) if rest else self.refusal(name, body)
        if why:
            return 400, {"detail": why}
        if rest:
            self.surveys[path] = body
            return 200, {}
        return 201, self.create(name, body)

    def options(self, path: str) -> Page:
        fields = self.fields(path.removeprefix("/api/v2/").strip("/"))
        return {"actions": {"POST": {key.rstrip("*"): {"type": "id" if "*" in key else "field"} for key in fields}}}


class Server(ThreadingHTTPServer):
    """Serves an AWX on this machine."""

    def __init__(self, awx: Awx) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.awx, self.failures = awx, list[str]()
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def address(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    """Answers one request of a client that has a token."""

    server: Server

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        page = self.server.awx.get(address.path, dict(parse_qsl(address.query)))
        self._answer(200, page)

    def do_OPTIONS(self) -> None:
        self._answer(200, self.server.awx.options(self.path), Allow="GET, POST, HEAD, OPTIONS")

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, page = self.server.awx.post(self.path, body)
        if status >= 400:
            self.server.failures.append(f"{self.path}: {page['detail']}")
        self._answer(status, page)

    def do_PUT(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        name, number = self.path.removeprefix("/api/v2/").strip("/").split("/")
        page = self.server.awx.pages[name][int(number) - 1]
        page.update(body)
        self._answer(200, page)

    def _answer(self, status: int, page: Page | None, **headers: str) -> None:
        text = b"" if status == 204 else json.dumps(page).encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(text)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_arguments: object) -> None:
        """Print nothing."""
