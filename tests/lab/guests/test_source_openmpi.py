"""OpenMPI that is built from source, as the stacks for GPUs have it, serves Horovod and training on two nodes."""

from __future__ import annotations

import json

import pytest
import yaml

from lab.simulator import ROOT
from tests.lab.benchmark import NAMES, Cluster
from tests.lab.training.test_benchmark import check_equal, check_steps, options

pytestmark = pytest.mark.slow
# The source of Debian's package, which every archive of Debian has.
SOURCE = "openmpi_4.1.4.orig.tar.xz"
SHA256 = "ddaee7dbdb01eb4fab1fda5b5e03e8bbff026711806c095c1f39bb410f99f263"
PREFIX = "/usr/local"
FETCH = f"""
archive=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -1)
sudo /usr/lib/apt/apt-helper download-file "${{archive}}pool/main/o/openmpi/{SOURCE}" /srv/{SOURCE} SHA256:{SHA256}
"""
# Without what takes long to build and no training asks for.
FILES = "--enable-mca-no-build=io,fs,fbtl,fcoll,sharedfp"
CONFIGURE = ["--enable-mpi-fortran=no", "--disable-oshmem", "--disable-io-romio", FILES, "CFLAGS=-O0"]


def test_openmpi_in_another_prefix_serves_horovod_and_training(unbuilt: Cluster) -> None:
    for name in NAMES:
        unbuilt.inside(name, f"sudo apt-get update -qq && {FETCH}")
    stack = yaml.safe_load((ROOT / "stacks" / "lab-cpu.yml").read_text())
    stack["bases"]["openmpi"] = "file:///srv"
    stack["openmpi"] = {
        "version": "4.1.4",
        "install": "source",
        "prefix": PREFIX,
        "source": {"base": "openmpi", "path": SOURCE, "sha256": SHA256},
        "configure": CONFIGURE,
        "build_packages": {"debian-12": [{"name": "g++"}, {"name": "make"}, {"name": "xz-utils"}]},
    }
    # Debian's headers would bring Debian's Open MPI along.
    stack["horovod"]["build_packages"]["debian-12"] = [{"name": "g++"}, {"name": "make"}, {"name": "python3-dev"}]
    (unbuilt.folder / "ours.yml").write_text(yaml.safe_dump(stack, sort_keys=False))
    unbuilt.build(str(unbuilt.folder / "ours.yml"))

    for name in NAMES:
        assert unbuilt.inside(name, "ls /usr/bin/mpirun", check=False) == ""
        proof = json.loads(unbuilt.inside(name, "cat /etc/ansible/facts.d/dml_openmpi.fact"))
        assert (proof["bin"], proof["version"], proof["proven"]) == (f"{PREFIX}/bin", "4.1.4", True)
        linked = unbuilt.inside(name, "ldd /opt/dml/horovod/lib/python3*/site-packages/horovod/tensorflow/mpi_lib*.so")
        assert f"{PREFIX}/lib/libmpi.so.40" in linked
    _result, result = unbuilt.train("own", **options("--classes", 10, "--steps", 10))
    assert result["job"]["mpirun_command"][0] == f"{PREFIX}/bin/mpirun"
    check_steps(unbuilt, "own", 1, 10)
    check_equal(unbuilt, "own")
