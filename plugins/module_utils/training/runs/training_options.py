"""The options of the role training, which its argument specification describes; pure."""

from __future__ import annotations

from typing import Any, Mapping, Sequence, TypedDict


class RoleOptions(TypedDict):
    """The options by their names without the role's prefix, with the types that the role declares."""

    nodes: Sequence[str]
    launcher: str
    address: str
    ranks_per_node: int
    transport: str
    gdr: str
    nccl: str
    network: str
    stun_seconds: int
    bind_to: str
    interface: str
    esxi_hosts: Mapping[str, Any]
    neighbours: Mapping[str, Any]
    gradient_bytes: int
    sysfs: str
    backend: str
    kubernetes: Mapping[str, Any]
    slurm: Mapping[str, Any]
    user: str
    python: str
    image: str
    framework: str
    outputs_every: int
    forward: Sequence[int]
    tf_cnn_url: str
    tf_cnn_sha256: str
    share_nodes: bool
    daemon_ports: str
    port: int
    options: Sequence[str]
    command: str | Sequence[str]
    steps_by: str
    folder: str
    folder_limit: int
    include: Sequence[str]
    data: str
    data_sha256: str
    data_limit: int
    requirements: str
    outputs: str
    outputs_limit: int
    steps: int
    warmup: int
    environment: Mapping[str, object]
    stack: str
    dir: str
    runs: str
    name: str
    started_by: str
    metrics: str
    vmotion_tests: str
    results: str
    mpirun: str
    mpirun_arguments: Sequence[str]
    remote_shell: str
    remote_python: str
    watched: Sequence[str]
    reach: Sequence[str]
    resume: str
    checkpoints: Sequence[str]
    attempts: int
    attempt_wait: int
    repeat: str
    accept: Sequence[str]
    compare: Sequence[str]
    lines: int
    fetch: str
    exec: str | Sequence[str]
    follow: bool
    gpu_health: str
    gpu_xid_seconds: int
    show: str
    silence: int
    check_gradients: int
    fail_on_nan: bool
    prove: bool
    sweep: Mapping[str, Sequence[object]]
    sweep_size: int
    sweep_nodes: Sequence[int]
    sweep_transports: Sequence[str]
    sweep_repeats: int
    sweep_name: str
    fabric_seconds: float
    fabric_repeats: int
    fabric_bytes: int
    fabric_stall: float
    fabric_library: str
    fabric_least: float
    fabric_expected: float
    fabric_results: str
    fabric_recent: int
    fabric_accepted: bool


# The settings that the command of a followed run had.
class _Followed(TypedDict, total=False):
    asked: Mapping[str, Any]


class Options(RoleOptions, _Followed, total=False):
    """The options of one command, and what follows from its nodes, its folder and the run that it follows.

    ``interfaces`` has the network interface of each node, and ``left_out`` the patterns of files that are not copied.
    The job of a run with ``array`` is submitted with those of others.
    """

    interfaces: Mapping[str, str]
    array: bool
    left_out: Sequence[str]
