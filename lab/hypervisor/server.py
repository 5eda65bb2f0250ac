"""The hypervisor's HTTP interface, for the simulated vCenter, users and tests."""

from __future__ import annotations

import contextlib
import dataclasses
import http.server
import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from lab.hypervisor.orders import Orders, named
from lab.nodes.cloudinit import Guest, User
from lab.nodes.leases import address_of
from lab.nodes.network import MANAGEMENT, RDMA, Card, address_for
from lab.nodes.programs import LabError


class Server(http.server.ThreadingHTTPServer):
    """Listens on loopback, on a free port."""

    daemon_threads = True

    def __init__(self, orders: Orders, downloads: Mapping[str, int]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.orders, self.backend, self.downloads = orders, orders.backend, downloads

    @property
    def address(self) -> str:
        """Return the URL of this server."""
        return f"http://127.0.0.1:{self.server_port}"

    def order(self, body: dict[str, Any]) -> None:
        """POST /orders"""
        self.orders.take(body)

    def list_nodes(self, _body: Any) -> list[dict[str, Any]]:
        """GET /nodes"""
        return [_shown(guest) for guest in self.backend.known.values()]

    def make(self, body: dict[str, Any], name: str) -> dict[str, Any]:
        """PUT /nodes/NAME: a node that belongs to no virtual machine."""
        users = (User(body.get("user", "debian"), tuple(body.get("ssh_keys", ()))),)
        card = Card(MANAGEMENT, address_for(name), body.get("address"), gateway=self.backend.network.gateway)
        cards = [card]
        if body.get("rdma_address"):
            cards.append(Card(RDMA, address_for(f"{name}-rdma"), body["rdma_address"], 9000))
        with self.orders.turn(name):
            known = self.backend.known.get(name)
            if known is None:
                known = self.backend.start(Guest(name, name, name, users, tuple(cards)), str(body.get("host", "")))
                self.backend.wait(known)
        return _shown(known)

    def remove(self, _body: Any, name: str) -> None:
        """DELETE /nodes/NAME"""
        with self._guest(name) as key, self.orders.turn(key):
            self.backend.remove(key)

    def stun(self, body: dict[str, Any], name: str) -> None:
        """POST /nodes/NAME/stun"""
        with self._guest(name) as key, self.orders.turn(key):
            self.backend.stun(key, float(body["seconds"]))

    def harm(self, body: dict[str, Any], name: str) -> None:
        """POST /nodes/NAME/harm: does not wait for a move in progress."""
        with self._guest(name) as key:
            self.backend.harm(key, body["kind"])

    def moves(self, body: dict[str, Any], name: str = "") -> None:
        """PUT /moves and PUT /moves/NAME"""
        before = self.orders.moves.get(name, self.orders.default)
        after = dataclasses.replace(before, **{key: type(vars(before)[key])(value) for key, value in body.items()})
        if name:
            self.orders.moves[name] = after
        else:
            self.orders.default, self.orders.moves = after, {}

    def show_moves(self, _body: Any) -> dict[str, Any]:
        """GET /moves"""
        named = {name: dataclasses.asdict(move) for name, move in self.orders.moves.items()}
        return {"default": dataclasses.asdict(self.orders.default), "of": named}

    def show_downloads(self, _body: Any) -> dict[str, int]:
        """GET /downloads: how often each package was downloaded."""
        return dict(self.downloads)

    @contextlib.contextmanager
    def _guest(self, name: str) -> Iterator[str]:
        """Yield the key of a guest; errors raised inside name the guest instead of its key."""
        key = self._key(name)
        try:
            yield key
        except LabError as error:
            raise LabError(named(error, key, name)) from error

    def _key(self, name: str) -> str:
        keys = [guest.key for guest in list(self.backend.known.values()) if guest.name == name]
        if len(keys) != 1:
            raise LabError(f"{len(keys)} nodes are named {name}: GET /nodes lists all nodes.")
        return keys[0]


ROUTES: dict[tuple[str, str], Callable[..., Any]] = {
    ("POST", "orders"): Server.order,
    ("GET", "nodes"): Server.list_nodes,
    ("PUT", "nodes/*"): Server.make,
    ("DELETE", "nodes/*"): Server.remove,
    ("POST", "nodes/*/stun"): Server.stun,
    ("POST", "nodes/*/harm"): Server.harm,
    ("GET", "moves"): Server.show_moves,
    ("PUT", "moves"): Server.moves,
    ("PUT", "moves/*"): Server.moves,
    ("GET", "downloads"): Server.show_downloads,
}


class Handler(http.server.BaseHTTPRequestHandler):
    """One request."""

    server: Server

    def do_GET(self) -> None:
        """Answer a request from the table of routes."""
        parts = self.path.strip("/").split("/")
        names = parts[1:2]
        route = ROUTES.get((self.command, "/".join([parts[0], *("*" for _name in names), *parts[2:]])))
        if route is None:
            self._answer(404, f"{self.command} {self.path} is not supported.")
            return
        length = int(self.headers.get("Content-Length", 0))
        try:
            body = json.loads(self.rfile.read(length)) if length else {}
            self._answer(200, route(self.server, body, *names))
        except (LabError, KeyError, TypeError, ValueError) as error:
            self._answer(400, str(error) if isinstance(error, LabError) else f"{self.path}: {error!r}")

    do_POST = do_PUT = do_DELETE = do_GET  # noqa: N815  # the names that http.server requires

    def _answer(self, status: int, content: Any) -> None:
        text = content if isinstance(content, str) else "" if content is None else json.dumps(content)
        self.send_response(status)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, *_arguments: object) -> None:
        """Do nothing: requests are not logged."""


def _shown(guest: Guest) -> dict[str, Any]:
    cards = [dataclasses.asdict(card) for card in guest.cards]
    users = [user.name for user in guest.users]
    return {"key": guest.key, "name": guest.name, "address": address_of(guest), "users": users, "cards": cards}
