# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lab's Kubernetes: addresses, certificates, commands, what makes a node a member, and what is built again when."""

from __future__ import annotations

import base64
import ipaddress
import json
import re
import shutil
import ssl
import stat
from pathlib import Path

import pytest
import yaml
from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.x509.oid import NameOID

from lab import __main__ as command
from lab.kubernetes import binaries, control, images, layers, layout, member
from lab.kubernetes.built import Built
from lab.kubernetes.layout import Layout
from lab.kubernetes.member import Member
from lab.kubernetes.pki import Authority, Identity
from lab.nodes.cloudinit import guest
from lab.nodes.programs import LabError
from lab.running import Lab

LAB = Path(__file__).parents[3] / "lab"
WHERE = Layout.of("10.86.16.0/24")
GO_MOD = (binaries.MODULE / "go.mod").read_text()


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    made = Authority(tmp_path / "authority")
    made.create()
    return made


def subject(identity: Identity) -> dict[str, list[str]]:
    name = x509.load_pem_x509_certificate(identity.certificate.encode()).subject
    kinds = {"user": NameOID.COMMON_NAME, "groups": NameOID.ORGANIZATION_NAME}
    return {kind: [str(one.value) for one in name.get_attributes_for_oid(oid)] for kind, oid in kinds.items()}


def test_every_address_has_its_own_pods() -> None:
    routes = dict(WHERE.routes())
    assert len(routes) == 252
    assert routes["10.244.100.0/24"] == "10.86.16.100"
    everywhere = ipaddress.IPv4Network(layout.PODS)
    assert all(ipaddress.IPv4Network(pods).subnet_of(everywhere) for pods in routes)
    assert {WHERE.control, "10.86.16.1"}.isdisjoint(routes.values())


@pytest.mark.parametrize(
    ("address", "words"), [("10.86.16.2", "10.86.16.2 is the API server"), ("10.86.17.3", "A worker cannot have")]
)
def test_a_worker_is_refused_where_it_cannot_be(address: str, words: str) -> None:
    with pytest.raises(LabError, match=words):
        WHERE.pods_of(address)


def test_a_network_with_more_nodes_than_pod_networks_is_refused() -> None:
    with pytest.raises(LabError, match=r"10\.0\.0\.0/16 is too large for Kubernetes: use a /24 network"):
        Layout.of("10.0.0.0/16")


def test_a_trusted_certificate_identifies_the_caller(authority: Authority) -> None:
    node = authority.client("system:node:worker01", ("system:nodes",))
    assert subject(node) == {"user": ["system:node:worker01"], "groups": ["system:nodes"]}
    trusted = x509.load_pem_x509_certificate(authority.certificate.encode())
    x509.load_pem_x509_certificate(node.certificate.encode()).verify_directly_issued_by(trusted)
    stranger = Authority(authority.folder.with_name("stranger"))
    stranger.create()
    with pytest.raises(InvalidSignature):
        x509.load_pem_x509_certificate(stranger.client("admin").certificate.encode()).verify_directly_issued_by(trusted)


def test_the_server_is_known_by_its_addresses_and_names(authority: Authority) -> None:
    control.prepare(authority.folder, WHERE)
    certificate = x509.load_pem_x509_certificate((authority.folder / "apiserver.crt").read_bytes())
    known = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    addresses = [str(one) for one in known.get_values_for_type(x509.IPAddress)]
    assert addresses == ["10.86.16.2", "10.96.0.1"]
    assert "kubernetes.default.svc" in known.get_values_for_type(x509.DNSName)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.folder / "apiserver.crt", authority.folder / "apiserver.key")


def test_other_users_cannot_read_secrets(authority: Authority) -> None:
    control.prepare(authority.folder, WHERE)
    secret = [path for path in authority.folder.iterdir() if path.suffix in {".key", ".conf"}]
    assert {path.name for path in secret} >= {"ca.key", "accounts.key", "admin.conf", "controllers.conf"}
    assert {stat.S_IMODE(path.stat().st_mode) for path in secret} == {0o600}


def test_the_kubeconfig_is_complete(authority: Authority) -> None:
    result = yaml.safe_load(authority.kubeconfig(WHERE.server, "admin", ("system:masters",)))
    assert result["clusters"][0]["cluster"]["server"] == "https://10.86.16.2:6443"
    trusted = base64.b64decode(result["clusters"][0]["cluster"]["certificate-authority-data"]).decode()
    assert trusted == authority.certificate
    user = {key: base64.b64decode(value).decode() for key, value in result["users"][0]["user"].items()}
    identity = Identity(user["client-certificate-data"], user["client-key-data"])
    assert subject(identity) == {"user": ["admin"], "groups": ["system:masters"]}
    assert result["users"][0]["name"] == result["contexts"][0]["context"]["user"]


def test_callers_start_after_what_they_call() -> None:
    programs = control.programs(Path("/built"), Path("/lab/kubernetes"), WHERE)
    assert [one.name for one in programs] == ["etcd", "apiserver", "controllers", "scheduler", "names"]
    assert [one.name for one in programs if one.first] == ["etcd", "apiserver"]


def test_the_control_plane_listens_in_the_lab_and_writes_to_its_folder(authority: Authority) -> None:
    control.prepare(authority.folder, WHERE)
    words = [
        word for one in control.programs(Path("/built"), authority.folder, WHERE) for word in one.command if "=" in word
    ]
    bound = {word.partition("=")[2] for word in words if word.startswith("--bind-address")}
    assert bound == {"10.86.16.2", "127.0.0.1"}
    named = {Path(value) for value in re.findall(r"=(/\S+)", "\n".join(words))}
    assert all(path.is_relative_to(authority.folder) for path in named)
    assert {path.name for path in named if not path.exists()} == {"etcd"}


def test_the_pinned_releases_are_found() -> None:
    assert re.fullmatch(r"v1\.\d+\.\d+", binaries.version(GO_MOD))
    assert re.fullmatch(r"\d+\.\d+\.\d+", binaries.operator_version(GO_MOD))
    result = binaries.linked("\tk8s.io/kubernetes v1.35.4\n")
    assert "-X k8s.io/component-base/version.gitVersion=v1.35.4" in result
    assert "-X k8s.io/client-go/pkg/version.gitMinor=35" in result
    with pytest.raises(LabError, match="contains no line that matches"):
        binaries.version("module nothing\n")


@pytest.mark.parametrize("changed", ["go.sum", "go.mod", "devices/main.go"])
def test_another_sum_or_line_is_another_build(tmp_path: Path, changed: str) -> None:
    for path in [binaries.MODULE / "go.mod", binaries.MODULE / "go.sum", *binaries.MODULE.glob("*/*.go")]:
        there = tmp_path / path.relative_to(binaries.MODULE)
        there.parent.mkdir(exist_ok=True)
        shutil.copy(path, there)
    assert binaries.key(tmp_path) == binaries.key()
    with (tmp_path / changed).open("a") as text:
        text.write("\n")
    assert binaries.key(tmp_path) != binaries.key()


def test_another_file_is_another_image(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one")
    layer = layers.Layer("lab.local/x", ("socat",), tmp_path, (("etc/a", "a"),))
    before = layer.tag
    (tmp_path / "a").write_text("two")
    assert re.fullmatch(r"lab\.local/x:[0-9a-f]{12}", before)
    assert layer.tag != before


@pytest.mark.parametrize("layer", [images.NODE, images.TRAINING], ids=["node", "training"])
def test_every_file_of_an_image_is_there(layer: layers.Layer) -> None:
    assert {here for _there, here in layer.files} <= {path.name for path in layer.folder.iterdir()}
    assert all(f"/{there}" in layer.work for there, _here in layer.files)


def test_horovods_environment_is_part_of_what_pods_are_filled_from(tmp_path: Path) -> None:
    without = images._key(tmp_path)
    (tmp_path / "requirements.txt").write_text("tensorflow-cpu==2.15.1\n")
    assert not images.has_horovod(tmp_path)
    assert images._key(tmp_path) == without
    (tmp_path / "horovod.sha256").write_text("one")
    first = images._key(tmp_path)
    (tmp_path / "horovod.sha256").write_text("two")
    assert len({without, first, images._key(tmp_path)}) == 3


def test_the_images_that_manifests_name_are_those_that_are_built() -> None:
    named = {
        image for path in (LAB / "kubernetes").glob("*/*") for image in re.findall(r"lab\.local/\w+:\d", _text(path))
    }
    assert named == {images.PAUSE, images.DEVICES}


def test_all_sides_mean_the_same_network_by_pods() -> None:
    proxy = yaml.safe_load((member.HERE / "kube-proxy.yaml").read_text())
    assert proxy["clusterCIDR"] == layout.PODS
    assert all(value in (0, "0s") for key, value in proxy["conntrack"].items())


def test_a_node_gets_what_makes_it_a_member(authority: Authority) -> None:
    kind = Member(Built(Path("/built"), "image", Path("/filled")), authority.folder, WHERE)
    files = kind.files(guest("vm-1", "worker01", {}), "10.86.16.40")
    assert files["/etc/kubernetes/node.env"] == "NODE_ADDRESS=10.86.16.40\nCONTROL=10.86.16.2\nPODS=10.244.0.0/16\n"
    config = json.loads(files["/etc/kubernetes/kubelet.yaml"])
    assert config["clusterDNS"] == ["10.86.16.2"]
    expected = set(re.findall(r"/etc/kubernetes/[\w.-]+", json.dumps(config) + _units()))
    assert expected <= set(files)
    network = json.loads(files["/etc/cni/net.d/10-lab.conflist"])
    assert network["plugins"][0]["ipam"]["ranges"] == [[{"subnet": "10.244.40.0/24"}]]
    user = yaml.safe_load(files["/etc/kubernetes/kubelet.conf"])["users"][0]["user"]
    identity = Identity(base64.b64decode(user["client-certificate-data"]).decode(), "")
    assert subject(identity) == {"user": ["system:node:worker01"], "groups": ["system:nodes"]}


def test_nodes_share_layers_and_write_their_own_databases(tmp_path: Path) -> None:
    filled, disk, layer = tmp_path / "filled", tmp_path / "disks" / "vm-1", f"{member.SNAPSHOTS}/7/fs"
    for path, text in {f"{layer}/bin/sh": "program", "blobs/1": "image", "meta.db": "names"}.items():
        (filled / path).parent.mkdir(parents=True, exist_ok=True)
        (filled / path).write_text(text)
    kind = Member(Built(Path("/built"), "image", filled), tmp_path, WHERE)
    own, shared = disk / "containerd", f"{filled}/{layer}:/var/lib/containerd/{layer}:ro"
    volumes = kind.volumes(disk)
    assert volumes[:2] == ["/built:/opt/kubernetes:ro", f"{disk}/kubelet:/var/lib/kubelet"]
    assert volumes[2:] == [f"{own}:/var/lib/containerd", shared]
    assert list((own / layer).iterdir()) == list((disk / "kubelet").iterdir()) == []
    assert (own / "blobs" / "1").samefile(filled / "blobs" / "1")
    (own / "meta.db").write_text("changed")
    assert (filled / "meta.db").read_text() == "names"
    kind.volumes(disk)
    assert (own / "meta.db").read_text() == "changed"


def test_no_node_may_touch_what_is_the_whole_machines() -> None:
    assert "--privileged" not in member.RIGHTS
    dropped = member.RIGHTS[member.RIGHTS.index("--cap-drop") + 1]
    assert dropped.split(",") == ["SYS_TIME", "SYS_MODULE"]
    assert "systemd-sysctl.service" in images.MASKED


def test_a_lab_with_kubernetes_has_nodes(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.argv", ["lab", "--kubernetes", "up", "--without-nodes"])
    assert command.main() == 1
    assert "--kubernetes and --without-nodes cannot go together" in capsys.readouterr().err


def test_kubectl_needs_a_lab_that_is_up(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    requested = []
    monkeypatch.setattr("sys.argv", ["lab", "--kubernetes", "kubectl", "get", "--all-namespaces", "pods"])
    monkeypatch.setattr(command, "Lab", lambda name: requested.append(name) or Lab(name, tmp_path))
    assert command.main() == 1
    assert "has no Kubernetes: python -m lab --kubernetes up starts one" in capsys.readouterr().err
    assert requested == ["kubernetes"]


def _text(path: Path) -> str:
    return path.read_text() if path.suffix in {".yaml", ".toml"} else ""


def _units() -> str:
    return "".join(path.read_text() for path in member.HERE.glob("*.service"))
