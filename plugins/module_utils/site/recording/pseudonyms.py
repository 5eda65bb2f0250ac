"""Consistent replacement of the names of a site: one pseudonym for each value, at every occurrence; pure."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from functools import partial

from . import free_text

# Default names of vSphere and words of its vocabulary: such a name does not identify a site.
COMMON = frozenset(
    (
        *("vm", "host", "network", "datastore", "datacenters", "resources", "vcls", "discovered virtual machine"),
        *("vcenter", "vcsa"),
        *("vm network", "management network", "localhost", "root", "none", "unknown", "default", "defaulttcpipstack"),
        *("vmotion", "provisioning", "management", "vmk0", "host cluster", "system", "administrators", "cluster"),
        *("gpu", "gpus", "vgpu", "rdma", "pvrdma", "shared", "direct", "shareddirect", "basic", "local", "storage"),
        *("test", "prod", "production", "compute", "training", "manual", "true", "false", "connected", "disconnected"),
        *("green", "yellow", "red", "gray", "normal", "high", "low", "running", "queued", "success", "error", "active"),
        *("poweredon", "poweredoff", "suspended", "enabled", "disabled", "dscp", "pcp", "nvidia", "mellanox", "vmware"),
    )
)
# A shorter name or a number occurs in too many other words, so it is replaced only if it is the whole text.
SHORTEST = 3
_HEX = "[0-9a-fA-F]"
_ADDRESS = re.compile(r"(?<![\w.:-])\d{1,3}(?:\.\d{1,3}){3}(?![\w]|\.\d|-\d+(?:vmw|OEM|vib))")
_COLONS = re.compile(rf"(?<![\w:.]){_HEX}{{0,4}}(?::{_HEX}{{0,4}}){{2,}}(?:%\w+)?(?![\w:])")
_HARDWARE = re.compile(rf"(?<![\w:-])(?:{_HEX}{{2}}[:-]){{5,}}{_HEX}{{2}}(?![\w:-])")
_UUID = re.compile(rf"(?<!{_HEX}){_HEX}{{8}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{4}}-{_HEX}{{12}}(?!{_HEX})")
_BIOS_UUID = re.compile(rf"(?<![\w-])(?:{_HEX}{{2}} ){{7}}{_HEX}{{2}}[ -](?:{_HEX}{{2}} ){{7}}{_HEX}{{2}}(?![\w-])")
_LICENCE = re.compile(r"(?<![\w-])(?:[0-9A-Z]{5}-){4}[0-9A-Z]{5}(?![\w-])")
_PAIRS = re.compile(rf"(?:{_HEX}{{2}}:){{7}}{_HEX}{{2}}")
_MAC_OCTETS, _VENDOR_OCTETS = 6, 3


class Pseudonyms:
    """The pseudonyms of one recording.

    Addresses, hardware addresses, UUIDs and licence keys are recognised by their format. Names and serials have no
    format: ``name`` registers them before ``text`` replaces them. ``free_text`` also replaces each word.
    """

    def __init__(self) -> None:
        self._known: dict[str, str] = {}
        self._words: dict[str, str] = {}
        self._count: dict[str, int] = {}
        self._places: dict[str, dict[str, int]] = {}
        self._names: re.Pattern[str] | None = None

    def name(self, kind: str, value: str) -> None:
        """Register a name or a serial; its pseudonym starts with ``kind``."""
        value = value.strip()
        if not value or value.lower() in COMMON or value.lower() in self._known or _is_formed(value):
            return
        short, dot, domain = value.partition(".")
        if dot and kind in ("host", "guest") and " " not in value:
            self.name(kind, short)
            self.name("domain", domain)
            self._keep(value, f"{self._of(short)}.{self._of(domain)}")
        else:
            self._keep(value, self._next(kind))

    def whole(self, text: str) -> str:
        """Return the pseudonym of a text that consists of a name, even a short one."""
        return self.known(text) or self.text(text)

    def known(self, text: str) -> str | None:
        """Return the pseudonym of a registered name; None for another text."""
        return self._known.get(text.strip().lower())

    def text(self, text: str) -> str:
        """Return a text with all names of the site replaced."""
        if not text:
            return text
        text = self._registered().sub(lambda match: self._of(match[0]), text)
        for pattern, new in self._forms():
            text = pattern.sub(partial(_by, new), text)
        return text

    def free_text(self, text: str, is_sentence: bool = False) -> str:
        """Return a text with all names of the site replaced; in free text also every word."""
        is_sentence = is_sentence or free_text.is_free(text)
        text = self.text(text)
        return free_text.replaced(text, self._word, self._is_own) if is_sentence else text

    def originals(self) -> list[str]:
        """Return every value that must no longer occur, except names that are too short to search for."""
        pseudonyms = set(self._known.values())
        return sorted(value for value in self._known if _can_be_found(value) and value not in pseudonyms)

    def left_in(self, text: str) -> list[str]:
        """Return the values with a pseudonym that a text still contains, as words of vSphere or of hardware."""
        return sorted({match[0].lower() for match in _any_of(self.originals()).finditer(text)})

    def counted(self) -> dict[str, int]:
        """Return the number of replaced values of each kind."""
        return dict(sorted(self._count.items()))

    def _forms(self) -> tuple[tuple[re.Pattern[str], Callable[[str], str]], ...]:
        return (
            (_UUID, self._uuid),
            (_BIOS_UUID, self._bios_uuid),
            (_LICENCE, lambda text: self._made(text, "licence key")),
            (_HARDWARE, self._hardware),
            (_ADDRESS, self._address),
            (_COLONS, self._long_address),
        )

    def _registered(self) -> re.Pattern[str]:
        if self._names is None:
            self._names = _any_of([value for value in self.originals() if not _is_formed(value)])
        return self._names

    def _keep(self, value: str, pseudonym: str) -> None:
        self._known[value.lower()] = pseudonym
        self._names = None

    def _of(self, value: str) -> str:
        return self._known.get(value.strip().lower(), value)

    def _next(self, kind: str) -> str:
        self._count[kind] = self._count.get(kind, 0) + 1
        return f"{kind}-{self._count[kind]}" + (".example" if kind == "domain" else "")

    def _is_own(self, text: str) -> bool:
        kind, _dash, number = text.rpartition("-")
        return int(number) <= self._count.get(kind, 0)

    def _word(self, text: str) -> str:
        word = text.casefold()
        if word not in self._words:
            self._words[word] = self._next("word")
        return self._words[word]

    def _number(self, kind: str, value: str) -> int | None:
        """Return the number of a new value; None if the value has a pseudonym."""
        if value.lower() in self._known:
            return None
        self._count[kind] = self._count.get(kind, 0) + 1
        return self._count[kind]

    def _made(self, text: str, kind: str) -> str:
        number = self._number(kind, text)
        if number is not None:
            self._known[text.lower()] = f"XXXXX-XXXXX-XXXXX-XXXXX-{number:05}"
        return self._of(text)

    def _uuid(self, text: str) -> str:
        if text.lower() in self._known.values():
            return text
        number = self._number("UUID", text)
        if number is not None:
            self._known[text.lower()] = f"00000000-0000-4000-8000-{number:012x}"
        return self._of(text)

    def _bios_uuid(self, text: str) -> str:
        """Return the pseudonym of a UUID in the format of switches and BIOSes: pairs of digits."""
        digits = re.sub("[ -]", "", text)
        plain = "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))
        new = self._uuid(plain).replace("-", "")
        pairs = [new[at : at + 2] for at in range(0, len(new), 2)]
        self._known[text.lower()] = " ".join(pairs[:8]) + text[23] + " ".join(pairs[8:])
        return self._of(text)

    def _hardware(self, text: str) -> str:
        """Return the pseudonym of a hardware address, which keeps its vendor half; thumbprints keep nothing."""
        sign = text[2]
        octets = text.split(sign)
        vendor = octets[:_VENDOR_OCTETS] if len(octets) == _MAC_OCTETS else []
        number = self._number("hardware address", text)
        if number is not None:
            left = len(octets) - len(vendor)
            new = [f"{number:0{2 * left}x}"[at : at + 2] for at in range(0, 2 * left, 2)]
            self._known[text.lower()] = sign.join([*vendor, *new])
        return self._of(text)

    def _address(self, text: str) -> str:
        """Return the pseudonym of an IPv4 address, in the range for benchmarks; a /24 network gets one /24 network."""
        octets = [int(octet) for octet in text.split(".")]
        if any(octet > 255 for octet in octets) or _is_general(ipaddress.IPv4Address(".".join(map(str, octets)))):
            return text
        if self._number("address", text) is not None:
            network = self._within("networks", text.rpartition(".")[0])
            host = self._within(f"network {network}", text) + 1
            self._known[text.lower()] = f"198.{18 + network // 256}.{network % 256}.{host}"
        return self._of(text)

    def _within(self, group: str, value: str) -> int:
        """Return the index of a value in a group, in the order of the first occurrences."""
        return self._places.setdefault(group, {}).setdefault(value, len(self._places[group]))

    def _long_address(self, text: str) -> str:
        plain, percent, zone = text.partition("%")
        try:
            address = ipaddress.IPv6Address(plain)
        except ValueError:
            return text
        if _is_general(address) or _PAIRS.fullmatch(plain):
            return text
        number = self._number("address", plain)
        if number is not None:
            self._known[plain.lower()] = f"{'fe80' if address.is_link_local else '2001:db8'}::{number:x}"
        return self._of(plain) + percent + zone


def _by(new: Callable[[str], str], match: re.Match[str]) -> str:
    return new(match[0])


def _any_of(values: list[str]) -> re.Pattern[str]:
    """Return a pattern that finds each of the values as a word, the longest first."""
    inner = "|".join(re.escape(value) for value in sorted(values, key=lambda value: (-len(value), value)))
    return re.compile(rf"(?<![A-Za-z0-9_])(?:{inner or '(?!)'})(?![A-Za-z0-9_])", re.IGNORECASE)


def _can_be_found(value: str) -> bool:
    return len(value) >= SHORTEST and not value.isdigit()


def _is_general(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether an address does not identify a machine, such as a mask, a wildcard, loopback or multicast."""
    return (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or (address.version == 4 and address.packed[0] in (0, 255))
    )


def _is_formed(value: str) -> bool:
    """Return whether a value is recognised by its format."""
    return any(pattern.fullmatch(value) for pattern in (_ADDRESS, _HARDWARE, _UUID, _BIOS_UUID, _LICENCE)) or (
        _is_long_address(value)
    )


def _is_long_address(value: str) -> bool:
    try:
        return ipaddress.ip_address(value).version == 6
    except ValueError:
        return False
