"""The files of a run on the controller: its manifest, the end of its output, its outputs and its result; pure.

The controller keeps the manifest. The launcher has a copy for other controllers, from which no command is taken.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, cast

from ...durable.calls import NodeCalls, Result, on_all, required
from ...errors import CollectionError, Refused
from ..ending.job_state import STOP_REQUEST
from ..results import manifest, result
from ..results.manifest import Manifest
from . import node_setup, rank_words
from .any_job import Launched
from .controller_site import TrainingCalls
from .training_run import GROUP, KUBERNETES, Prepared, TrainingFailed, TrainingRun, request_of

COMMAND, COPY = "ansible.builtin.command", "ansible.builtin.copy"
MOST_OF_A_SUMMARY, MOST_OF_A_FILE = 1 << 20, 16 << 20
MEGABYTE, TAR_OVERHEAD = 1_000_000, 2
KEPT = (
    *("folder", "outputs", "framework", "options", "stack", "transport", "nccl", "steps_by"),
    *("ranks_per_node", "steps", "warmup", "gradient_bytes", "attempts"),
)


def text_on(calls: NodeCalls, node: str, path: str) -> str:
    """Return the text of a file on a node; empty if it cannot be read, or if it is too large to be one of a run.

    Its user may have replaced it: a link is refused, a FIFO is not waited for, and the file may have any size.
    """
    flags = "iflag=nofollow,nonblock,fullblock,count_bytes"
    words = ["dd", f"if={path}", flags, "bs=64K", f"count={MOST_OF_A_FILE}", "status=none"]
    answer = calls.on(node, COMMAND, {"argv": words, "strip_empty_ends": False})
    text = "" if answer.get("failed") else str(answer.get("stdout") or "")
    return "" if len(text) >= MOST_OF_A_FILE else text.encode("utf-8", "replace").decode("utf-8")


def stop_request(calls: NodeCalls, run: TrainingRun) -> str:
    """Return who asked for the end of a run, from the file in its folder on the launcher; empty without one."""
    text = text_on(calls, run.launcher, f"{run.dir}/{STOP_REQUEST}")
    return str(node_setup.parsed(run.launcher, "read who asked for its end", text, dict).get("by")) if text else ""


def new_manifest(run: TrainingRun, prepared: Prepared, started: Launched, now: float) -> Manifest:
    o = run.o
    made = {
        "name": run.name,
        "run_dir": run.dir,
        "backend": o["backend"],
        "started": now,
        "asked_by": run.requested_by,
        "first_attempt": run.first,
        "attempt": run.number,
        "launcher": run.launcher,
        "nodes": list(run.nodes),
        "command": rank_words.split_command(o["command"]),
        "words": rank_words.rank_words(o, prepared).words,
        **{key: value for key, value in o.items() if key in KEPT},
        "hosts": o["esxi_hosts"],
        "repeats": o["repeat"],
        "code": dict(prepared.code),
        **node_setup.data_in_manifest(prepared.data),
        "requirements": run.requirements or "",
        **_resumed(run, prepared),
        "lock": list(prepared.lock),
        "image": o["kubernetes"].get("image", "") if o["backend"] == KUBERNETES else o["image"],
        "rank_0_on": started["launcher"] if o["backend"] == KUBERNETES else next(iter(run.nodes)),
        "built": built(run),
        "port": prepared.port,
        "asked": request_of(o),
    }
    return cast("Manifest", made)


def _resumed(run: TrainingRun, prepared: Prepared) -> dict[str, object]:
    """Return the run that a run resumes, and the checkpoint from which it starts."""
    restart = {"restart": dict(prepared.restart)} if run.resumed else {}
    return {"resumed_from": run.resumed, "checkpoint": prepared.resume, **restart}


def built(run: TrainingRun) -> dict[str, Any]:
    """Return the versions and proofs that the roles recorded on each node."""
    local = {name: node["facts"].get("ansible_local") or {} for name, node in run.nodes.items()}
    return {
        name: {key: value for key, value in facts.items() if key.startswith("dml_")} for name, facts in local.items()
    }


def write_manifest(calls: TrainingCalls, run: TrainingRun, new: Manifest) -> Manifest:
    """Write the manifest on the controller, and its copy and the archive of the program if the job is new."""
    reported = str(calls.on(run.launcher, node_setup.INFO, {"manifest": run.dir}).get("manifest") or "")
    known = manifest.continued(run.known, manifest.reported(reported, run.name, run.known)) if reported else {}
    content: Manifest = {**new, **known}
    written = _keep(calls, run, manifest=content)["manifest"]
    if not reported:
        text = json.dumps(written, indent=4, sort_keys=True)
        copy = {"content": text, "dest": f"{run.dir}/{manifest.FILE}", "mode": "0600"}
        required(calls.on(run.launcher, COPY, copy))
    _keep_archive(calls, run, written)
    kept: Manifest = written
    return kept


def write_followed(calls: TrainingCalls, run: TrainingRun) -> None:
    """Write the manifest of a run that is only followed; one of another controller is marked as reported."""
    _keep(calls, run, manifest=dict(run.known))


def _keep(calls: TrainingCalls, run: TrainingRun, **content: Any) -> Result:
    """Write content of the manifest on the controller."""
    return calls.files.write_manifest(run.results, **content)


def _keep_archive(calls: TrainingCalls, run: TrainingRun, content: Manifest) -> bool:
    """Keep the archive of the program for a run that repeats this one; return whether this controller has it.

    The controller packed the folder, so that it need not come back from a node. If a node reported the run, its folder
    is not read: the user of the node would choose what this controller packs.
    """
    sha256 = str((content.get("code") or {}).get("sha256") or "")
    if not run.o["folder"] or not sha256:
        return True
    return calls.files.keep_code(
        folder="" if run.known.get(manifest.REPORTED) else run.o["folder"],
        exclude=node_setup.left_out(run),
        sha256=sha256,
        earlier=f"{run.o['results']}/{run.source.get('name', '')}/code.tar",
        dest=f"{run.results}/code.tar",
    )


def bring_archive(calls: TrainingCalls, run: TrainingRun, content: Manifest) -> None:
    """Fetch the archive of a program that another controller packed."""
    if not _keep_archive(calls, run, content):
        sha256 = str(content["code"]["sha256"])
        path = f"{run.archives}/{sha256}.tar"
        _require_archive(calls, run, path, sha256)
        archive = {"src": path, "dest": f"{run.results}/code.tar", "flat": True}
        required(calls.on(run.launcher, "ansible.builtin.fetch", archive))


def _require_archive(calls: TrainingCalls, run: TrainingRun, path: str, sha256: str) -> None:
    """Refuse to fetch an archive that the user of the launcher replaced, for example by an endless file."""
    options = {"path": path, "follow": False, "checksum_algorithm": "sha256"}
    found = required(calls.on(run.launcher, "ansible.builtin.stat", options))["stat"]
    most = (int(run.o["folder_limit"]) + TAR_OVERHEAD) * MEGABYTE * TAR_OVERHEAD
    if not found.get("isreg") or int(found["size"]) > most or found.get("checksum") != sha256:
        cause = f"{path} is not the archive that this run started with"
        raise Refused(run.launcher, "keep the program of the run", cause, "remove that file, and set training_folder")


def write_end(calls: TrainingCalls, run: TrainingRun, job: Mapping[str, object], pace: Mapping[str, object]) -> None:
    """Add the end of the job to the manifest."""
    end = {
        "state": job["state"],
        "ended": job.get("ended"),
        "cause": job.get("why"),
        "steps": pace.get("step"),
        "loss": pace.get("loss"),
        "steps_per_sec": pace.get("steps_per_sec"),
        **({"not_finite": pace["not_finite"]} if pace.get("not_finite") else {}),
    }
    _keep(calls, run, end=end)


def write_output(calls: TrainingCalls, run: TrainingRun, text: str | None) -> None:
    """Complete the output of the job on the controller with its end, if that could be read."""
    if text is not None:
        calls.files.write_output(run.results, text)


def bring_outputs(calls: TrainingCalls, run: TrainingRun, rank_0: str) -> None:
    """Copy the outputs of a job that has ended from the node of rank 0, and add them to the manifest."""
    if run.o["folder"]:
        copy_outputs(calls, run, rank_0, run.outputs)


def unusable_checkpoint(calls: TrainingCalls, run: TrainingRun) -> str:
    """Return why no run can resume from the newest checkpoint among the outputs here; empty if one can.

    Ranks on several nodes may have written its parts, which only a shared folder has all.
    """
    if not run.o["folder"]:
        return ""
    return calls.runs.unusable_checkpoint(run.name, f"{run.results}/outputs", node_setup.checkpoint_patterns(run))


def copy_outputs(calls: TrainingCalls, run: TrainingRun, node: str, folder: str) -> None:
    """Copy the outputs in a folder of a node to the controller, and add them to the manifest."""
    dest, limit = f"{run.results}/outputs", int(run.o["outputs_limit"])
    copied = calls.outputs.copy(node=node, reach=run.nodes[node]["reach"], folder=folder, dest=dest, limit=limit)
    _keep(calls, run, outputs=dest, names=copied["names"])


def require_repeatable(run: TrainingRun, new: Manifest) -> None:
    """Refuse to repeat a run on nodes whose versions or packages differ from its manifest."""
    o = run.o
    differing = manifest.differing(run.source, new, manifest.OF_A_REPEAT) if o["repeat"] else []
    left = [key for key in differing if key not in o["accept"]]
    if left:
        raise TrainingFailed(
            f"The training run {o['repeat']} cannot be repeated on these nodes: {', '.join(left)} of its manifest "
            f"differ today. Restore them, or accept them by name: -e '{{\"training_accept\": {json.dumps(left)}}}'."
        )


def read_summaries(calls: TrainingCalls, run: TrainingRun) -> list[dict[str, object]]:
    """Return the summaries of the ranks from all nodes; one that is too large or damaged is refused."""
    found = on_all(calls, run.nodes, "ansible.builtin.find", {"paths": run.dir, "patterns": "summary*.json"})
    summaries = []
    for node, answer in found.items():
        for file in answer["files"]:
            if int(file["size"]) > MOST_OF_A_SUMMARY:
                cause = f"{file['path']} has more than 1 MiB, which is not the summary of a rank"
                raise Refused(node, "read the summaries of the ranks", cause, "remove it, and evaluate the run again")
            text = text_on(calls, node, file["path"])
            summaries.append(node_setup.parsed(node, f"read the summary {file['path']}", text, dict))
    return summaries


def esxi_counters(calls: TrainingCalls, run: TrainingRun, prepared: Prepared) -> list[dict[str, Any]]:
    """Return the RDMA counters of the ESXi hosts: PVRDMA can fall back to TCP below the guest, which only they show."""
    drivers = [hca.get("driver") for hcas in prepared.hcas.values() for hca in hcas]
    hosts = sorted(set(run.o["esxi_hosts"].values()))
    if not hosts or "vmw_pvrdma" not in drivers:
        return []
    options = {"hosts": hosts, "gather": ["rdma", "network", "pvrdma"]}
    return list(required(calls.here("esxi_info", options))["hosts"])


def esxi_counters_after(calls: TrainingCalls, run: TrainingRun, prepared: Prepared) -> list[dict[str, object]]:
    """Return the counters after the job; without them, the result says that the transport is unproven."""
    try:
        return esxi_counters(calls, run, prepared)
    except CollectionError as error:
        calls.show(str(error))
        return []


def judge(calls: TrainingCalls, run: TrainingRun, seen: Mapping[str, Any], records: str) -> Result:
    """Write the result of a run, and fail if ranks have different parameters or another transport than requested.

    ``seen`` has ``prepared``, ``report``, ``followed`` and ``esxi_before``.
    """
    o, prepared, followed = run.o, seen["prepared"], seen["followed"]
    report = required(seen["report"])
    summaries = read_summaries(calls, run)
    fields = {
        "name": run.name,
        "nodes": list(run.nodes),
        **{key: o[key] for key in ("ranks_per_node", "transport", "stack", "gradient_bytes", "esxi_hosts")},
        "neighbours": o["neighbours"],
        "asked": request_of(o),
        "pace": followed["pace"],
        "curve": followed["curve"],
        "records": records,
        "summaries": summaries,
        "cards": [node["card"] for node in run.ranks_of_nodes(prepared)],
        "built": built(run),
        "rdma_before": dict(prepared.hcas),
        "rdma_after": node_setup.read_hcas(calls, run),
        "esxi_before": seen["esxi_before"],
        "esxi_after": esxi_counters_after(calls, run, prepared),
    }
    judged = result.result(fields, dict(report["job"]), report["printed"])
    _write_result(calls, run, judged)
    faults = result.faults(judged, summaries, run.dir, **_strictness(o, followed["pace"]))
    return {"result": judged, "faults": faults, "summary": result.summary(judged)}


def _strictness(o: Mapping[str, Any], pace: Mapping[str, Any]) -> dict[str, Any]:
    """Return which faults of a run count that the user may accept."""
    apart = "" if GROUP in o["accept"] else str(pace.get("apart") or "")
    return {"prove": bool(o["prove"]), "fail_on_nan": bool(o["fail_on_nan"]), "apart": apart}


def judge_restart(calls: TrainingCalls, run: TrainingRun) -> Result:
    """Return the verdict on the restart of a run that resumed another one."""
    return calls.runs.judge_restart(run.o["results"], run.name)


def _write_result(calls: TrainingCalls, run: TrainingRun, judged: Mapping[str, Any]) -> None:
    text = json.dumps(judged, indent=4, sort_keys=True)
    calls.files.write_private(run.o["results"], {f"{run.name}.json": text})
    proof = judged["proof"]
    end = {
        "images_per_sec": judged["images_per_sec"],
        "transport": proof["transport"],
        "transport_reason": proof["why"],
    }
    _keep(calls, run, end=end)
