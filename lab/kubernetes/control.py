"""The control plane of a lab: real programs in the lab's network namespace, outside the nodes, so no move stuns it."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from lab.kubernetes import layout
from lab.kubernetes.layout import Layout
from lab.kubernetes.pki import MASTERS, Authority, write_secret
from lab.nodes.network import MANAGEMENT
from lab.nodes.programs import LabError, run

ETCD = "http://127.0.0.1:2379"
PEERS = "http://127.0.0.1:2380"
SELF = "lab"  # the lab's own identity at the API server, which also uses it for calls to kubelets
# The callers of the API server, except nodes: file, user, groups.
CALLERS = (
    ("admin", "admin", (MASTERS,)),
    ("controllers", "system:kube-controller-manager", ()),
    ("scheduler", "system:kube-scheduler", ()),
    ("names", "lab:names", ()),
)
KNOWN_AS = ("kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{layout.DOMAIN}")
COREFILE = """\
.:53 {{
  bind {control}
  errors
  cache 2 {{
    denial 64 1
  }}
  kubernetes {domain} in-addr.arpa ip6.arpa {{
    kubeconfig {folder}/names.conf
    ttl 2
  }}
}}
"""
READY_SECONDS = 120
LOOK_SECONDS = 0.1


@dataclass(frozen=True)
class Program:
    """A program of the control plane; the ``first`` programs start before the API server answers, its clients later."""

    name: str
    command: tuple[str, ...]
    first: bool = False


def programs(binaries: Path, folder: Path, where: Layout) -> list[Program]:
    """Return all programs in start order; each keeps its files in ``folder``."""
    kube = str(binaries / "kube")
    names = (str(binaries / "coredns"), "-conf", str(folder / "Corefile"))
    return [
        Program("etcd", (kube, "etcd", *_etcd(folder)), first=True),
        Program("apiserver", (kube, "kube-apiserver", *_apiserver(folder, where)), first=True),
        Program("controllers", (kube, "kube-controller-manager", *_controllers(folder))),
        Program("scheduler", (kube, "kube-scheduler", *_called_by(folder, "scheduler"))),
        Program("names", names),
    ]


def _etcd(folder: Path) -> list[str]:
    own = ["--name=lab", f"--data-dir={folder / 'etcd'}", f"--initial-cluster=lab={PEERS}"]
    own += [f"--listen-client-urls={ETCD}", f"--advertise-client-urls={ETCD}"]
    own += [f"--listen-peer-urls={PEERS}", f"--initial-advertise-peer-urls={PEERS}"]
    # A lab's data need not survive a power failure.
    return [*own, "--unsafe-no-fsync", "--log-level=warn"]


def _apiserver(folder: Path, where: Layout) -> list[str]:
    return [
        f"--etcd-servers={ETCD}",
        f"--bind-address={where.control}",
        f"--advertise-address={where.control}",
        f"--secure-port={layout.PORT}",
        f"--service-cluster-ip-range={layout.SERVICES}",
        f"--client-ca-file={folder / 'ca.crt'}",
        f"--tls-cert-file={folder / 'apiserver.crt'}",
        f"--tls-private-key-file={folder / 'apiserver.key'}",
        f"--kubelet-client-certificate={folder / SELF}.crt",
        f"--kubelet-client-key={folder / SELF}.key",
        "--kubelet-preferred-address-types=InternalIP",
        f"--service-account-issuer=https://kubernetes.default.svc.{layout.DOMAIN}",
        f"--service-account-key-file={folder / 'accounts.pub'}",
        f"--service-account-signing-key-file={folder / 'accounts.key'}",
        "--authorization-mode=Node,RBAC",
        # No kube-proxy runs beside the API server, which therefore calls webhooks at the addresses of their pods.
        "--enable-aggregator-routing=true",
        "--enable-admission-plugins=NodeRestriction",
        "--allow-privileged=true",
        "--profiling=false",
    ]


def _controllers(folder: Path) -> list[str]:
    return [
        *_called_by(folder, "controllers"),
        f"--service-account-private-key-file={folder / 'accounts.key'}",
        f"--root-ca-file={folder / 'ca.crt'}",
        f"--cluster-signing-cert-file={folder / 'ca.crt'}",
        f"--cluster-signing-key-file={folder / 'ca.key'}",
        f"--cluster-cidr={layout.PODS}",
        "--use-service-account-credentials",
    ]


def _called_by(folder: Path, name: str) -> list[str]:
    config = folder / f"{name}.conf"
    ways = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
    return [*(f"--{way}={config}" for way in ways), "--leader-elect=false", "--bind-address=127.0.0.1"]


def prepare(folder: Path, where: Layout) -> None:
    """Write certificates, kubeconfigs and configuration, using the existing authority."""
    authority = Authority(folder)
    authority.server("kube-apiserver", (where.control, layout.API, *KNOWN_AS)).write(folder, "apiserver")
    authority.client("lab", (MASTERS,)).write(folder, SELF)
    for name, user, groups in CALLERS:
        write_secret(folder / f"{name}.conf", authority.kubeconfig(where.server, user, groups))
    values = {"control": where.control, "domain": layout.DOMAIN, "folder": folder}
    (folder / "Corefile").write_text(COREFILE.format(**values))


def connect(lab: str, where: Layout) -> None:
    """Add the control plane's address and the routes between the pods of all nodes to the lab's namespace."""
    lines = ["link set lo up", f"address add {where.control}/{where.subnet.prefixlen} dev {MANAGEMENT}"]
    lines += [f"route add {pods} via {node} dev {MANAGEMENT}" for pods, node in where.routes()]
    run("ip", "-n", lab, "-batch", "-", text="\n".join([*lines, ""]))
    # These settings affect only this namespace. Traffic between pods on different nodes passes through it by design.
    settings = {"ip_forward": 1, "conf/all/send_redirects": 0, f"conf/{MANAGEMENT}/send_redirects": 0}
    writes = [f"echo {value} > /proc/sys/net/ipv4/{setting}" for setting, value in settings.items()]
    run("nsenter", f"--net=/run/netns/{lab}", "sh", "-c", " && ".join(writes))


class Control:
    """The control-plane programs of one lab."""

    def __init__(self, lab: str, folder: Path) -> None:
        self.lab, self.folder = lab, folder
        self.running: dict[str, subprocess.Popen[bytes]] = {}

    def start(self, program: Program) -> None:
        """Start a program in the lab's namespace; it ends with the namespace."""
        command = ["nsenter", f"--net=/run/netns/{self.lab}", *program.command]
        with self.log(program.name).open("wb") as log:
            self.running[program.name] = subprocess.Popen(
                command, cwd=self.folder, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def until(self, condition: Callable[[], bool], description: str, seconds: float = READY_SECONDS) -> None:
        """Wait for a condition, and raise LabError if a started program ends meanwhile."""
        deadline = time.monotonic() + seconds
        while not condition():
            for name, process in self.running.items():
                if process.poll() is not None:
                    raise LabError(f"{name} ended with {process.returncode}: {self._last(name)} ({self.log(name)})")
            if time.monotonic() > deadline:
                raise LabError(f"Waited {seconds} s in vain until {description}. The logs are {self.folder}/*.log.")
            time.sleep(LOOK_SECONDS)

    def log(self, name: str) -> Path:
        """Return the log file of a program."""
        return self.folder / f"{name}.log"

    def _last(self, name: str) -> str:
        return (self.log(name).read_text(errors="replace").strip().splitlines() or ["no output"])[-1]
