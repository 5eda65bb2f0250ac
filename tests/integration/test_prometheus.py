"""The metrics, the alert rules and the dashboard, judged by Prometheus of the distribution and its promtool."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from plugins.module_utils.training.output.gpu_use import GpuUse, NodeGpus
from plugins.module_utils.training.output.live_state import JobMove, metrics
from plugins.module_utils.trials.folder.job_moves import metrics as window_metrics
from plugins.module_utils.usage.usage_report import report
from plugins.module_utils.usage.usage_text import metrics as audit_metrics
from plugins.module_utils.watch.live_pace import LivePace
from tests.unit.plugins.module_utils.training.output.test_live_state import state_of
from tests.unit.plugins.module_utils.trials.programs.test_maintenance_window import Window
from tests.unit.plugins.module_utils.usage.reports import facts, gpu, user
from tests.unit.plugins.module_utils.watch.test_live_pace import record

ROOT = Path(__file__).resolve().parents[2]
ALERTS, DASHBOARD = (ROOT / "extensions" / "prometheus" / name for name in ("alerts.yml", "grafana.json"))
NAME = re.compile(r"\bdml_[a-z_]+\b")


def program(name: str) -> str:
    """Return the path of a program of Debian's package prometheus."""
    found = shutil.which(name) or shutil.which(name, path=str(ROOT / ".cache/prometheus/usr/bin"))
    assert found, f"{name} is missing: run tools/setup --tests"
    return found


def promtool(*words: str, text: str | None = None) -> None:
    """Have promtool check something."""
    done = subprocess.run(
        (program("promtool"), *words), check=False, input=text, text=True, capture_output=True, timeout=60
    )
    assert done.returncode == 0 and not done.stderr.strip(), done.stdout + done.stderr


@pytest.fixture(scope="module")
def texts() -> dict[str, str]:
    """Return the metrics of a run, of a maintenance window and of an audit, as the collection writes them."""
    pace = LivePace()
    pace.feed([record(0, 1, 1.0, host='n"1\\'), record(1, 1, 2.0, host="Zürich\n"), record(1, 2, 7.0, loss="nan")])
    nodes = [NodeGpus("n1", (GpuUse(0, "A", 93.0, 5, 9),), "")]
    moves = [JobMove("w1", "a", "b", 3.0, 4.0, "moved"), JobMove("w1", "b", "a", 5.0, 6.0, "moved")]
    run = state_of(pace, gpus=nodes, moves=moves, silence_limit=300.0)
    audited = report(facts(gpu("e1", user("a", "red", 0.5), mean=1.0), gpu("e2"), cluster="gpu"))
    window = window_metrics(Window().carry_out(), "gpu-1", 100.0, is_running=True)
    return {"run": metrics(run), "window": window, "audit": audit_metrics(audited)}


def test_promtool_accepts_all_metrics(texts: dict[str, str]) -> None:
    for text in texts.values():
        promtool("check", "metrics", text=text)


def test_each_alert_fires_when_it_should_only() -> None:
    promtool("check", "rules", "--lint-fatal", str(ALERTS))
    promtool("test", "rules", str(ROOT / "tests/fixtures/prometheus/alerts.yml"))


def test_dashboard_and_alerts_use_known_metrics_only(texts: dict[str, str], tmp_path: Path) -> None:
    known = set(NAME.findall(" ".join(re.findall(r"^# TYPE (\S+)", "".join(texts.values()), re.MULTILINE))))
    board = json.loads(DASHBOARD.read_text())
    used = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    used += [one["expr"] for one in board["annotations"]["list"]]
    assert len(used) > 15 and {one["name"] for one in board["annotations"]["list"]} == {"Moves", "Windows"}
    names = set(NAME.findall(" ".join(used) + ALERTS.read_text())) - {"dml_vsphere"}
    assert names <= known, names - known
    rules = [{"record": f"a{number}", "expr": expr.replace("$run", ".*")} for number, expr in enumerate(used)]
    (tmp_path / "used.yml").write_text(json.dumps({"groups": [{"name": "used", "rules": rules}]}))
    promtool("check", "rules", str(tmp_path / "used.yml"))


def test_real_prometheus_scrapes_all_values_and_fires(texts: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "metrics").write_text("".join(texts.values()))
    with served(tmp_path) as exporter, prometheus(tmp_path, exporter) as address:
        expected = sum(not line.startswith("#") for line in "".join(texts.values()).splitlines())
        assert until(lambda: len(query(address, '{__name__=~"dml_.*"}')), expected) == expected
        strange = query(address, 'dml_training_step{rank="0"}')[0]["metric"]
        assert (strange["node"], strange["run"]) == ('n"1\\', "one")
        firing, due = 'ALERTS{alertstate="firing"}', {"TrainingUnwatched", "TrainingLossNotFinite"}
        assert until(lambda: {one["metric"]["alertname"] for one in query(address, firing)}, due) == due


@contextmanager
def served(folder: Path) -> Iterator[int]:
    """Serve a folder as an exporter would, on a free port."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class Quiet(SimpleHTTPRequestHandler):
    """Writes no log."""

    def log_message(self, *_words: Any) -> None:
        """Write nothing."""


@contextmanager
def prometheus(folder: Path, exporter: int) -> Iterator[str]:
    """Run Prometheus with our alert rules, which scrapes an exporter each second, and yield its address."""
    target = {"job_name": "dml", "static_configs": [{"targets": [f"127.0.0.1:{exporter}"]}]}
    every = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config = {"global": every, "rule_files": [str(ALERTS)], "scrape_configs": [target]}
    (folder / "prometheus.yml").write_text(json.dumps(config))
    with ThreadingHTTPServer(("127.0.0.1", 0), SimpleHTTPRequestHandler) as free:
        address = f"127.0.0.1:{free.server_port}"
    words = ("--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}")
    with (folder / "log").open("w") as log:
        running = subprocess.Popen((program("prometheus"), *words), cwd=folder, stderr=log, stdout=log)
    try:
        yield f"http://{address}"
    finally:
        running.terminate()
        running.wait(30)


def query(address: str, expression: str) -> list[dict[str, Any]]:
    """Return the series of an expression; none while Prometheus starts."""
    try:
        with urllib.request.urlopen(
            f"{address}/api/v1/query?query={urllib.parse.quote(expression)}", timeout=10
        ) as got:
            result: list[dict[str, Any]] = json.load(got)["data"]["result"]
    except OSError:
        return []
    return result


def until(read: Any, expected: Any, seconds: float = 60.0) -> Any:
    """Return a value as soon as it is the expected one, or the last one."""
    deadline = time.monotonic() + seconds
    while (value := read()) != expected and time.monotonic() < deadline:
        time.sleep(0.2)
    return value
