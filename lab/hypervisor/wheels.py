"""Pages of a Python package index with links to the lab's proxy, which caches the files."""

from __future__ import annotations

import base64
import html
import re
import urllib.parse

PAGES, FILES = "/simple/", "/files/"
LINK = re.compile(r'href="([^"]+)"')
# With this attribute, pip requests a separate metadata file; the package contains the same metadata.
METADATA = re.compile(r'\sdata-(?:dist-info|core)-metadata(?:="[^"]*")?')


def page_url(index: str, path: str) -> str:
    """Return the URL of an index's page for the package that a node requests."""
    return f"{index.rstrip('/')}/{path.removeprefix(PAGES)}"


def rewritten(page: str, url: str) -> str:
    """Return a page with links to this proxy, including checksums; ``url`` is the origin of the page."""

    def local(link: re.Match[str]) -> str:
        there, _hash, checksum = urllib.parse.urljoin(url, html.unescape(link[1])).partition("#")
        name = urllib.parse.urlsplit(there).path.rpartition("/")[2]
        token = base64.urlsafe_b64encode(there.encode()).decode().rstrip("=")  # pip quotes the padding
        return f'href="{FILES}{token}/{name}#{html.escape(checksum)}"'

    return LINK.sub(local, METADATA.sub("", page))


def file_url(path: str) -> str:
    """Return the original URL of a file that a rewritten page names."""
    token = path.removeprefix(FILES).partition("/")[0]
    return base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)).decode()
