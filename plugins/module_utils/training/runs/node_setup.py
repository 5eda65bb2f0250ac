"""Prepares the nodes of a run: the user's folder, its packages, the outputs of an earlier run, the library; pure."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from ...durable.calls import on_all, required
from ...errors import Refused
from ..launch import data, requirements
from . import rank_words
from .controller_site import TrainingCalls
from .training_run import KUBERNETES, Node, Prepared, TrainingRun

T = TypeVar("T")

SHA256 = re.compile(r"[0-9a-f]{64}\Z")
INFO = "dml.vsphere.training_info"
FOLDER = "dml.vsphere.training_folder"
FILE = "ansible.builtin.file"
# The interpreter for nodes without a stack, in vars/main.yml of the role.
NO_STACK = "/opt/dml/horovod/bin/python"


def prepare(calls: TrainingCalls, run: TrainingRun, library: str) -> Prepared:
    """Bring all files of a run to its nodes; the data and the user's folder are checked first."""
    o = run.o
    require_stack(run)
    own_data = data_of(calls, run)
    code, environment = _send_folder(calls, run) if o["folder"] else ({}, {})
    if run.requirements and o["backend"] == KUBERNETES:
        environment = _of_pods(calls, run, code)
    restart = _send_outputs(calls, run) if run.resumed else {}
    folders = [run.dir, *([run.outputs] if o["folder"] else []), *([run.recorders] if o["nccl"] else [])]
    copied = {"path": library, "dest": o["dir"], "store": run.archives, "folders": folders}
    on_all(calls, run.nodes, FOLDER, copied)
    if o["framework"] == rank_words.TF_CNN and not o["command"]:
        _install_tf_cnn(calls, run)
    return Prepared(
        python=str(environment.get("python") or o["python"]),
        port=_port(calls, run),
        code=code,
        lock=list(environment.get("lock") or []),
        resume=f"{run.outputs}/{restart['path']}" if restart.get("path") else "",
        restart=restart,
        hcas=read_hcas(calls, run),
        data=send_data(calls, run, own_data),
    )


def require_stack(run: TrainingRun) -> None:
    """Refuse nodes without a stack, whose interpreter would be a path that does not exist."""
    o, without = run.o, [name for name, node in run.nodes.items() if not _has_stack(node)]
    if not without or o["python"] != NO_STACK or o["backend"] == KUBERNETES or o["image"]:
        return
    words = rank_words.rank_words(o, Prepared(python=NO_STACK, port=0)).words
    if run.requirements or (words[:1] == [NO_STACK] and rank_words.split_command(o["command"])[:1] != [NO_STACK]):
        cause = f"no stack is recorded on {', '.join(without)}"
        remedy = "run the playbook dml.vsphere.site, or set training_python to an interpreter there"
        raise Refused(f"the training run {run.name}", "prepare its nodes", cause, remedy)


def _has_stack(node: Node) -> bool:
    local = node["facts"].get("ansible_local") or {}
    return any(f"dml_{role}" in local for role in ("stack", "horovod", "pytorch"))


def _send_folder(calls: TrainingCalls, run: TrainingRun) -> tuple[dict[str, Any], dict[str, Any]]:
    """Send the user's folder, or the archive of the run whose program this one takes, and install its requirements.

    Return the facts about the folder, and the environment.
    """
    o, source = run.o, run.source
    taken = str((source.get("code") or {}).get("sha256") or "") if source.get("takes_program") else ""
    options = {
        "path": o["folder"],
        "command": o["command"],
        "exclude": left_out(run),
        "include": o["include"],
        "limit": o["folder_limit"],
        "dest": run.work,
        "store": run.archives,
        "once": True,
        "sha256": taken,
        "kept": f"{o['results']}/{source.get('name', '')}/code.tar",
        **_requirements(run),
    }
    results = on_all(calls, run.nodes, FOLDER, options)
    result = next(iter(results.values()))
    facts = {key: result.get(key) for key in ("files", "bytes")}
    sent = {"sha256": result["state"]["sha256"], **facts, "git": result.get("git") or {}}
    return dict(source["code"]) if taken else sent, dict(results[run.launcher])


def left_out(run: TrainingRun) -> list[str]:
    """Return the patterns of files that stay on the controller; outputs of an earlier run come from its results."""
    return [*run.o["left_out"], *([f"/{run.o['outputs']}"] if run.resumed else [])]


def _requirements(run: TrainingRun) -> dict[str, object]:
    """Return the option that installs the packages of the folder; on Kubernetes, pip does so in each pod."""
    o = run.o
    if not run.requirements or o["backend"] == KUBERNETES:
        return {}
    if o["image"]:
        cause = f"the ranks run in the image {o['image']}"
        remedy = "add the packages to the image, and set training_requirements to an empty string"
        raise Refused(f"training_folder with {o['requirements']}", "install its packages", cause, remedy)
    store = f"{o['dir']}/environments"
    named = {"requirements": run.requirements, "name": o["requirements"]}
    return {"environment": {"python": o["python"], **named, "store": store}}


def _of_pods(calls: TrainingCalls, run: TrainingRun, code: Mapping[str, object]) -> dict[str, Any]:
    """Return the environment that each pod creates, and make the folder on its node that keeps these environments."""
    store = {"path": pod_environments(run, code), "state": "directory", "mode": "0755"}
    on_all(calls, run.nodes, FILE, store)
    return {"python": f"{run.dir}/environment/bin/python"}


def pod_environments(run: TrainingRun, code: Mapping[str, object]) -> str:
    """Return the folder of the environments for pods that install the same packages in the same way.

    A job writes only there, and only before its ranks start: the ranks of no job can change the packages of another.
    """
    o, place = run.o, run.o["kubernetes"]
    image = (place.get("job") or {}).get("image") or place["image"]
    parts = [place.get("namespace") or "", image, o["python"], run.requirements, code.get("sha256") or ""]
    # Pods do not mount the folders of other runs.
    parts += [run.work] if requirements.is_editable(run.requirements) else []
    return f"{o['dir']}/pod-environments/{hashlib.sha256(json.dumps(parts).encode()).hexdigest()}"


def _send_outputs(calls: TrainingCalls, run: TrainingRun) -> dict[str, Any]:
    """Send the outputs of the resumed run to every node, as each rank reads the checkpoint; return its facts."""
    o, kept = run.o, f"{run.o['results']}/{run.resumed}/outputs"
    if not o["folder"]:
        cause = f"training_resume is {run.resumed}, but the run has no training_folder"
        remedy = "resume continues only runs of a folder; the benchmarks have the options --checkpoints and --resume"
        raise Refused(run.name, "resume a run", cause, remedy)
    choice = calls.runs.newest_checkpoint(run.resumed, kept, checkpoint_patterns(run), required=run.number == 1)
    for warning in choice.get("warnings") or []:
        calls.show(str(warning))
    if not choice["has_files"]:
        return dict(choice["restart"])
    copied = {"path": kept, "include": ["*"], "limit": o["outputs_limit"], "dest": run.outputs, "store": run.archives}
    # Their times say which checkpoint is the newest if this run ends before it writes one.
    on_all(calls, run.nodes, FOLDER, {**copied, "exclude": choice["left_out"], "once": True, "keep_times": True})
    return dict(choice["restart"])


def checkpoint_patterns(run: TrainingRun) -> list[str]:
    """Return the patterns of checkpoints, relative to the outputs."""
    return [re.sub(f"^{re.escape(run.o['outputs'])}/", "", pattern) for pattern in run.o["checkpoints"]]


def _install_tf_cnn(calls: TrainingCalls, run: TrainingRun) -> None:
    """Install the pinned archive of tf_cnn_benchmarks."""
    o, folder = run.o, rank_words.tf_cnn_folder(run.o)
    if not o["tf_cnn_url"] or not SHA256.match(o["tf_cnn_sha256"]):
        cause = "tf_cnn_benchmarks needs an archive of a given commit"
        remedy = "set training_tf_cnn_url to its URL and training_tf_cnn_sha256 to its checksum"
        raise Refused("training_framework", "install its benchmark", cause, remedy)
    on_all(calls, run.nodes, FILE, {"path": folder, "state": "directory", "mode": "0755"})
    checksum = f"sha256:{o['tf_cnn_sha256']}"
    download = {"url": o["tf_cnn_url"], "dest": f"{folder}.tar", "checksum": checksum, "mode": "0644"}
    on_all(calls, run.nodes, "ansible.builtin.get_url", download)
    creates = f"{folder}/scripts/tf_cnn_benchmarks/tf_cnn_benchmarks.py"
    unpack = {"src": f"{folder}.tar", "dest": folder, "remote_src": True, "creates": creates}
    on_all(calls, run.nodes, "ansible.builtin.unarchive", {**unpack, "extra_opts": ["--strip-components=1"]})


def _port(calls: TrainingCalls, run: TrainingRun) -> int:
    """Return the port of the rendezvous: free on the first node if other runs train there."""
    o = run.o
    if not o["share_nodes"]:
        return int(o["port"])
    answer = required(calls.on(next(iter(run.nodes)), INFO, {"port": o["port"]}))
    return int(answer["free_port"])


def read_hcas(calls: TrainingCalls, run: TrainingRun) -> dict[str, Any]:
    """Return the RDMA devices of each node with their counters; empty for TCP."""
    o = run.o
    if o["transport"] != "rdma":
        return {}
    words = [o["remote_python"], f"{o['dir']}/dml_hcas.py", o["sysfs"]]
    results = on_all(calls, run.nodes, "ansible.builtin.command", {"argv": words})
    tried = f"read the RDMA devices with {words[1]}"
    return {node: parsed(node, tried, result.get("stdout") or "[]", list) for node, result in results.items()}


def parsed(node: str, tried: str, text: str, kind: type[T]) -> T:
    """Return the JSON value of a given type in a text from a node."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, kind):
        cause = f"it contains {text[:80]!r}, which is not the JSON text that a rank or a program of the role writes"
        raise Refused(node, tried, cause, "check the disk and the output of the ranks on this node")
    return value


@dataclass(frozen=True)
class Data:
    """The data of a run: its source with its checksum, and the name of its file if it is one."""

    source: str = ""
    sha256: str = ""
    file: str = ""


def data_of(calls: TrainingCalls, run: TrainingRun) -> Data:
    """Return the data of a run, read on the controller; refuse it before anything is written."""
    given = str(run.o["data"])
    if not given:
        return Data()
    sha256 = data.sha256_of(given, str(run.o["data_sha256"]))
    if data.is_url(given):
        return Data(given, sha256)
    read = calls.files.data_checksum(given, run.o["data_limit"], sha256)
    return Data(given, str(read["sha256"]), str(read["file"]))


def send_data(calls: TrainingCalls, run: TrainingRun, known_data: Data) -> dict[str, Any]:
    """Send the data to nodes that do not have it, and return its source, its checksum and its path on every node."""
    given = known_data.source
    if not given:
        return {}
    source = {"url": given} if data.is_url(given) else {"path": given, "file": known_data.file}
    store = f"{run.o['dir']}/data"
    options = {**source, "sha256": known_data.sha256, "shared": True, "dest": store, "store": store}
    results = on_all(calls, run.nodes, FOLDER, options)
    path = next(iter(results.values())).get("data")
    return {"source": given, "sha256": known_data.sha256, "path": str(path or "")}


def data_in_manifest(sent: Mapping[str, object]) -> dict[str, str]:
    """Return what the manifest of a run keeps about its data, in the names of the options."""
    return {"data": str(sent.get("source") or ""), "data_sha256": str(sent.get("sha256") or "")}
