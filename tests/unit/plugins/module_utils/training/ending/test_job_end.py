"""The cause of the end of an mpirun job, and its command line."""

from __future__ import annotations

from typing import Any

import pytest

from plugins.module_utils.training.ending.job_end import cause_of
from plugins.module_utils.training.launch.mpirun import LaunchError, job_of

RANKS = ["n1", "n2", "n3", "n4"]
# The output of Open MPI 4.1.4 in such cases.
KILLED = "mpirun noticed that process rank 2 with PID 16 on node n3 exited on signal 9 (Killed)."
EXITED = """Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:

  Process name: [[28342,1],1]
  Exit code:    3
"""
LOST = """ORTE has lost communication with a remote daemon.

  HNP daemon   : [[4027,0],0] on node n1
  Remote daemon: [[4027,0],2] on node n3

This is usually due to either a failure of the TCP network
connection to the node, or possibly an internal failure of
the daemon itself. We cannot recover from this failure, and
therefore will terminate the job.
"""
NO_PROGRAM = """mpirun was unable to find the specified executable file, and therefore
did not launch the job.  could not find an executable:

Executable: /nowhere/python
Node: n2
"""
ALONE = """ORTE was unable to reliably start one or more daemons.
A process or daemon was unable to complete a TCP connection
to another process:
  Local host:    n2
  Remote host:   n1
This is usually caused by a firewall on the remote host.
"""
TRACEBACK = """[1,1]<stderr>:Traceback (most recent call last):
[1,1]<stderr>:  File "train.py", line 3, in <module>
[1,1]<stderr>:    raise RuntimeError("the loss went away")
[1,1]<stderr>:RuntimeError: the loss went away
"""
# The same on a loaded node: mpirun read rank 1 in pieces, and rank 0 in between.
SYNTAX = (
    '[1,1]<stderr>:  File "/runs/train.py", line 1\n[1,1]<stderr>:    def train(:\n[1,1]<stderr>:              ^\n'
    "[1,1]<stderr>:SyntaxError: invalid syntax\n"
)
PIECES = """[1,1]<stderr>:Traceback (most recent call last):
[1,1]<stderr>:  File "train.py", line 12, in <module>
[1,1]<stderr>:    [1,1]<stderr>:raise RuntimeError("the loss went away")[1,1]<stderr>:
[1,1]<stderr>:RuntimeError[1,0]<stdout>:step 12
[1,1]<stderr>:: [1,1]<stderr>:the loss went away[1,1]<stderr>:
"""
# The report of a rank that loses a peer: https://github.com/horovod/horovod/issues/3412, and NCCL's through PyTorch.
SHUT_DOWN = """[1,0]<stderr>:Traceback (most recent call last):
[1,0]<stderr>:tensorflow.python.framework.errors_impl.UnknownError: Horovod has been shut down. This was caused
"""
REMOTE = (
    "[1,3]<stderr>:torch.distributed.DistBackendError: NCCL error: remote process exited or there was a network error\n"
)
INTERNAL = "[1,0]<stderr>:horovod.common.exceptions.HorovodInternalError: HorovodAllreduce.grads failed\n"
ABORT = """--------------------------------------------------------------------------
MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD
with errorcode -1.

NOTE: invoking MPI_ABORT causes Open MPI to kill all MPI processes.
"""
WENT_AWAY = "rank 1 on n2 ended: RuntimeError: the loss went away (train.py, line 3)"
SIGNAL = "rank 2 on n3 (process 16) was ended by signal 9 (Killed)"
COLOURED = "[1,1]<stderr>:\x1b[1;31mRuntimeError\x1b[0m: the loss\x1b[K went away\n"


@pytest.mark.parametrize(
    ("output", "code", "sentence", "rank"),
    [
        (SHUT_DOWN + KILLED, 137, SIGNAL, 2),
        (INTERNAL + REMOTE + EXITED, 1, "rank 1 on n2 ended with exit code 3", 1),
        (SHUT_DOWN + TRACEBACK + EXITED, 1, WENT_AWAY, 1),
        (INTERNAL + TRACEBACK + EXITED.replace(",1]\n", ",0]\n"), 1, WENT_AWAY, 1),
        (
            INTERNAL + EXITED.replace(",1]\n", ",0]\n"),
            1,
            f"some rank is gone, as rank 0 on n1 reported: {INTERNAL[14:].strip()}",
            None,
        ),
        (INTERNAL + LOST, 1, "the launcher lost the node n3", 2),
        (INTERNAL + REMOTE, 1, f"some rank is gone, as rank 0 on n1 reported: {INTERNAL[14:].strip()}", None),
        (TRACEBACK + KILLED, 137, SIGNAL, 2),
        (
            TRACEBACK + KILLED.replace("rank 2", "rank 1").replace("signal 9 (Killed)", "signal 6 (Aborted)"),
            134,
            WENT_AWAY,
            1,
        ),
        (KILLED.replace(" (Killed)", ""), 137, SIGNAL.replace(" (Killed)", ""), 2),
        (INTERNAL + REMOTE + TRACEBACK + EXITED.replace(",1]\n", ",0]\n"), 1, WENT_AWAY, 1),
        ("[1,0]<stdout>:write failed: No space left on device", 1, "a disk is full: No space left on device", None),
        ("[1,4]<stderr>:ValueError: no", 1, "rank 4 on an unknown node ended: ValueError: no", 4),
        ("", 0, "mpirun ended with exit code 0", None),
        (KILLED.replace("PID 16", "PID 0"), 137, "rank 2 on n3 was ended by signal 9 (Killed)", 2),
        (KILLED.replace("exited on", "exited \non"), 137, SIGNAL, 2),
        (SHUT_DOWN + ABORT, 255, "rank 2 on n3 called MPI_Abort with code -1", 2),
        (
            TRACEBACK.replace("[1,1]", "[1,2]") + ABORT,
            1,
            "rank 2 on n3 ended: RuntimeError: the loss went away (train.py, line 3)",
            2,
        ),
        (ABORT.replace("MPI_COMM_WORLD", "MPI COMMUNICATOR 3"), 1, "mpirun ended with exit code 1", None),
        (
            EXITED.replace("[[28342,1],1]", "[prterun-n1-100629@1,1]").replace("mpirun", "prterun"),
            3,
            "rank 1 on n2 ended with exit code 3",
            1,
        ),
        ("[1,0]<stdout>:" + KILLED + "\n" + EXITED, 3, "rank 1 on n2 ended with exit code 3", 1),
        (COLOURED + EXITED, 1, "rank 1 on n2 ended: RuntimeError: the loss went away", 1),
        ("[1,1]<stderr>:ValueError: a\u2028b\n" + EXITED, 1, "rank 1 on n2 ended: ValueError: a\u2028b", 1),
        (KILLED, 137, SIGNAL, 2),
        (EXITED, 3, "rank 1 on n2 ended with exit code 3", 1),
        (TRACEBACK + EXITED, 1, WENT_AWAY, 1),
        (SYNTAX + EXITED, 1, "rank 1 on n2 ended: SyntaxError: invalid syntax (train.py, line 1)", 1),
        (PIECES + EXITED, 1, "rank 1 on n2 ended: RuntimeError: the loss went away (train.py, line 12)", 1),
        (LOST, 205, "the launcher lost the node n3", 2),
        (NO_PROGRAM, 134, "the program /nowhere/python cannot be run on n2", 1),
        (ALONE, 1, "MPI's daemon on n2 could not connect to n1: look for a firewall between them", 1),
        (ALONE[:54], 1, "MPI could not start its daemon on some node", None),
        (
            "ssh: connect to host n4 port 22: No route to host\nORTE was unable to reliably start one or more daemons.",
            255,
            "the launcher could not reach the node n4: ssh: connect to host n4 port 22: No route to host",
            3,
        ),
        (
            "dml@n2: Permission denied (publickey).",
            255,
            "the launcher could not reach the node n2: dml@n2: Permission denied (publickey).",
            1,
        ),
        (
            "Host key verification failed.",
            255,
            "the launcher could not reach a node: Host key verification failed.",
            None,
        ),
        (
            "There are not enough slots available in the system",
            1,
            "the nodes have fewer slots than requested ranks",
            None,
        ),
        (
            "[1,3]<stderr>:OSError: [Errno 28] No space left on device",
            1,
            "rank 3 on n4 found the disk full: OSError: [Errno 28] No space left on device",
            3,
        ),
        ("[1,0]<stdout>:SyntaxError: only printed", 7, "mpirun ended with exit code 7", None),
        ("", -15, "mpirun was ended by signal 15", None),
        ("", None, "mpirun is gone and left no exit code: the launcher was rebooted, or a user killed mpirun", None),
    ],
)
def test_the_cause_is_reported(output: str, code: int | None, sentence: str, rank: int | None) -> None:
    cause = cause_of(output, code, RANKS)
    assert (cause.sentence, cause.rank) == (sentence, rank)
    assert cause.node == (None if rank is None or rank >= len(RANKS) else RANKS[rank])


@pytest.mark.parametrize(
    ("output", "code", "is_of_machine"),
    [
        (LOST, 1, True),
        (KILLED, 137, True),
        (KILLED.replace("9 (Killed)", "11 (Segmentation fault)"), 139, False),
        ("[1,0]<stderr>:ValueError: the rank was ended by signal 9", 1, False),
        ("", None, True),
        ("", -9, True),
        ("", 1, False),
    ],
)
def test_only_lost_nodes_and_kills_are_machine_failures(output: str, code: int | None, is_of_machine: bool) -> None:
    assert cause_of(output, code, RANKS).is_of_machine is is_of_machine


@pytest.mark.parametrize(
    ("command", "hosts", "ranks", "words"),
    [
        ([], [{"name": "n1"}], None, "command is empty"),
        (["x"], [], None, "the hosts have 0 slots"),
        (["x"], [{"name": "n1"}, {"name": "n1"}], None, "'n1' twice"),
        (["x"], [{"name": "n1", "slots": -1}], None, "with -1 slots"),
        (["x"], [{"name": "-oProxyCommand=x"}], None, "'-oProxyCommand=x'"),
        (["x"], [{"name": "n1"}], 2, "specify from 1 to 1"),
        (["x"], [{"name": "n1"}], 0, "specify from 1 to 1"),
    ],
)
def test_an_impossible_job_is_refused(command: list[str], hosts: list[Any], ranks: int | None, words: str) -> None:
    with pytest.raises(LaunchError, match=words):
        job_of(command, hosts, ranks)
