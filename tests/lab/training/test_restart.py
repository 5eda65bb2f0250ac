"""Jobs on real nodes are asked for a checkpoint by a signal, stopped and started again: Horovod, and under torchrun."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.integration.restarting import restart
from tests.lab.benchmark import PYTHON, Cluster

pytestmark = pytest.mark.slow
# Both ranks agree on the step at which they save and end, as the signal reaches them in different steps.
BEGIN = """
import os, signal, sys, time
import numpy as np
import dml_records
requests = []
signal.signal(signal.SIGUSR1, lambda *_: requests.append(1))
weights, done = np.zeros(4), 0
if len(sys.argv) > 1 and sys.argv[1]:
    with np.load(sys.argv[1]) as saved:
        weights, done = saved["weights"], int(saved["step"])
"""
LOOP = """
for step in range(done + 1, done + (20 if done else 100000) + 1):
    time.sleep(0.1)
    gradient, must_end = combined(np.cos(weights + rank + step), bool(requests))
    weights = weights + 0.01 * gradient
    records.step(images=8, loss=float(((weights - 1) ** 2).sum()))
    if rank == 0 and (must_end or step % 20 == 0):
        with open("outputs/written", "wb") as file:
            np.savez(file, weights=weights, step=step)
        os.replace("outputs/written", f"outputs/step{step}.npz")
    if must_end:
        sys.exit(CODE)
"""
HOROVOD = f"""{BEGIN}
import horovod.tensorflow as hvd
import tensorflow as tf
hvd.init()
rank, CODE = hvd.rank(), 0
records = dml_records.start(first_step=done + 1)
def combined(values, flag):
    summed = hvd.allreduce(tf.constant(np.append(values, float(flag))), op=hvd.Sum, name="all").numpy()
    return summed[:-1] / hvd.size(), summed[-1] > 0
{LOOP}"""
# torchrun gives the meeting point; the agent would report 1 although both ranks have saved.
TORCHRUN = f"""{BEGIN}
import socket
rank, CODE = int(os.environ["RANK"]), 1
place = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
if rank == 0:
    peer = socket.create_server(("", place[1])).accept()[0]
while rank == 1:
    try:
        peer = socket.create_connection(place, 60)
        break
    except OSError:
        time.sleep(0.2)
records = dml_records.start(first_step=done + 1)
def combined(values, flag):
    peer.sendall(np.append(values, float(flag)).tobytes())
    other = np.frombuffer(b"".join(peer.recv(1) for _byte in range(40)))
    return (values + other[:-1]) / 2, bool(flag or other[-1])
{LOOP}"""
TORN = (
    "cd /var/lib/dml/runs/{0}/work/outputs && "
    "sudo -u {1} sh -c 'head -c 40 step20.npz > step99999.npz; touch -d 1hour step99999.npz'"
)
JOBS = [
    ("horovod", HOROVOD, "python train.py {resume}", 0),
    ("torchrun", TORCHRUN, "torchrun --nproc-per-node 1 train.py {resume}", 1),
]


@pytest.mark.parametrize(("name", "script", "command", "code"), JOBS, ids=lambda value: str(value).split()[0][:12])
def test_job_saves_at_a_signal_and_resumes(
    cluster: Cluster, tmp_path: Path, name: str, script: str, command: str, code: int
) -> None:
    (tmp_path / "train.py").write_text(script)
    program = {"training_folder": str(tmp_path), "training_command": command, "training_python": PYTHON}
    running = cluster.begin(name, **program, training_warmup=3)
    cluster.trained(name, running, step=25)
    owner = cluster.inside("n1", f"stat -c %U /var/lib/dml/runs/{name}/work/outputs/step20.npz").strip()
    cluster.inside("n1", TORN.format(name, owner))

    done = restart(cluster.ansible, cluster.inventory, results(cluster), signal="USR1")

    assert cluster.end(running)[0] != 0, "whoever follows the run sees that it was stopped"
    newest, torn = done["seen"]["newest"], done["seen"]["torn"]
    assert (torn["path"], torn["why"]) == ("step99999.npz", "its archive has no directory, so it was cut off")
    assert (done["saved"], done["stopped"]["state"], newest["path"]) == (True, "stopped", f"step{newest['step']}.npz")
    assert bool(done["stopped"]["exit_code"]) == bool(code), done["stopped"]
    assert done["started"]["run"] == f"{name}-2"
    again = {**results(cluster), "training_name": name}
    followed = cluster.ansible.playbook("playbooks/train.yml", "-i", str(cluster.inventory), "-e", json.dumps(again))
    assert followed.rc == 0 and f"{name}-2: resumed" in followed.out, followed.out
    assert "torn, so an earlier checkpoint was used: step99999.npz" in followed.out, followed.out


def results(cluster: Cluster) -> dict[str, Any]:
    return {"training_results": str(cluster.folder / "results"), "training_warmup": 3}
