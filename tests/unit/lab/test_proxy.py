# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The nodes' proxy: packages are fetched once and whole, everything else passes through."""

from __future__ import annotations

import http.server
import re
import socket
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.hypervisor.proxy import Proxy

PACKAGE = b"package" * 1000
PAGE = '<a href="../../files/six-1.whl#sha256=abc" data-requires-python="&gt;=3" data-core-metadata="sha256=1">six</a>'


class Archive(http.server.BaseHTTPRequestHandler):
    """Has one package, one that breaks off, and a list that changes."""

    requests: list[str]

    def do_GET(self) -> None:
        self.requests.append(self.path)
        if "missing.deb" in self.path:
            self.send_error(404)
            return
        body = PACKAGE if self.path.endswith((".deb", ".whl")) else str(len(self.requests)).encode()
        if self.path.startswith("/index/"):
            body = PAGE.encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body) + (1 if "short" in self.path else 0)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_arguments: object) -> None:
        pass


@pytest.fixture
def archive(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    for name in ("http_proxy", "HTTP_PROXY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(Archive, "requests", [], raising=False)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Archive) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture
def proxy(archive: str, tmp_path: Path) -> Iterator[Proxy]:
    proxy = Proxy("127.0.0.1", tmp_path, [f"{archive}/index", f"{archive}/missing.deb?of="])
    proxy.serve()
    yield proxy
    proxy.shutdown()
    proxy.server_close()


@pytest.fixture
def by_proxy(proxy: Proxy) -> urllib.request.OpenerDirector:
    return urllib.request.build_opener(urllib.request.ProxyHandler({"http": proxy.address}))


def test_four_nodes_download_once(archive: str, by_proxy: urllib.request.OpenerDirector) -> None:
    def fetch(_node: int) -> bytes:
        return bytes(by_proxy.open(f"{archive}/pool/a_1.0.deb").read())

    with ThreadPoolExecutor(4) as nodes:
        assert list(nodes.map(fetch, range(4))) == [PACKAGE] * 4
    assert Archive.requests == ["/pool/a_1.0.deb"]


def test_lists_are_not_kept(archive: str, by_proxy: urllib.request.OpenerDirector) -> None:
    assert [by_proxy.open(f"{archive}/InRelease").read() for _time in range(2)] == [b"1", b"2"]


@pytest.mark.parametrize(("path", "code"), [("/short.deb", 502), ("/missing.deb", 404)])
def test_broken_download_is_not_kept(
    archive: str, by_proxy: urllib.request.OpenerDirector, tmp_path: Path, path: str, code: int
) -> None:
    for _time in range(2):
        with pytest.raises(urllib.error.HTTPError) as caught:
            by_proxy.open(f"{archive}{path}").read()
        assert caught.value.code == code
    assert (Archive.requests, list(tmp_path.iterdir())) == ([path] * 2, [])


def test_python_packages_are_fetched_once_from_the_index_that_has_them(archive: str, proxy: Proxy) -> None:
    for _node in range(2):
        page = urllib.request.urlopen(f"{proxy.address}/simple/six/").read().decode()
        (link,) = re.findall('href="([^"]+)"', page)
        assert "=" not in link.partition("#")[0], "pip would quote it"
        assert link.endswith("/six-1.whl#sha256=abc")
        assert 'data-requires-python="&gt;=3"' in page
        assert "metadata" not in page
        assert urllib.request.urlopen(f"{proxy.address}{link.partition('#')[0]}").read() == PACKAGE
    assert Archive.requests.count("/files/six-1.whl") == 1
    assert proxy.downloads == {"six-1.whl": 1}


def test_a_package_that_no_index_has_is_not_there(archive: str, proxy: Proxy) -> None:
    proxy.indexes = proxy.indexes[1:]
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{proxy.address}/simple/six/")


def test_reports_an_index_that_does_not_answer(proxy: Proxy) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        proxy.indexes = [f"http://127.0.0.1:{closed.getsockname()[1]}/simple"]
    with pytest.raises(urllib.error.HTTPError, match="502"):
        urllib.request.urlopen(f"{proxy.address}/simple/six/")
