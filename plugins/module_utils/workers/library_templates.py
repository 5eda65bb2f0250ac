"""Templates from content libraries: a VM template is cloned as it is, and an OVF item becomes a template once.

The template of an OVF item is a separate virtual machine for each cluster and version of the item. Its name has the
identifier of the item, so that a run that was killed while vCenter deployed it finds it again.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

from ..errors import Refused
from ..plan import Plan, State
from ..vsphere import libraries, properties, rest, tasks
from ..vsphere.faults import translating_faults
from ..vsphere.libraries import LibraryItem
from ..vsphere.sdk import ApiObject, vim
from . import library_items, machine
from .context import Context
from .machine import Machine
from .worker_spec import LibraryTemplate, WorkerSpec

_LIGHT = ("name", "config.template")
PREFIX = "dml-"
_MADE = re.compile(rf"{PREFIX}.+-.+-[^-]{{1,8}}-v[^-]+")
_OTHER, _LONGEST = re.compile(r"[^A-Za-z0-9._-]+"), 32


class LibraryTemplates:
    """The templates from libraries that the workers of a call name; ``read`` looks them up."""

    def __init__(self, context: Context) -> None:
        self.context, self.cluster, self.items = context, context.cluster, context.items
        self.named: dict[str, WorkerSpec] = {}
        for desired in context.specs:
            if desired.library and self.named.setdefault(desired.library.path, desired).library != desired.library:
                reason = f"{self.named[desired.library.path].name} has other options for it"
                tried = f"use the item {desired.library.path}"
                raise Refused(desired.name, tried, reason, "give both workers the same options, once in the defaults")
        self.refs: dict[str, Any] = {}

    def read(self) -> None:
        """Find the items, and the virtual machines that are their templates."""
        if not self.named:
            return
        session = self.cluster.session
        with rest.opened(session) as api:
            for path, desired in self.named.items():
                library = desired.library or LibraryTemplate("", "")
                self.items[path] = libraries.find_item(api, library.library, library.item)
            moids = {
                path: libraries.template_of(api, item)
                for path, item in self.items.items()
                if item.kind == libraries.VM_TEMPLATE
            }
        self.refs = {path: vim.VirtualMachine(moid, session.stub) for path, moid in moids.items()}
        found = properties.find_all(session, vim.VirtualMachine, _LIGHT)
        for path in self.named.keys() - moids.keys():
            name = template_name(self.cluster.name, self.items[path])
            ready = [ref for ref, values in found if values["name"] == name and values.get("config.template")]
            self.refs.update({path: ready[0]} if ready else {})

    def show_missing(self) -> None:
        """Give workers to be built a machine without properties as their template, until theirs is deployed."""
        for path in self.missing():
            chosen = self.context.locations.datastore_of_item(self.named[path])
            values = {"name": path, "datastore": [chosen]}
            self.cluster.machines[path] = Machine(self.cluster.session, SimpleNamespace(_moId=""), values, worker=path)

    def missing(self) -> list[str]:
        """Return the items that a worker to be built needs, and that are not deployed as a template."""
        machines = self.cluster.machines
        return [path for path in self.named if path not in self.refs and self._needs(path, machines)]

    def _needs(self, path: str, machines: Mapping[str, Machine]) -> bool:
        specs = self.context.specs
        return any(one.library and one.library.path == path and one.name not in machines for one in specs)

    def to_deploy(self) -> list[DeployedTemplate]:
        return [DeployedTemplate(self, path) for path in self.missing()]


def template_name(cluster: str, item: LibraryItem) -> str:
    """Return the name of the template that is made of an item."""
    return _name(cluster, item.name, item.id, item.version)


def _name(cluster: str, item: str, identifier: str, version: str) -> str:
    """Return the name of a template; vCenter allows 80 characters."""
    parts = [_OTHER.sub("-", part)[:_LONGEST] for part in (cluster, item)]
    return f"{PREFIX}{parts[0][:16]}-{parts[1]}-{identifier[:8]}-v{version}"


def is_made_of_item(name: str) -> bool:
    """Return whether a template has a name as ``template_name`` makes it."""
    return bool(_MADE.fullmatch(name))


def _is_ours(one: Machine, cluster: str) -> bool:
    """Return whether this collection made a template for a cluster; a copy that a person made has another name."""
    made = library_items.recorded(one.extra)
    return made is not None and one.shown == _name(cluster, made["item"], made["id"], made["version"])


class DeployedTemplate:
    """The template that is made of an OVF item."""

    name = "template"

    def __init__(self, templates: LibraryTemplates, path: str) -> None:
        self.templates, self.target = templates, path
        self.cluster, self.desired = templates.cluster, templates.named[path]
        self._spec: dict[str, Any] = {}

    @property
    def item(self) -> LibraryItem:
        return self.templates.items[self.target]

    def read(self) -> State:
        """Return whether the template exists, and the version of its item."""
        exists = self.target in self.templates.refs
        return {"exists": exists, "name": template_name(self.cluster.name, self.item) if exists else None}

    def plan(self, current: State) -> Plan:
        """Plan to deploy the item; options that it refuses are refused before."""
        if not current["exists"]:
            self._spec = self._deployment()
        after = {"exists": True, "name": template_name(self.cluster.name, self.item)}
        return Plan(current, after, why=(f"version {self.item.version} of {self.target} is deployed",))

    def _deployment(self) -> dict[str, Any]:
        library = self.desired.library or LibraryTemplate("", "")
        with rest.opened(self.cluster.session) as api:
            required = libraries.requirements_of(api, self.item, self._pool)
        if required.licences and not library.accept_eula:
            reason = f"it has {len(required.licences)} licence agreements, beginning {required.licences[0][:60]!r}"
            remedy = "read them in the vSphere Client, and set accept_eula: true in its template to accept them"
            raise Refused(self.target, "deploy it", reason, remedy)
        unknown = sorted(library.properties.keys() - required.properties.keys())
        if unknown:
            known = ", ".join(sorted(required.properties)) or "none"
            reason = f"it has no property {', '.join(unknown)}; it has {known}"
            raise Refused(self.target, "set its properties", reason, "correct the properties of its template")
        spec = {
            "name": template_name(self.cluster.name, self.item),
            "accept_all_EULA": library.accept_eula,
            "network_mappings": {name: self._network(name) for name in required.networks},
            "default_datastore_id": self.templates.context.locations.datastore_of_item(self.desired)._moId,
            "additional_parameters": libraries.properties_of(required, library.properties),
        }
        policy = self.templates.context.policies.ids.get(self.desired["storage_policy"] or "")
        spec.update({"storage_profile_id": policy} if policy else {})
        return {**spec, **({"storage_provisioning": library.disk_format} if library.disk_format else {})}

    def _network(self, name: str) -> str:
        """Return the object id of the port group for a network of the item."""
        library = self.desired.library or LibraryTemplate("", "")
        group = library.networks.get(name) or (self.desired["management_nic"] or {}).get("portgroup")
        if not group:
            reason = f"no port group is named for its network {name!r}"
            remedy = f"name one: networks: {{{name}: PORT GROUP}} in its template, or that of the management_nic"
            raise Refused(self.target, "deploy it", reason, remedy)
        return str(self.cluster.networks.named(group).ref._moId)

    @property
    def _pool(self) -> str:
        return str(self.cluster.values["resourcePool"]._moId)

    def apply(self, plan: Plan) -> None:
        """Fetch the files of a subscribed library, deploy the item, record it, and mark it as a template."""
        context, seconds = self.templates.context, self.templates.context.options.clone_timeout
        name = str(plan.after["name"])
        with rest.opened(self.cluster.session) as api:
            patient = api.patient(seconds)
            left = self._left_by_killed_run(name)
            if not left and self.item.is_subscribed and not self.item.cached:
                context.report(self.target, "is synchronized from its publisher")
                libraries.synchronize(patient, self.item)
            if not left:
                context.report(self.target, f"is deployed as {name}")
                target = {"resource_pool_id": self._pool}
                moid = libraries.deploy(patient, self.item, target, self._spec)
                left = vim.VirtualMachine(moid, self.cluster.session.stub)
        made = Machine(self.cluster.session, left, worker=name)
        made.refresh()
        spec = vim.vm.ConfigSpec(
            extraConfig=[vim.option.OptionValue(key=library_items.RECORD, value=library_items.record_of(self.item))]
        )
        made.reconfigure(spec, "record its item", "if vCenter still deploys it, run again when that has ended")
        with translating_faults(name, "mark it as a template"):
            left.MarkAsTemplate()
        self.templates.read()

    def _left_by_killed_run(self, name: str) -> ApiObject:
        found = properties.find_all(self.cluster.session, vim.VirtualMachine, _LIGHT)
        return next((ref for ref, values in found if values["name"] == name), None)


class UnusedTemplate:
    """A template that was made of an item for a cluster, to be deleted with the last worker of the cluster."""

    name = "template"

    def __init__(self, context: Context, one: Machine) -> None:
        self.context, self.machine, self.target, self._exists = context, one, one.shown, True

    def read(self) -> State:
        return {"exists": self._exists}

    def plan(self, current: State) -> Plan:
        return Plan(current, {"exists": False}, why=("no worker of the cluster is left",) if self._exists else ())

    def apply(self, _plan: Plan) -> None:
        with translating_faults(self.target, "delete it"):
            task = self.machine.ref.Destroy_Task()
        started = tasks.Started(task, self.target, "delete it")
        tasks.wait(self.context.cluster.session, started, self.context.options.clone_timeout)
        self._exists = False


def unused(context: Context) -> list[UnusedTemplate]:
    """Return the templates that this collection made of items for the cluster, if no other worker of it stays."""
    session, cluster = context.cluster.session, context.cluster
    gone = {one.name for one in context.specs}
    if any(
        one.mark.get("cluster") == cluster.name and one.mark["name"] not in gone for one in cluster.identities.all()
    ):
        return []
    found = properties.find_all(session, vim.VirtualMachine, _LIGHT)
    refs = [ref for ref, values in found if is_made_of_item(values["name"]) and values.get("config.template")]
    hosts = set(cluster.hosts)
    made = [one for one in machine.read(session, refs).values() if one.host in hosts and _is_ours(one, cluster.name)]
    return [UnusedTemplate(context, one) for one in made]
