"""Programs that read one named run: its output, files of its folder, or what a command prints in its folder."""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence

from ...durable.calls import required
from ...errors import Refused
from ...watch.mpi_output import lines_of
from ...watch.shown_lines import without_signals
from ..results.manifest import Manifest
from ..runs import job_search
from ..runs.run_files import COMMAND
from ..runs.training_run import KUBERNETES, MPI, TrainingFailed, TrainingRun
from .follow import ALIVE, TrainingSite, follow_command

# The interpreter of the run comes first, so that "python" has its packages. A failed module would lose the output.
SHELL = ("sh", "-c", 'PATH="$0:$PATH"; export PATH; "$@" 2>&1; code=$?; echo; echo "$code"')


def require_known(run: TrainingRun) -> None:
    """Refuse a name that neither this controller nor a launcher knows."""
    if not run.known:
        raise TrainingFailed(
            f"Neither {run.results} nor a worker has the manifest of the training run {run.name}. The playbook "
            "dml.vsphere.runs lists the runs."
        )


def logs(site: TrainingSite, run: TrainingRun, most: int) -> dict[str, object]:
    """Return the last lines of the output of a run, by rank, and a line about its state."""
    require_known(run)
    job = site.job_of(run)
    # The launcher reports the state with the output; Kubernetes and Slurm do not.
    looked = {} if run.o["backend"] == MPI else job.look()
    report = required(job.report(required(looked)))
    texts = without_signals(lines_of(str(report.get("output") or "")))[-most:]
    state = report["job"]["state"]
    why = f": {report['job']['why']}" if report["job"].get("why") else ""
    follow = f" To follow it, use {follow_command(run)} -e training_show=log" if state in ALIVE else ""
    return {"lines": [*texts, f"The training run {run.name} is {state}{why}.{follow}"], "changed": False}


def fetch(site: TrainingSite, run: TrainingRun, path: str, *, is_check: bool) -> dict[str, object]:
    """Copy the outputs of a run, or a file or folder of its working folder, also while it trains."""
    require_known(run)
    if not run.o["folder"]:
        raise Refused(
            f"the training run {run.name}", "fetch its files", "it has no training_folder", "copy them by hand"
        )
    plain = posixpath.normpath(path or run.o["outputs"])
    if posixpath.isabs(plain) or plain.split("/")[0] == "..":
        raise Refused("training_fetch", "fetch it", f"{path} is not in the folder of the run", "name a path in it")
    node = run.rank_0
    there = posixpath.join(run.work, plain)
    if is_check:
        return {"lines": [f"would copy {there} of {node} to {run.results}"], "changed": True}
    reach, limit = run.nodes[node]["reach"], int(run.o["outputs_limit"])
    if there == run.outputs:
        dest = f"{run.results}/outputs"
        copied = site.calls.outputs.copy_growing(node=node, reach=reach, folder=there, dest=dest, limit=limit)
    else:
        # The names of the files in "." begin with it, and so do not have that of a folder.
        place, (folder, name) = _place(run, plain), posixpath.split(there)
        dest = place if plain == "." else posixpath.dirname(place)
        copied = site.calls.outputs.copy_path(node=node, reach=reach, folder=folder, path=name, dest=dest, limit=limit)
    count = len(copied["names"])
    return {"lines": [f"{count} file{'s' * (count != 1)} of {node}:{there}: in {dest}"], **copied}


def _place(run: TrainingRun, path: str) -> str:
    """Return the path on the controller for a path of the working folder; outputs belong to those of the run."""
    inner = posixpath.relpath(path, run.o["outputs"])
    is_output = inner.partition("/")[0] != ".."
    return posixpath.normpath(f"{run.results}/outputs/{inner}" if is_output else f"{run.results}/fetched/{path}")


def execute(site: TrainingSite, run: TrainingRun, command: Sequence[str], *, is_check: bool) -> dict[str, object]:
    """Run a command in the folder of a run on each of its nodes, as its user and with its packages."""
    require_known(run)
    if run.o["backend"] == KUBERNETES or run.known.get("image"):
        remedy = "use kubectl exec, or podman exec on the node"
        raise Refused(f"the training run {run.name}", "run a command", "its ranks run in containers", remedy)
    if not command:
        raise Refused("training_exec", "run a command", "it is empty", "name a command, such as -- nvidia-smi")
    nodes = [name for name in run.known["nodes"] if name in run.nodes]
    if is_check:
        return {"lines": [f"would run {' '.join(command)} on {', '.join(nodes)}"], "changed": True}
    words = [*SHELL, posixpath.dirname(_python(run)) or "/usr/bin", *command]
    # The playbook itself runs as root, and the user of the login has no name here.
    user = str(run.nodes[nodes[0]]["user"]) or _owner(site, run, nodes[0])
    answers = site.calls.as_user(user).on_each(
        COMMAND, {node: {"argv": words, "chdir": run.work or run.dir} for node in nodes}
    )
    printed = {node: _printed(answer) for node, answer in answers.items()}
    lines = [f"{node}: {line}" for node, (text, _end) in printed.items() for line in text.splitlines()]
    failed = [f"{node} ({end})" for node, (_text, end) in printed.items() if end != "0"]
    failure = {"failed": True, "msg": f"{' '.join(command)} failed on {', '.join(failed)}."} if failed else {}
    return {"lines": lines, "changed": True, **failure}


def _owner(site: TrainingSite, run: TrainingRun, node: str) -> str:
    """Return the user of the folder of a run."""
    found = required(site.calls.on(node, "ansible.builtin.stat", {"path": run.dir, "get_checksum": False}))["stat"]
    user = str(found.get("pw_name") or "")
    if not user:
        cause = f"the user of {run.dir} on {node} is unknown"
        raise Refused(f"the training run {run.name}", "run a command as its user", cause, "check this folder")
    return user


def _printed(answer: Mapping[str, object]) -> tuple[str, str]:
    """Return the output of a command, and its exit code, or the reason if it was not run."""
    if answer.get("failed"):
        return "", str(answer.get("msg"))
    text, _line, code = str(answer.get("stdout") or "").rstrip("\n").rpartition("\n")
    return text.rstrip("\n"), code


def _python(run: TrainingRun) -> str:
    """Return the interpreter of the ranks; empty if their command is another program."""
    words = [str(word) for word in run.known.get("words") or []]
    return words[0] if words and posixpath.basename(words[0]).startswith("python") else ""


def known_manifest(site: TrainingSite, run: TrainingRun) -> Manifest:
    """Return the manifest of a run of this controller, or else the one on its launcher, for which all are asked."""
    if run.known:
        return run.known
    reported = job_search.reported_manifest(site.calls, run.o, run.nodes)
    return job_search.known_manifest(site.calls, run.o, {}, reported)
