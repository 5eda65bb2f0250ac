"""Data that runs share on a node: copied once, read-only, complete or absent, and never with another checksum."""

from __future__ import annotations

import functools
import hashlib
import http.server
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from ansible.module_utils.urls import open_url

from plugins.module_utils.errors import Refused
from plugins.module_utils.training.guest.shared_data import SharedData
from plugins.module_utils.training.launch import data
from plugins.module_utils.training.launch.folder import LINK, OTHER, FolderFile
from plugins.plugin_utils import packed_folder
from tests.fakes.training_folder import converge, packed

CONTENT = b"1 2 3\n" * 1000
SHA256 = hashlib.sha256(CONTENT).hexdigest()


def shared(tmp_path: Path, sha256: str, **source: Any) -> SharedData:
    """Return the subject on a node."""
    own = {"path": "/home/me/data", "archive": None, "url": None, "file": "", "dest": str(tmp_path / "store")}
    return SharedData({**own, "sha256": sha256, **source}, open_url)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with data."""
    made = tmp_path / "given"
    (made / "images").mkdir(parents=True)
    (made / "images" / "1.png").write_bytes(b"PNG")
    (made / "train.csv").write_bytes(CONTENT)
    return made


@pytest.fixture
def server(folder: Path) -> Iterator[str]:
    """Return the URL of a server with the data, which names each request in its list."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as serving:
        thread = threading.Thread(target=serving.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{serving.server_port}"
        serving.shutdown()
        thread.join()


def test_a_folder_is_unpacked_once_and_read_only(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "sent.tar"
    sha256 = packed(folder, archive)
    looking = shared(tmp_path, sha256)
    assert looking.is_missing and looking.plan(looking.read()).unmet

    assert converge(shared(tmp_path, sha256, archive=str(archive)))

    path = Path(looking.path)
    assert (path / "train.csv").read_bytes() == CONTENT and (path / "images" / "1.png").read_bytes() == b"PNG"
    assert {each.stat().st_mode & 0o222 for each in [path, *path.rglob("*")]} == {0}
    assert not looking.is_missing and not converge(shared(tmp_path, sha256))
    assert not list((tmp_path / "store").glob("*.tar")), "the archive takes no room"


def test_accepts_a_single_file_as_data(tmp_path: Path, folder: Path) -> None:
    archive, given = tmp_path / "sent.tar", str(folder / "train.csv")
    found = packed_folder.data_checksum(given, 100)
    with archive.open("wb") as output:
        packed_folder.pack(given, packed_folder.files_of(given), output)

    subject = shared(tmp_path, found["sha256"], archive=str(archive), file=found["file"])

    assert converge(subject) and Path(subject.path).read_bytes() == CONTENT and found["file"] == "train.csv"


def test_a_url_is_downloaded_once(tmp_path: Path, server: str, folder: Path) -> None:
    subject = shared(tmp_path, SHA256, url=f"{server}/train.csv?version=2")
    assert converge(subject)
    (folder / "train.csv").unlink()

    assert not converge(subject) and Path(subject.path).read_bytes() == CONTENT
    assert subject.path.endswith(f"/{SHA256}/train.csv")


def test_refuses_a_url_with_unexpected_content_without_leftovers(tmp_path: Path, server: str) -> None:
    subject = shared(tmp_path, "ab" * 32, url=f"{server}/train.csv")
    with pytest.raises(Refused, match=f"train.csv: .* its checksum is {SHA256}, and {'ab' * 32} is expected"):
        subject.apply(subject.plan(subject.read()))

    assert [path.name for path in (tmp_path / "store").iterdir()] == [f".{'ab' * 32}.lock"]


def test_replaces_a_partial_copy_left_by_killed_runs(tmp_path: Path, folder: Path) -> None:
    archive = tmp_path / "sent.tar"
    sha256 = packed(folder, archive)
    half = tmp_path / "store" / f".new-{sha256}-abc"
    half.mkdir(parents=True)
    (half / "train.csv").write_text("1 2")
    os.chmod(half, 0o555)

    assert converge(shared(tmp_path, sha256, archive=str(archive)))

    assert not half.exists() and sorted(path.name for path in (tmp_path / "store").iterdir()) == [
        f".{sha256}.lock",
        sha256,
    ]


@pytest.mark.parametrize(
    ("given", "sha256", "message"),
    [
        ("https://host/a.tar", "", "a URL needs a checksum; set training_data_sha256 to that of its file"),
        (
            "https://me:secret@host/a.tar",
            "sha256:12",
            "^training_data: could not copy it to the nodes: its URL contains an account",
        ),
        ("https://host/a.tar", "sha256:12", "which is not a SHA-256 checksum; set it to the 64 digits"),
    ],
)
def test_a_url_without_a_valid_checksum_is_refused(given: str, sha256: str, message: str) -> None:
    with pytest.raises(Refused, match=message):
        data.sha256_of(given, sha256)


def test_accepts_checksums_with_kind_and_paths_without_one() -> None:
    assert data.sha256_of("https://host/a.tar", f"sha256:{SHA256.upper()}") == SHA256
    assert data.sha256_of("/home/me/data", "") == ""


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ([], "it contains no file"),
        ([FolderFile("big", "file", 3_000_000)], "it has 3 MB, more than 2 MB; set training_data_limit"),
        ([FolderFile("pipe", OTHER)], "pipe is not a file"),
        ([FolderFile("up", LINK, link="/etc/passwd", leads_out=True)], "the link up points outside, to /etc/passwd"),
    ],
)
def test_refuses_data_that_cannot_be_copied(files: list[FolderFile], message: str) -> None:
    with pytest.raises(Refused, match=f"^training_data /d: could not copy it to the nodes: {message}"):
        data.check("/d", files, 2)


def test_changed_data_of_a_repeated_run_is_refused(folder: Path) -> None:
    before = packed_folder.data_checksum(str(folder), 100)["sha256"]
    (folder / "train.csv").write_text("4 5 6")
    with pytest.raises(Refused, match=f"and {before} is expected"):
        packed_folder.data_checksum(str(folder), 100, before)


@pytest.mark.parametrize(
    ("url", "name"),
    [("http://h/d/a.npz?x=1#part", "a.npz"), ("http://h", "data"), ("http://h/", "data"), ("http://h/..", "data")],
)
def test_the_file_of_a_url_has_its_name(url: str, name: str) -> None:
    assert data.file_of(url) == name
