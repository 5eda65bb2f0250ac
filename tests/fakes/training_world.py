"""Nodes, jobs and files of a controller, which answer the calls of the training programs as the modules do."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, cast

from plugins.module_utils.training.ending.job_state import SIGNAL_REQUEST, STOP_REQUEST
from plugins.module_utils.training.programs.follow import TrainingSite
from plugins.module_utils.training.results import manifest
from plugins.module_utils.training.results.attempts import previous
from plugins.module_utils.training.runs import run_source
from plugins.module_utils.training.runs.any_job import OwnMpirun
from plugins.module_utils.training.runs.controller_site import Files, KeptRuns, NodeReads, Outputs, Records
from plugins.module_utils.training.runs.run_watch import LATE_SECONDS
from plugins.module_utils.training.runs.training_run import TrainingRun
from tests.fakes.deaths import MortalWorld
from tests.fakes.options_check import SitePart, check_options
from tests.fakes.training_options import OPTIONS

ARCHIVE = {"state": {"sha256": "ab" * 32}, "files": 1, "bytes": 9, "git": {}, "changed": True}
CARD = {"device": "ens224", "speed": 10000, "ipv4": {"address": "10.0.0.1", "netmask": "255.255.255.0"}}
PARTS = {"records": Records, "outputs": Outputs, "files": Files, "runs": KeptRuns, "nodes": NodeReads}


class Job:
    """A job on its launcher: it runs until it was read ``looks`` times, and then ends as its attempt should."""

    def __init__(self, options: Mapping[str, Any], end: Mapping[str, Any], started: float) -> None:
        self.options, self.end, self.looks, self.started = options, dict(end), 0, started

    def read(self) -> dict[str, Any]:
        self.looks += 1
        state = self.end if self.looks > 1 else {"state": "running"}
        return {"started": self.started, **state}

    @property
    def is_running(self) -> bool:
        return self.looks <= 1 or self.end["state"] == "running"

    def stop(self) -> None:
        if self.is_running:
            self.looks, self.end = 2, {"state": "stopped", "ended": 5.0}


class TrainingWorld(MortalWorld):
    """Two nodes; ``ends`` has the end of each attempt.

    ``powers_off`` has the nodes that go off while the job is followed, with the seconds until they answer again.
    """

    def __init__(self, deaths: Iterable[int] = (), **options: Any) -> None:
        super().__init__(deaths)
        self.o = {**OPTIONS, **options}
        self.ends: list[dict[str, Any]] = [{"state": "finished", "ended": 1.0}]
        self.away, self.powers_off = dict[str, float](), dict[str, float]()
        # The seconds by which the clocks of the nodes are behind that of the controller.
        self.behind = 0.0
        self.jobs, self.starts, self.watches = dict[str, Job](), Counter[str](), set[str]()
        self.here_files, self.node_files = dict[str, Any](), dict[tuple[str, str], str]()
        self.archive = {"isreg": True, "size": 9, "checksum": ARCHIVE["state"]["sha256"]}
        self.outputs_at, self.copied_from, self.has_outputs = dict[str, float](), list[str](), True
        # The folders here to which no outputs can be copied, the nodes that refuse a folder, and the user's folder now.
        self.too_large, self.full = set[str](), set[str]()
        self.folder_sha256 = ARCHIVE["state"]["sha256"]
        self.sent, self.last_seen = list[dict[str, Any]](), cast("float | None", 1e9)
        self.has_records, self.is_late = True, False
        self.stacks, self.due, self.phase = "", 0, "train"
        self.lacks_code, self.kept_code, self.read_folders = False, list[str](), list[str]()
        # Why a job could not be stopped, or may have left processes.
        self.stops, self.network, self.why_not_stopped, self.left_after_stop = list[str](), list[str](), "", ""
        # The ranks that train separate models, and why the newest checkpoint cannot be resumed from.
        self.apart = self.unusable = ""
        self.left, self.sick, self.usual = list[dict[str, Any]](), dict[str, str](), dict[str, float]()
        self.gpudirect: bool | None = None
        self.waits, self.breaches = list[str](), list[dict[str, Any]]()
        # The checkpoints as training_info returns them, the ranks that run, and those that got each signal.
        self.checkpoints: dict[str, Any] = {"seen": [SAVED], "interval": 60.0, "bytes": 100}
        self.ranks, self.signals, self.mute, self.stuck = ["0", "1"], list[tuple[str, str]](), dict[str, str](), ""
        for part, protocol in PARTS.items():
            setattr(self, part, SitePart(protocol, self.here, f"{part}_"))

    @property
    def site(self) -> TrainingSite:
        return TrainingSite(self, partial(OwnMpirun, self), "/role/files")

    def run(self, **more: Any) -> TrainingRun:
        """Return the run of the options; the controller's manifest of the run is that of its files."""
        nodes = {
            name: {
                "address": name,
                "interface": "ens224",
                "reach": ["ssh", name],
                "kubernetes": name,
                "slurm": name,
                "facts": FACTS,
                "user": "",
            }
            for name in self.o["nodes"]
        }
        return TrainingRun(self.o, nodes, self.o["name"], self.o["name"], "me@here", **more)

    def taken_up(self) -> TrainingRun:
        """Return the run as the command that has its name and its program makes it."""
        known = run_source.latest_attempt(self._manifest_of, self.o["name"])
        if not known:
            return self.run()
        followed = replace(self.run(), o=run_source.with_followed(self.o, known), name=known["name"])
        return run_source.taken_up(followed, known)

    def _manifest_of(self, name: str) -> dict[str, Any]:
        return dict(self.here_files.get(f"/results/{name}/{manifest.FILE}") or {})

    def as_user(self, user: str) -> TrainingWorld:
        self.log.append(f"as {user}")
        return self

    def controller(self) -> int:
        return 1

    def watch(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.effect("watch", lambda: self.watches.add(str(options["stop"])))
        return {}

    def here(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return cast("dict[str, Any]", self.effect(module, lambda: self._answer(module, "", options)))

    def on(self, host: str, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return dict(self.effect(f"{module} on {host}", lambda: self._answer(module, host, options)))

    def on_each(self, module: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
        return {host: self.on(host, module, each) for host, each in options.items()}

    def _answer(self, module: str, host: str, options: Mapping[str, Any]) -> Any:
        if self.away.get(host, 0.0) > self.clock:
            return {"failed": True, "unreachable": True, "msg": f"{host}: No route to host"}
        check_options(module, options)
        answer = getattr(self, f"_{module.rpartition('.')[2]}")
        result = answer(host, options)
        return {} if result is None else result

    def _file(self, host: str, options: Mapping[str, Any]) -> None:
        if options["state"] == "absent":
            self.jobs.pop(str(options["path"]), None)
            self.node_files.pop((host, str(options["path"])), None)

    _get_url = _unarchive = _fetch = _ping = lambda self, host, options: None

    def _records_new_folder(self, _host: str, options: Mapping[str, Any]) -> str:
        return f"{options['results']}/watch-{len(self.watches)}"

    def _records_why_ended(self, _host: str, _options: Mapping[str, Any]) -> str:
        return "no node can be reached"

    def _stat(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        assert options["checksum_algorithm"] == "sha256"
        return {"stat": self.archive}

    def _outputs_copy_growing(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        return {"failed": True, "msg": "w1: could not copy the outputs: the disk is full"}

    def _records_reported_end(self, _host: str, _options: Mapping[str, Any]) -> bool:
        return False

    def _runs_last_metrics(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        return {}

    def _nodes_read_stacks(self, _host: str, _options: Mapping[str, Any]) -> str:
        return self.stacks

    def _files_write_private(self, _host: str, options: Mapping[str, Any]) -> None:
        for name, text in options["files"].items():
            path = f"{options['folder']}/{name}"
            self.here_files[path] = text
            self.watches.discard(path)

    def _files_write_output(self, _host: str, options: Mapping[str, Any]) -> None:
        self.here_files[f"{options['folder']}/output.log"] = options["text"]

    def _files_keep_code(self, _host: str, options: Mapping[str, Any]) -> bool:
        self.kept_code.append(str(options["dest"]))
        self.read_folders.append(str(options["folder"]))
        return not self.lacks_code

    def _copy(self, host: str, options: Mapping[str, Any]) -> None:
        if options.get("force", True) or (host, str(options["dest"])) not in self.node_files:
            self.node_files[host, str(options["dest"])] = str(options["content"])

    def _command(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        (path,) = (word.partition("=")[2] for word in options["argv"] if word.startswith("if="))
        text = self.node_files.get((host, path))
        return {"failed": True} if text is None else {"stdout": text}

    def _find(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        return {"files": [], "matched": 0}

    def _training_folder(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        self.sent.append({"host": host, **options})
        if host in self.full:
            return {"failed": True, "msg": f"{host}: could not unpack the code: No space left on device"}
        if str(options.get("path")).endswith("/outputs") and not self.has_outputs:
            return {"failed": True, "msg": f"training_folder {options['path']}: there is no such folder"}
        if options.get("shared"):
            return {"changed": True, "data": f"{options['dest']}/{options['sha256']}"}
        installed = {"python": "/env/bin/python", "lock": ["extra==1.0"]} if options.get("environment") else {}
        return {**ARCHIVE, **installed}

    def _files_data_checksum(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return {"sha256": options["expected"] or "cd" * 32, "file": ""}

    def _runs_judge_restart(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        verdict = "broken" if self.breaches else "resumed"
        return {"verdict": verdict, "lines": [f"{options['name']}: {verdict}"], "breaches": self.breaches}

    def _runs_newest_checkpoint(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        has_outputs = self.has_outputs and str(options["folder"]) in self.outputs_at
        path = "epoch1.pt" if has_outputs else ""
        return {
            "path": path,
            "restart": {"path": path},
            "warnings": [],
            "has_files": has_outputs,
            "left_out": ["/old.pt"],
        }

    def _runs_unusable_checkpoint(self, _host: str, options: Mapping[str, Any]) -> str:
        return self.unusable if str(options["folder"]) in self.outputs_at else ""

    def _training_job(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        run_dir = str(options["run_dir"])
        if options.get("state") == "stopped":
            self.stops.append(run_dir)
            if self.why_not_stopped:
                return {"failed": True, "msg": self.why_not_stopped}
            is_running = run_dir in self.jobs and self.jobs[run_dir].is_running
            if is_running:
                self.jobs[run_dir].stop()
                self.last_seen = 1e9  # another job makes its steps
            if is_running and self.left_after_stop:
                return {"failed": True, "msg": self.left_after_stop}
            return {"changed": True, "job": self._read(run_dir)}
        if run_dir not in self.jobs:
            self.starts[run_dir] += 1
            number = min(len(self.jobs), len(self.ends) - 1)
            self.jobs[run_dir] = Job({"host": host, **options}, self.ends[number], self.clock - self.behind)
        job = self.jobs[run_dir].read() if self.jobs[run_dir].looks else {"state": "running"}
        if job["state"] not in ("running", "finished"):
            return {"failed": True, "msg": f"{host}:{run_dir}: could not start a job: its job has {job['state']}"}
        return {"changed": True}

    def _training_info(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        gather = options.get("gather", ["jobs"])
        printed = {"total": 8.0, "ways": ["NET/Socket"], "has_nccl": True}
        return {
            **(self._job(options) if "job" in gather else {}),
            **(self._jobs(host, options) if "jobs" in gather else {}),
            **({"printed": printed} if "printed" in gather else {}),
            **({"checkpoints": self.checkpoints} if "checkpoints" in gather else {}),
        }

    def _read(self, run_dir: str) -> dict[str, Any]:
        """Return a job as its launcher reports it; one whose end was requested was stopped, however it ended."""
        job = self.jobs.get(run_dir)
        read = job.read() if job else {"state": "absent"}
        paths = [("w1", f"{run_dir}/{name}") for name in (STOP_REQUEST, SIGNAL_REQUEST)]
        request = next((self.node_files[path] for path in paths if path in self.node_files), None)
        is_requested = request is not None and read["state"] not in ("running", "absent")
        return (
            {**read, "state": "stopped", "why": f"stopped by {json.loads(request or '{}')['by']}"}
            if is_requested
            else read
        )

    def _nodes_signal_ranks(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        if self.mute:
            return {"ranks": [], "size": 0, "errors": self.mute}
        # Rank 0 is on w1, and so on; the last signal ends all ranks but a stuck one.
        names = [node["name"] for node in options["nodes"]]
        ranks = [rank for rank in self.ranks if f"w{int(rank) + 1}" in names]
        self.signals += [(options["number"], rank) for rank in ranks if options["number"]]
        if options["number"] == "KILL":
            self.ranks = [rank for rank in self.ranks if rank not in ranks or rank in self.stuck]
        return {"ranks": ranks, "size": 2, "errors": {}}

    def _runs_followers(self, _host: str, options: Mapping[str, Any]) -> dict[str, str]:
        known = [each for path, each in self.here_files.items() if path.endswith(manifest.FILE)]
        return {each["name"]: each["asked_by"] for each in known if previous(each) == options["name"]}

    def _job(self, options: Mapping[str, Any]) -> dict[str, Any]:
        read = self._read(str(options["run_dir"]))
        return {"job": {**read, "output": "its output"} if options.get("output_bytes") else read}

    def _records_follow(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        self.here_files["page"] = options.get("state", "running")
        for host, seconds in self.powers_off.items():
            self.away[host] = self.clock + seconds
        self.powers_off = {}
        ended, self.due = "due" if self.due else "quiet", max(self.due - 1, 0)
        ended = "apart" if self.apart and options.get("ends_apart") else ended
        step = 0 if self.is_late and options.get("quiet", 0.0) < LATE_SECONDS else 40
        pace = {"step": step, "slowest": 1, "host": "w2", "loss": 0.5, "first_silent": "", "phase": self.phase}
        pace["apart"] = self.apart
        has_records = self.last_seen is not None or self.has_records
        return {"ended": ended, "last_seen": self.last_seen, "has_records": has_records, "pace": pace, "curve": {}}

    def _files_write_manifest(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        path = f"{options['folder']}/{manifest.FILE}"
        content = dict(options.get("manifest") or self.here_files[path])
        end = {**options.get("end", {}), **({"outputs": []} if options.get("outputs") else {})}
        self.here_files[path] = manifest.ended(content, end) if end else content
        return {"manifest": self.here_files[path]}

    def _outputs_copy(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        if self.away.get(str(options["node"]), 0.0) > self.clock:
            return {"failed": True, "msg": f"{options['node']}: could not list the outputs: No route to host"}
        if options["dest"] in self.too_large:
            return {"failed": True, "msg": f"{options['node']}: could not copy the outputs: they have 9000 MB"}
        self.outputs_at[str(options["dest"])] = self.clock
        self.copied_from.append(str(options["node"]))
        return {"names": ["epoch1.pt"]}

    def _files_code_checksum(self, _host: str, _options: Mapping[str, Any]) -> str:
        return self.folder_sha256

    def _jobs(self, host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        is_killed = any(number == "KILL" and host == f"w{int(rank) + 1}" for number, rank in self.signals)
        jobs = [
            {
                "name": run_dir.rpartition("/")[2],
                "run_dir": run_dir,
                "run_id": "r",
                "user": "carol",
                "asked_by": job.options["environment"].get("DML_RUN_BY", ""),
                "started": 1.0,
                "step": 7,
                "launched_here": host == "w1",
            }
            for run_dir, job in self.jobs.items()
            if job.is_running and not is_killed
        ]
        text = self.node_files.get((host, f"{options.get('manifest')}/{manifest.FILE}"), "")
        return {"jobs": jobs, "free_port": 29501, "manifest": text}

    def _nodes_read_gpus(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        names = [node["name"] for node in options["nodes"] if node["name"] in self.sick]
        finding = {"severity": "stop", "rule": "gpu_health"}
        nodes = {node["name"]: {"gpudirect": self.gpudirect} for node in options["nodes"]}
        findings = [{**finding, "object": name, "text": f"{name}: {self.sick[name]}"} for name in names]
        return {"findings": findings, "nodes": nodes}

    def _nodes_read_hang(self, _host: str, _options: Mapping[str, Any]) -> list[str]:
        return self.waits

    def _runs_network_findings(self, _host: str, _options: Mapping[str, Any]) -> list[str]:
        return self.network

    def _runs_remaining(self, _host: str, _options: Mapping[str, Any]) -> dict[str, Any]:
        done = {path.rpartition("/")[2][: -len(".json")] for path in self.here_files if path.endswith(".json")}
        left = [point for point in self.left if point["name"] not in done]
        return {"left": left, "summary": f"{len(left)} of {len(self.left)} runs are to be made"}

    def _files_write_pairs(self, _host: str, options: Mapping[str, Any]) -> dict[str, Any]:
        result = {"usual_gbits": self.usual.get(str(options["name"]))}
        return {"lines": [f"{options['name']}: {options['job']['state']}"], "error": "", "files": [], "result": result}

    def result(self, name: str) -> dict[str, Any]:
        """Return the result that the controller has of a run."""
        return dict(json.loads(self.here_files[f"/results/{name}.json"]))

    def kept(self, name: str) -> dict[str, Any]:
        """Return the manifest that the controller has of a run."""
        return dict(self.here_files[f"/results/{name}/{manifest.FILE}"])


SAVED: dict[str, Any] = {
    "path": "epoch1.pt",
    "kind": "a file",
    "why": "",
    "step": 1,
    "age": 20.0,
    "parts": 1,
    "bytes": 9,
    "optimizer": True,
}
FACTS: dict[str, Any] = {"ens224": CARD, "ansible_local": {"dml_stack": {"name": "lab"}}}
