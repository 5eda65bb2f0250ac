"""The program on a node asks ranks for dumps and RAS for its state, and reads no dump that is more than plain data."""

from __future__ import annotations

import os
import pickle
import socket
import threading
from pathlib import Path

import pytest

from plugins.module_utils.watch import hang_program, hangs
from plugins.module_utils.watch.node_programs import read_hang

RECORDED = Path(__file__).parents[4] / "fixtures" / "flight_recorder"
ENTRY = {"process_group": ["0", "default_pg"], "collective_seq_id": 6, "profiling_name": "gloo:all_reduce"}
CONTENT = {"version": "2.10", "entries": [{**ENTRY, "state": "started", "is_p2p": False, "frames": [{"name": "f"}]}]}
CONTENT = {**CONTENT, "pg_config": {"0": {"name": "0", "desc": "default_pg", "ranks": "[0, 1]"}}}


class Evil:
    """A pickle that would run a command where it is read."""

    def __reduce__(self) -> object:
        return os.system, ("touch /tmp/evil",)


def write(folder: Path, rank: int, content: object) -> None:
    (folder / f"rank_{rank}").write_bytes(pickle.dumps(content))


def test_a_dump_is_read_without_its_frames(tmp_path: Path) -> None:
    write(tmp_path, 3, CONTENT)

    found = hang_program.dumps(str(tmp_path))

    assert list(found) == [3] and "frames" not in str(found)
    (entry,) = found[3]["entries"]
    assert {key: entry[key] for key in ENTRY} == ENTRY and entry["state"] == "started"
    assert found[3]["pg_config"] == CONTENT["pg_config"]


def test_dumps_of_pytorch_name_the_rank_behind() -> None:
    """Three ranks over Gloo: see SOURCES.txt beside the dumps."""
    found = hang_program.dumps(str(RECORDED))

    (sentence,) = hangs.sentences(found, [])
    assert sentence == (
        "ranks 0, 1 wait in all_reduce number 6 of the group default_pg since 03:30:19 UTC for rank 2, "
        "whose latest is number 5."
    )


@pytest.mark.parametrize(
    ("version", "absent"), [("2.4", {"thread_id", "thread_name", "comm_lib_version"}), ("2.9", {"comm_lib_version"})]
)
def test_reads_the_formats_of_earlier_pytorch(version: str, absent: set[str], tmp_path: Path) -> None:
    """The keys are those of PyTorch 2.6 and 2.8: see SOURCES.txt beside the dumps."""
    for rank in range(3):
        content = pickle.loads((RECORDED / f"rank_{rank}").read_bytes())
        entries = [{key: value for key, value in entry.items() if key not in absent} for entry in content["entries"]]
        kept = {key: value for key, value in content.items() if key not in absent}
        write(tmp_path, rank, {**kept, "version": version, "entries": entries})

    older, newest = (hangs.sentences(hang_program.dumps(str(folder)), []) for folder in (tmp_path, RECORDED))

    assert older == newest != []


def test_a_completed_gloo_collective_is_not_waited_for() -> None:
    found = hang_program.dumps(str(RECORDED))
    without = {"entries": found[2]["entries"], "pg_status": found[2]["pg_status"], "pg_config": {}}

    assert hangs.sentences({2: without}, []) == []


@pytest.mark.parametrize("content", [{"entries": [Evil()]}, Evil(), b"not a dump", {"no": "entries"}])
def test_does_not_read_dumps_that_contain_code(
    tmp_path: Path, content: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    ran: list[str] = []
    write(tmp_path, 0, content)
    monkeypatch.setattr(os, "system", lambda command: ran.append(command) or 0)

    assert hang_program.dumps(str(tmp_path)) == {} and ran == []


def test_a_rank_reading_its_pipe_writes_a_dump(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe_0.pipe")
    os.mkfifo(tmp_path / "pipe_1.pipe")
    reader = os.open(tmp_path / "pipe_0.pipe", os.O_RDONLY | os.O_NONBLOCK)

    def rank() -> None:
        while not os.read(reader, 10):
            pass
        write(tmp_path, 0, CONTENT)

    thread = threading.Thread(target=rank)
    os.set_blocking(reader, True)
    thread.start()
    found = hang_program.dumps(str(tmp_path))
    thread.join(30)
    os.close(reader)

    assert list(found) == [0], "a rank that is gone opens no pipe, and is not waited for"


def test_only_ranks_that_read_their_pipes_are_counted(tmp_path: Path) -> None:
    for rank in range(2):
        os.mkfifo(tmp_path / f"pipe_{rank}.pipe")
    before = os.listdir("/proc/self/fd")

    assert hang_program.request_dumps(str(tmp_path)) == 0
    reader = os.open(tmp_path / "pipe_1.pipe", os.O_RDONLY | os.O_NONBLOCK)
    assert hang_program.request_dumps(str(tmp_path)) == 1

    assert os.read(reader, 10) == b"1\n"
    os.close(reader)
    assert os.listdir("/proc/self/fd") == before


def test_reads_ras_at_the_address_of_the_rank(tmp_path: Path) -> None:
    with socket.create_server(("localhost", 0)) as server:
        port = server.getsockname()[1]
        requests: list[bytes] = []

        def answer() -> None:
            connection, _where = server.accept()
            with connection:
                requests.append(connection.recv(100))
                connection.sendall(b"DEAD\n 1 job process is considered dead\n Process 7 on node n2 managing GPU 0\n")

        thread = threading.Thread(target=answer)
        thread.start()
        answer_text = hang_program.ras(f"localhost:{port}")
        thread.join(30)

    assert requests == [b"verbose status\n"] and answer_text is not None and "Process 7" in answer_text
    assert hang_program.ras(f"localhost:{port}") is None


def test_the_function_joins_the_answers_of_nodes(tmp_path: Path) -> None:
    write(tmp_path, 0, CONTENT)
    nodes = [{"name": "w1", "reach": ["sh", "-c"]}, {"name": "w2", "reach": ["false"]}]

    answer = read_hang(nodes=nodes, folder=str(tmp_path), recorders=str(tmp_path))

    assert answer == ["rank 0 waits in all_reduce number 6 of the group default_pg for rank 1, which wrote no dump."]
