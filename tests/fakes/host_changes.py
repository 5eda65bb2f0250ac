"""A cluster whose hosts leave service, boot and return, for programs whose controllers die."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.deaths import MortalWorld


@dataclass
class FakeHost:
    """A host: the boots that its profile still needs, and what the modules read of it."""

    boots_needed: int = 1
    # Whether its settings differ, which a profile without a reboot may change in service.
    differs: bool = True
    needs_maintenance: bool = True
    is_out: bool = False
    by: str = ""
    ending_boot: str = ""
    boots: int = 0
    is_up: bool = True
    # The questions that its driver leaves unanswered after a boot.
    slow_driver: int = 0
    # Whether vLCM still has to apply the image of the cluster, which boots the host.
    needs_image: bool = False
    waiting: int = 0
    progress: list[str] = field(default_factory=list)

    @property
    def boot_time(self) -> str:
        return f"2026-01-{1 + self.boots:02d}T00:00:00+00:00"

    @property
    def needs(self) -> list[str]:
        if self.boots_needed or self.waiting:
            return ["maintenance", "reboot"]
        return ["maintenance"] if self.differs and self.needs_maintenance else []

    @property
    def reboots(self) -> int:
        return self.boots_needed or int(bool(self.waiting))


def image_report(name: str, applies: bool) -> dict[str, Any]:
    """Return the plan of the image of a cluster for one host, as esxi_image returns it."""
    needs = ["maintenance", "reboot"] if applies else []
    why = ["the image of its cluster is applied by vLCM (1 reboot)"] if applies else []
    return {"host": name, "changed": applies, "needs": needs, "reboots": int(applies), "why": why}


class HostWorld(MortalWorld):
    """The modules that change hosts, on a cluster; ``failures`` are messages by module or by state of esxi_power."""

    def __init__(self, hosts: Mapping[str, FakeHost], deaths: Iterable[int] = ()) -> None:
        super().__init__(deaths)
        self.hosts, self.holder, self.run = dict(hosts), "", ""
        self.stops: list[dict[str, str]] = []
        # The stop rules that apply although no host leaves service.
        self.stops_after: list[dict[str, str]] = []
        self.failures: dict[str, str] = {}
        self.most_out, self.allowed = 0, 9
        self.image, self.remediating = "", list[str]()
        self.on_return: Callable[[], Any] = lambda: None
        self.calls: list[tuple[str, dict[str, Any]]] = []

    def here(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return self._called(module, dict(options), is_planned=False)

    def planned(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        return self._called(module, dict(options), is_planned=True)

    def join(self, run: str) -> None:
        self.run = run

    def next_controller(self) -> None:
        """Let the time pass until the playbook runs again: hosts that boot are back."""
        super().next_controller()
        for host in self.hosts.values():
            if not host.is_up:
                self._up(host)

    def there(self, module: str, options: Mapping[str, Any]) -> dict[str, Any]:
        raise AssertionError(f"{module} runs on no other host: {options}")

    def _called(self, module: str, options: dict[str, Any], *, is_planned: bool) -> dict[str, Any]:
        self.calls.append((module, options))
        state = str(options.get("state", ""))
        for key in (module, state):
            if key in self.failures:
                return {"failed": True, "msg": self.failures[key]}
        if module == "cluster_lock":
            return dict(self.effect(f"lock {state}", lambda: self._lock(options)))
        if module == "cluster_info":
            return dict(self.effect("rules", lambda: self._info(options)))
        if module == "esxi_profile":
            names = options.get("hosts") or sorted(self.hosts)
            return dict(self.effect(f"profile {' '.join(names)}", lambda: self._profile(names, is_planned)))
        if module == "esxi_image":
            return self._image(options.get("hosts") or [], options, is_planned)
        return self._power(options.get("hosts") or sorted(self.hosts), state, options, is_planned)

    def _lock(self, options: Mapping[str, Any]) -> dict[str, Any]:
        self.holder = "run" if options["state"] == "held" else ""
        return {"state": {"run": self.holder or None}}

    def _info(self, options: Mapping[str, Any]) -> dict[str, Any]:
        hosts = [
            {
                "host": name,
                "maintenance": host.is_out,
                "ours": host.by == "us",
                "connection": "connected" if host.is_up else "notResponding",
            }
            for name, host in self.hosts.items()
        ]
        out = [
            {"host": name, "ours": host.by == "us"}
            for name, host in self.hosts.items()
            if host.is_out or host.by or not host.is_up
        ]
        most = {"allowed": self.allowed, "why": "so"}
        cluster = {
            "hosts": hosts,
            "out_of_service": out,
            "max_out_of_service": most,
            "remediations": self.remediations(),
        }
        return {"cluster": cluster, "stops": self.stops if options.get("leaving") else self.stops_after}

    def _image(self, names: Iterable[str], options: Mapping[str, Any], is_planned: bool) -> dict[str, Any]:
        """Set the image, and apply it to hosts as vLCM does, whose task goes on without the controller."""
        version = str(options["components"]["manager"])
        changed = self.image != version
        if not is_planned and changed:
            assert self.holder, "no write without the lock"
            self.effect("commit", lambda: setattr(self, "image", version))
        reports = [image_report(name, self.hosts[name].needs_image or (changed and is_planned)) for name in names]
        for name in [] if is_planned else names:
            self._remediate(name, self.hosts[name])
        differs = changed or any(report["changed"] for report in reports)
        header = {"before_header": "gpu: image", "after_header": "gpu: image"}
        diff = [{**header, "before": {"base_image": "8.0"}, "after": {"base_image": version}}] if changed else []
        return {"changed": differs, "hosts": reports, "diff": diff}

    def _remediate(self, name: str, host: FakeHost) -> None:
        if not host.needs_image:
            return
        assert host.is_out and host.by == "us" and not self.remediating, f"{name} is remediated in service"
        self.effect(f"apply the image to {name}", lambda: self.remediating.append(name))
        self.effect(f"the image is on {name}", self._go_on_remediating)

    def remediations(self) -> list[dict[str, Any]]:
        """Return the remediations that run, which end before the next question."""
        running = [{"user": "us", "hosts": [name], "error": ""} for name in self.remediating]
        self._go_on_remediating()
        return running

    def _go_on_remediating(self) -> None:
        for name in self.remediating:
            host = self.hosts[name]
            host.needs_image, host.boots = False, host.boots + 1
        self.remediating.clear()

    def _profile(self, names: Iterable[str], is_planned: bool) -> dict[str, Any]:
        silent = [name for name in names if not self.hosts[name].is_up]
        if silent:
            return {"failed": True, "msg": f"{silent[0]}: could not read it: vCenter shows it as notResponding"}
        reports = [self._applied(name, self.hosts[name], is_planned) for name in names]
        return {
            "hosts": reports,
            "changed": any(report["changed"] for report in reports),
            "needs": sorted({need for report in reports for need in report["needs"]}),
            "diff": [report["host"] for report in reports if report["changed"]],
        }

    def _applied(self, name: str, host: FakeHost, is_planned: bool) -> dict[str, Any]:
        changed, host.waiting = host.differs, max(0, host.waiting - 1)
        report = {"host": name, "changed": changed, "needs": host.needs, "reboots": host.reboots, "why": ["it differs"]}
        report.update(unmet=[], boot_time=host.boot_time, out_of_service=host.is_out or not host.is_up or bool(host.by))
        if not is_planned and changed:
            assert self.holder, "no write without the lock"
            assert host.is_out or not host.needs, f"{name} is changed in service"
            assert not host.is_out or host.by == "us", f"{name} belongs to others"
            assert name not in self.remediating, f"{name} is changed while vLCM remediates it"
            host.differs, host.progress = False, [*host.progress, "changed"]
            report.update(needs=host.needs, reboots=host.reboots)
        return report

    def _power(self, names: Any, state: str, options: Mapping[str, Any], is_planned: bool) -> dict[str, Any]:
        act: Callable[[str, FakeHost], Any] = {
            "maintenance": lambda name, host: self._leave(name, host, options.get("take_over") or ()),
            "rebooted": lambda name, host: self._reboot(name, host, options.get("boot_times") or {}),
            "in_service": self._return,
        }[state]
        reports = []
        for name in names:
            host = self.hosts[name]
            if not host.is_up and state != "rebooted":
                return {"failed": True, "msg": f"{name}: could not read its state: vCenter shows it as notResponding"}
            changed = state == "in_service" and host.by == "us"
            if not is_planned:
                act(name, host)
            is_ours = host.is_out and host.by == "us"
            reported = {"maintenance": host.is_out, "ours": is_ours}
            if is_planned and changed:
                reported.update(maintenance=False, ours=False)
            reports.append({"host": name, "changed": changed, "state": reported})
        return {"hosts": reports, "changed": any(report["changed"] for report in reports)}

    def _leave(self, name: str, host: FakeHost, take_over: Iterable[str]) -> None:
        if host.is_out and name in take_over:
            self.effect(f"note on {name}", lambda: setattr(host, "by", "us"))
        if host.is_out:
            return
        assert self.holder, "no write without the lock"
        self.effect(f"note on {name}", lambda: setattr(host, "by", "us"))
        self.effect(f"maintenance {name}", lambda: setattr(host, "is_out", True))
        self.most_out = max(self.most_out, sum(one.is_out for one in self.hosts.values()))

    def _return(self, name: str, host: FakeHost) -> None:
        if host.by != "us":
            return
        self.effect(f"return {name}", lambda: setattr(host, "is_out", False))
        self.effect(f"no note on {name}", lambda: setattr(host, "by", ""))
        self.on_return()

    def _reboot(self, name: str, host: FakeHost, boot_times: Mapping[str, str]) -> None:
        """Reboot as the module does: a note says which boot ends, and a reboot under way is awaited."""
        has_booted = boot_times.get(name, host.boot_time) != host.boot_time
        is_requested = bool(host.ending_boot) and (not host.is_up or not host.boots_needed)
        if host.is_up and not has_booted and not is_requested:
            assert host.is_out and host.by == "us", f"{name} boots in service"
            self.effect(f"reboot {name}", lambda: self._down(host))
        if not host.is_up:
            self.effect(f"wait for {name}", lambda: self._up(host))
        self.effect(f"forget the reboot of {name}", lambda: setattr(host, "ending_boot", ""))

    def _down(self, host: FakeHost) -> None:
        host.ending_boot, host.is_up = host.boot_time, False
        host.progress.append("boot")

    def _up(self, host: FakeHost) -> None:
        host.boots, host.is_up = host.boots + 1, True
        host.boots_needed = max(0, host.boots_needed - 1)
        # The rest of a profile can be applied after the first of its boots only.
        host.differs, host.waiting = host.boots_needed > 0, host.slow_driver
