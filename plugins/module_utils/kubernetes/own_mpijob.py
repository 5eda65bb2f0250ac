"""Runs the job of a training run as an MPIJob or a TrainJob in the Kubernetes that has the workers as nodes; pure.

Pods mount the folders of the nodes, which contain the library and get records and summaries. A file in the folder of
rank 0 ends the benchmark of the collection, so the node of the first worker counts as the launcher.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from hashlib import sha256
from typing import Any

from ..durable.calls import NodeCalls, Result, required
from ..errors import Refused
from ..training.ending.job_state import ENDED
from ..training.output.log import figures
from ..training.runs import node_setup, rank_words, run_files
from ..training.runs.any_job import Launched, watched_nodes
from ..training.runs.training_run import PLACE, Prepared, TrainingFailed, TrainingRun
from ..training.transport import job_settings
from . import job_spec, manifests, preflight
from .causes import DELETED
from .job_kinds import KINDS, V2BETA1, JobKind
from .job_spec import PLUGIN, TORCHRUN, JobSpec, Volume
from .kept_nodes import JobPlace, patient
from .mpijob import INFO, K8S, MpiJob

START_SECONDS = 600.0
# Names of pods add a suffix, and those of hosts in Kubernetes have at most 63 characters.
LONGEST = 36


def job_name(name: str, kind: JobKind = KINDS[V2BETA1]) -> str:
    """Return the name of a run's job; different runs have different jobs, although Kubernetes allows fewer letters.

    A further attempt has a longer name than the first one, and must fit too.
    """
    allowed = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if allowed == name and len(name) <= LONGEST:
        return f"dml-{name}"
    digest = sha256(name.encode()).hexdigest()[:6]
    room = min(LONGEST, job_spec.LONGEST_LABEL - len(kind.longest_pod(f"dml--{digest}", 1)))
    return "-".join(["dml", *filter(None, [allowed[:room].strip("-")]), digest])


class OwnMpiJob(MpiJob):
    """The MPIJob or TrainJob of a run, which it can start."""

    is_scheduled, may_wait = True, False

    def __init__(self, calls: NodeCalls, run: TrainingRun) -> None:
        self._calls, self._run = calls, run
        super().__init__(patient(calls), partial(calls.on, run.launcher), seen(run), run.dir)

    def look(self) -> Result:
        """Return the state of the job; one that ended after a window had asked for that was stopped by the window."""
        looked = super().look()
        state = (looked.get("job") or {}).get("state")
        by = run_files.stop_request(self._calls, self._run) if state in ("absent", *ENDED) else ""
        return {**looked, "job": {**looked["job"], "state": "stopped", "why": f"stopped by {by}"}} if by else looked

    def begin(self, prepared: Prepared) -> Launched:
        """Start the job, or find the one with the same objects."""
        run = self._run
        if not run.o["kubernetes"].get("image"):
            cause = "training_backend is kubernetes, but there is no image for the pods"
            raise Refused(run.name, "start its job", cause, "set training_kubernetes.image")
        self._refuse_old_records()
        objects = self.objects(prepared)
        before = self._require_startable(objects)
        # The job itself is not applied again: Kueue has changed one that it admitted, which would be a conflict.
        for each in objects if before["state"] == "absent" else objects[:-1]:
            applied = {"definition": each, "apply": True, "server_side_apply": {"field_manager": "dml.vsphere"}}
            required(self._here(K8S, {**applied, **_access(run)}))
        return self._where(self._started(before))

    def found(self) -> Launched:
        """Return where the pods of a job run that was started before."""
        run = self._run
        job = required(self.look())["job"]
        if job["state"] == "absent":
            cause = f"the namespace {_namespace(run)} has no {_kind(run).kind} {_name(run)}"
            remedy = "set training_kubernetes to the namespace of the run, or set another training_name"
            raise Refused(f"the training run {run.name}", "follow it", cause, remedy)
        return self._where(job)

    def end_leftovers(self) -> None:
        """Leave the failed job: the operator ends its pods, unless its cleanPodPolicy is None."""

    def report(self, looked: Result) -> Result:
        """Return the job with the log of the launcher, and the figures in it."""
        log = str(looked.get("log") or "")
        return {"job": looked["job"], "output": log, "printed": figures(log)}

    def forget(self) -> None:
        """Delete the job and its run directories; files that pods wrote there belong to root."""
        run = self._run
        self.stop()
        options = {"path": run.dir, "state": "absent"}
        self._calls.as_user("root").on_each("ansible.builtin.file", dict.fromkeys(run.nodes, options))

    def kept_nodes(self) -> JobPlace:
        """Return the nodes of the pods, and the queue of the job."""
        run, mine = self._run, self._run.o["kubernetes"].get("job") or {}
        nodes = [node["kubernetes"] for node in run.nodes.values()]
        queue = (_namespace(run), str(mine.get("queue") or ""))
        name = f"{_namespace(run)}/{job_name(run.first, _kind(run))}"
        return JobPlace(self._here, _access(run), name, nodes, queue, self._needs(mine))

    def _needs(self, mine: Mapping[str, object]) -> dict[str, int]:
        """Return what a worker requests from device plugins, which start after the kubelet."""
        o = self._run.o
        gpus = int(str(mine.get("gpus", o["ranks_per_node"] if o["nccl"] else 0)))
        found = {str(mine.get("gpu_resource") or JobSpec.gpu_resource): gpus}
        if o["transport"] == "rdma" and mine.get("devices", PLUGIN) == PLUGIN:
            found[str(mine.get("rdma_resource") or JobSpec.rdma_resource)] = 1
        return {resource: count for resource, count in found.items() if count}

    def objects(self, prepared: Prepared) -> list[manifests.Manifest]:
        """Return the Kubernetes objects of the job, a Secret first."""
        run = self._run
        try:
            spec = job_spec.job_of(self._job_options(prepared))
        except (job_spec.JobError, TypeError) as error:
            raise Refused(f"{_kind(run).kind} {_name(run)}", "describe it", str(error)) from error
        secret = manifests.secret(spec)
        return [*([secret] if secret else []), *manifests.manifests(spec)]

    def _job_options(self, prepared: Prepared) -> dict[str, object]:
        """Return the options of the job; those of the user take precedence, and their volumes are added."""
        run, o, mine = self._run, self._run.o, dict(self._run.o["kubernetes"].get("job") or {})
        interface = str(o["kubernetes"].get("interface") or "eth0")
        nodes: list[job_settings.TransportNode] = [
            {**node, "interface": interface, "network": ""} for node in run.ranks_of_nodes(prepared)
        ]
        settings = rank_words.transport_settings(o, nodes)
        name, ranks = _name(run), int(o["ranks_per_node"])
        starts = _torchrun(run, prepared) if mine.get("launcher") == TORCHRUN else _mpirun(run, settings)
        environment = {**settings["environment"], **starts.pop("environment")}
        options = {
            "name": name,
            "namespace": _namespace(run),
            "image": o["kubernetes"]["image"],
            "command": rank_words.rank_words(o, prepared).words,
            "workers": len(run.nodes),
            **_variables(run, {**environment, **rank_words.run_environment(run, prepared), "DML_RECORDS": run.dir}),
            "toleration_seconds": preflight.toleration(float(o["stun_seconds"])),
            "slots": ranks,
            "gpus": ranks if o["nccl"] else 0,
            "transport": o["transport"],
            "devices": "plugin" if o["transport"] == "rdma" else "none",
            "nodes": [node["kubernetes"] for node in run.nodes.values()],
            **starts,
            "records": run.dir,
            "records_on_node": True,
            "setup": _setup(run, prepared) if run.requirements else [],
        }
        return {**options, **mine, "volumes": [*_volumes(run, prepared), *(mine.get("volumes") or [])]}

    def _refuse_old_records(self) -> None:
        """Refuse to append to records of a job that Kubernetes no longer has."""
        run = self._run
        if required(super().look())["job"]["state"] != "absent":
            return
        options = {"paths": run.dir, "patterns": "rank*.jsonl"}
        for node, found in self._calls.on_each("ansible.builtin.find", dict.fromkeys(run.nodes, options)).items():
            if found.get("matched"):
                raise TrainingFailed(
                    f"{node} has step records in {run.dir} from a job that Kubernetes no longer has. A new job would "
                    "append to them. Set another training_name, or remove that folder on every worker."
                )

    def _require_startable(self, objects: list[manifests.Manifest]) -> Mapping[str, object]:
        """Return the existing job; refuse the name of a different job, and a namespace that does not exist."""
        run = self._run
        job = required(self._calls.here(INFO, {**_named(run), "desired": objects[-1]}))["job"]
        name = _name(run)
        if job["state"] == "absent" and job.get("why"):
            raise TrainingFailed(f"The training job {name} cannot be started: {job['why']}.")
        if job.get("why") == DELETED:
            raise TrainingFailed(
                f"The training job {name} was {DELETED}: run the same command again when they are gone."
            )
        if job.get("differs"):
            raise TrainingFailed(
                f'The namespace {_namespace(run)} has another training job {name} in state "{job["state"]}", which '
                f"differs in {', '.join(job['differs'])}. Give this job another name, or delete the existing one."
            )
        return dict(job)

    def _started(self, before: Mapping[str, object]) -> dict[str, object]:
        """Return the job once it has started; one whose pods cannot start is an error.

        A report from before the start may be about a folder that exists by now.
        """
        run = self._run
        until = self._calls.now() + START_SECONDS
        earlier = {"blocked_before": before["blocked"]} if before.get("blocked") is not None else {}
        while True:
            job = dict(required(self._calls.here(INFO, {**self._options, **earlier}))["job"])
            if job["state"] != "waiting":
                return job
            if job.get("blocked") is not None or self._calls.now() > until:
                within = "" if job.get("blocked") is not None else f" within {START_SECONDS:.0f} s"
                raise TrainingFailed(
                    f"The training job {_name(run)} did not start{within}: {job.get('why')}. The job still "
                    "exists: correct the cause and run the same command again, or delete the job."
                )
            self._calls.pause()

    def _where(self, job: Mapping[str, Any]) -> Launched:
        run = self._run
        names = {node["kubernetes"]: name for name, node in run.nodes.items()}
        place = {key: run.o["kubernetes"][key] for key in PLACE if key in run.o["kubernetes"]}
        return {
            "launcher": str(job.get("rank_0_on") or run.launcher),
            "kubernetes": {**place, "name": _name(run), "api": _api(run), "names": names},
            # The pods of a job that has ended are gone, but its records are on the nodes.
            "watched": list(job.get("workers") or watched_nodes(run)),
        }


def seen(run: TrainingRun) -> dict[str, object]:
    """Return the options that read a job with its workers."""
    names = {node["kubernetes"]: name for name, node in run.nodes.items()}
    return {**_named(run), "kubectl": run.o["kubernetes"].get("kubectl") or "kubectl", "names": names}


def _name(run: TrainingRun) -> str:
    return job_name(run.name, _kind(run))


def _named(run: TrainingRun) -> dict[str, object]:
    return {"name": _name(run), "namespace": _namespace(run), "api": _api(run), **_access(run)}


def _access(run: TrainingRun) -> dict[str, str]:
    return {key: run.o["kubernetes"][key] for key in ("kubeconfig", "context") if run.o["kubernetes"].get(key)}


def _api(run: TrainingRun) -> str:
    return str((run.o["kubernetes"].get("job") or {}).get("api") or V2BETA1)


def _kind(run: TrainingRun) -> JobKind:
    return KINDS.get(_api(run), KINDS[V2BETA1])


def _namespace(run: TrainingRun) -> str:
    return str(run.o["kubernetes"].get("namespace") or "default")


def _mpirun(run: TrainingRun, settings: job_settings.MpirunSettings) -> dict[str, Any]:
    """Return the options of a job that mpirun starts; the operator gives each worker the name of the meeting point."""
    name = _name(run)
    meeting = {"MASTER_ADDR": f"{_kind(run).host_of(name, 0)}.{name}", "MASTER_PORT": str(run.o["port"])}
    wdir = ["--wdir", run.work] if run.work else []
    arguments = [*settings["mpirun_arguments"], *wdir, *run.o["mpirun_arguments"]]
    return {"environment": meeting, "mpirun_arguments": arguments}


def _torchrun(run: TrainingRun, prepared: Prepared) -> dict[str, Any]:
    """Return the options of a job that torchrun starts, which has its meeting point from Trainer."""
    words = [prepared.python, "-m", "torch.distributed.run"]
    arguments = run.o["mpirun_arguments"]
    return {"environment": {}, "mpirun_arguments": arguments, "torchrun": words, "folder": run.work}


def _variables(run: TrainingRun, environment: Mapping[str, str]) -> dict[str, Any]:
    """Return the options with the variables of the ranks; as on nodes, those of the user replace those of the role."""
    own = rank_words.own_environment(run.o)
    return {
        "environment": {name: value for name, value in environment.items() if name not in own},
        "secrets": own,
        "forward": [name for name in job_spec.FORWARD if name not in own],
    }


def _setup(run: TrainingRun, prepared: Prepared) -> list[str]:
    """Return the command that installs the packages of the folder in each pod, before its worker starts."""
    o = run.o
    return [
        str(o["python"]),
        f"{o['dir']}/dml_environment.py",
        f"--store={node_setup.pod_environments(run, prepared.code)}",
        f"--link={run.dir}/environment",
        f"{run.work}/{o['requirements']}",
    ]


def _volumes(run: TrainingRun, prepared: Prepared) -> list[Volume]:
    """Return the folders of the nodes that pods mount; Kubernetes starts no pod on a node without them."""
    library = str(run.o["dir"])
    source = {"hostPath": {"path": library}}
    found: list[Volume] = [{"name": "library", "path": library, "source": source, "read_only": True}]
    if run.work:
        found.append(_folder("work", run.work))
    if run.requirements:
        path = node_setup.pod_environments(run, prepared.code)
        found.append({**_folder("environments", path), "only_setup_writes": True})
    return found


def _folder(name: str, path: str) -> Volume:
    return {"name": name, "path": path, "source": {"hostPath": {"path": path, "type": "Directory"}}}
