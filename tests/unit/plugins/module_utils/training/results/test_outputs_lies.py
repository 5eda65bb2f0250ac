"""The copy of outputs and a node that lies: what it lists, announces and sends need not agree."""

from __future__ import annotations

import io
import sys
import tarfile
import tempfile
import time
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from plugins.module_utils.training.results import node_stream
from plugins.module_utils.training.results.outputs import copy_outputs
from tests.fakes.calling import here

# Prints a file in answer to the listing, and runs a program in answer to the request for an archive.
LIAR = "case $0 in *find*) cat {folder}/list;; *) cat > /dev/null; exec {python} {folder}/send.py;; esac"
OUT = "import sys, time; out = sys.stdout.buffer\n"
MOST_MEMORY = 64 << 20


class Node:
    """A node that lists and sends whatever a test says."""

    def __init__(self, folder: Path, listed: bytes, program: str) -> None:
        self.folder, self.dest = folder, folder / "here"
        (folder / "list").write_bytes(listed)
        (folder / "send.py").write_text(OUT + program)

    def copy(self) -> dict[str, Any]:
        reach = ["sh", "-c", LIAR.format(folder=self.folder, python=sys.executable)]
        return here(copy_outputs, node="w1", reach=reach, folder="/there", dest=str(self.dest), limit=1)

    @property
    def files(self) -> dict[str, bytes]:
        found = [path for path in self.dest.rglob("*") if path.is_file()]
        return {path.relative_to(self.dest).as_posix(): path.read_bytes() for path in found}


def header(name: str, size: int, kind: bytes = tarfile.REGTYPE, **more: Any) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.type = size, kind
    member.mtime = more.pop("mtime", 1)
    return member.tobuf(tarfile.GNU_FORMAT)


def endless(first: bytes) -> str:
    return f"out.write({first!r})\nwhile True: out.write(b'x' * 65536)\n"


PAX_200_MB = header("pax", 200_000_000, tarfile.XHDTYPE)
LIES = {
    "announced_1_byte": (endless(header("model", 300_000_000)), "the node sends more than 1 MB"),
    "sparse": (endless(header("model", 512, tarfile.GNUTYPE_SPARSE)), "sent model, which is not one of its outputs"),
    "pax_200_mb": (endless(PAX_200_MB), "the node sent an extended header of 200000000 bytes"),
    "many_pax": (
        f"while True: out.write({header('pax', 512, tarfile.XHDTYPE) + b'7 a=bc' + chr(10).encode() + bytes(505)!r})",
        "the node sent a malformed extended header",
    ),
    "after_the_end": (endless(header("model", 1) + bytes(512 * 3)), "the node sent data after the end of its archive"),
    "other_file": (f"out.write({header('../out', 1) + bytes(512 * 3)!r})", "sent ../out, which is not one of its outp"),
    "device": (f"out.write({header('model', 0, tarfile.CHRTYPE)!r})", "the node sent model, which is not one of its"),
    "negative": (f"out.write({header('model', -5)!r})", "the node sent model with a size or a time that no file has"),
    "time": (f"out.write({header('model', 1, mtime=1 << 62)!r})", "with a size or a time that no file has"),
    "twice": (f"out.write({(header('model', 1) + bytes(512)) * 2!r})", "the node sent model, which is not one of its"),
    "no_archive": ("out.write(b'Welcome' * 100)", "the node sent no tar archive"),
    "ends_early": (f"out.write({header('model', 1000) + bytes(512)!r})", "the output of the node ended early"),
    "nothing": (f"out.write({bytes(1024)!r})", "the node did not send model, which it listed"),
    "an_error": ("sys.exit('no space on the node')", "could not copy the outputs: no space on the node"),
    "errors": ("while True: sys.stderr.write('x' * 65536)", "the node sent 0 bytes in 2 s"),
    "silent": ("time.sleep(600)", "the node sent 0 bytes in 2 s"),
    "drips": ("while True: out.write(b'x'); out.flush(); time.sleep(0.2)", "bytes in 2 s"),
}


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(node_stream, "SILENCE_SECONDS", 2.0)


@pytest.mark.parametrize("lie", LIES)
def test_names_inconsistent_answers_in_time_without_leaving_files(tmp_path: Path, lie: str) -> None:
    program, cause = LIES[lie]
    node = Node(tmp_path, b"1 1 model\0", program)
    node.dest.mkdir()
    (node.dest / "model").write_bytes(b"before")
    began = time.monotonic()
    tracemalloc.start()

    answer = node.copy()

    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert answer.get("failed") and cause in answer["msg"], answer
    assert node.files == {"model": b"before"} and [path.name for path in node.dest.iterdir()] == ["model"]
    assert time.monotonic() - began < 30
    assert peak < MOST_MEMORY


LONG_NAMES = "while True: out.write(b'1 1 a' * 10000 + b'\\0')"
MANY_NAMES = "import itertools\nfor n in itertools.count(): out.write(b'1 1 %d\\0' % n)"


@pytest.mark.parametrize(("program", "cause"), [(LONG_NAMES, "16 MiB of names"), (MANY_NAMES, "50000 files")])
def test_an_endless_listing_is_refused_in_constant_memory(tmp_path: Path, program: str, cause: str) -> None:
    node = Node(tmp_path, b"", "")
    reach = [sys.executable, "-c", OUT + program]
    tracemalloc.start()

    answer = here(copy_outputs, node="w1", reach=reach, folder="/there", dest=str(node.dest), limit=1)

    _now, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert f"could not list the outputs: the node lists more than {cause}" in answer["msg"]
    assert peak < MOST_MEMORY and not node.dest.exists()


def test_gnu_and_pax_archives_keep_long_names(tmp_path: Path) -> None:
    for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        name, output = "deep/" * 60 + "ümodel", io.BytesIO()
        with tarfile.open(fileobj=output, mode="w", format=form) as archive:
            member = tarfile.TarInfo(f"./{name}")
            member.size, member.mtime = 3, 1_700_000_000
            archive.addfile(member, io.BytesIO(b"abc"))
        (tmp_path / str(form)).mkdir()
        listed = f"3 1700000000 {name}\0".encode()
        node = Node(tmp_path / str(form), listed, f"out.write({output.getvalue()!r})")

        answer = node.copy()

        assert answer["changed"] and node.files == {name: b"abc"}, answer


NAMES = st.sampled_from(["a", "b", "c/d", "a", "b", "c/d", "../x", "/x", "a/b", "./a"])
KINDS = st.sampled_from([tarfile.REGTYPE] * 9 + [tarfile.SYMTYPE, tarfile.GNUTYPE_SPARSE, tarfile.XHDTYPE])
SIZES = st.one_of(st.integers(0, 2000), st.integers(300_000, 700_000))
MEMBERS = st.lists(st.tuples(NAMES, KINDS, SIZES, st.sampled_from([0] * 9 + [-700, 700])), min_size=1, max_size=5)


def sent(members: list[tuple[str, bytes, int, int]]) -> Iterator[bytes]:
    """Yield an archive whose headers need not agree with their contents."""
    for name, kind, size, off in members:
        yield header(name, size, kind)
        yield b"x" * max(0, size + off) + bytes(-size % 512)
    yield bytes(1024)


@given(MEMBERS, st.sampled_from([None, None, 1, 0, 700_000]), st.sampled_from([0, 0, 0, 1500]))
def test_no_listed_size_bypasses_the_limit(
    members: list[tuple[str, bytes, int, int]], lie: int | None, cut: int
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        names = {name: size for name, _kind, size, _off in members if name in ("a", "b", "c/d")}
        listed = b"".join(f"{size if lie is None else lie} 1 {name}\0".encode() for name, size in names.items())
        archive = b"".join(sent(members))
        (Path(folder) / "tar").write_bytes(archive[: len(archive) - cut])
        node = Node(Path(folder), listed, f"out.write(open({folder + '/tar'!r}, 'rb').read())")

        answer = node.copy()

        assert sum(map(len, node.files.values())) <= 1_000_000
        assert set(node.files) <= set(names) and not list(node.dest.rglob(".dml-*"))
        assert not answer.get("failed") or not node.files or "accepted the change, yet" in answer["msg"], answer
        event("copied" if node.files else "refused")
