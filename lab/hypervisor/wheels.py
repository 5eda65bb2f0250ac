# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Pages of a Python package index whose files are fetched through the lab's proxy, so that it can keep them."""

from __future__ import annotations

import base64
import html
import re
import urllib.parse

PAGES, FILES = "/simple/", "/files/"
LINK = re.compile(r'href="([^"]+)"')
# pip would ask for a file beside the package; the package itself has the same.
METADATA = re.compile(r'\sdata-(?:dist-info|core)-metadata(?:="[^"]*")?')


def page_url(index: str, path: str) -> str:
    """Where an index has the page of a package that a node asks for."""
    return f"{index.rstrip('/')}/{path.removeprefix(PAGES)}"


def rewritten(page: str, url: str) -> str:
    """A page whose links lead here, with their checksums; ``url`` is where the page came from."""

    def local(link: re.Match[str]) -> str:
        there, _hash, checksum = urllib.parse.urljoin(url, html.unescape(link[1])).partition("#")
        name = urllib.parse.urlsplit(there).path.rpartition("/")[2]
        token = base64.urlsafe_b64encode(there.encode()).decode().rstrip("=")  # pip would quote the padding
        return f'href="{FILES}{token}/{name}#{html.escape(checksum)}"'

    return LINK.sub(local, METADATA.sub("", page))


def file_url(path: str) -> str:
    """Where a file is that a rewritten page names."""
    token = path.removeprefix(FILES).partition("/")[0]
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
