"""The compatibility of GPU, driver, host, CUDA and its libraries."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from .compatibility import CompatibilityIssue, CompatibilityTables, Stack, misfit, row, unknown
from .part_versions import at_least, built_for_cuda, same_cuda, series

_LIBRARIES = {"nccl": "NCCL", "cudnn": "cuDNN"}
_BUNDLED_NCCL = "nvidia-nccl-cu"


def driver_and_cuda(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue if the driver is older than CUDA requires."""
    cuda, driver = _cuda(stack), stack.get("gpu_driver")
    if not cuda or not driver:
        return
    version, table, key = cuda["version"], "cuda_drivers", series(cuda["version"], 2)
    if cuda.get("minor_version_compatibility"):
        table, key = "cuda_minor_version_drivers", series(version, 1)
    needed = row(facts, table, "cuda", key)
    if needed is None:
        yield unknown(f"which driver CUDA {version} needs")
    elif not at_least(driver["version"], needed["driver"]):
        words = f"CUDA {key} needs driver >= {needed['driver']} and the stack has {driver['version']}"
        yield misfit(words, needed["source"])


def driver_and_attachment(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue unless a vGPU has the GRID driver, and a GPU in passthrough the data center driver."""
    gpu, driver = stack.get("gpu"), stack.get("gpu_driver")
    if not gpu or not driver:
        return
    desired = row(facts, "gpu_attachments", "attachment", gpu["attachment"])
    if desired is None:
        yield unknown(f"which driver a GPU attached by {gpu['attachment']} needs")
    elif driver["kind"] != desired["kind"]:
        words = f"A GPU attached by {gpu['attachment']} needs the {desired['kind']} driver"
        yield misfit(f"{words} and the stack has the {driver['kind']} driver", desired["source"])


def _cuda(stack: Stack) -> Stack | None:
    """Return the CUDA of a stack, or the CUDA in PyTorch's packages if no other part needs one."""
    framework = stack.get("framework") or {}
    has_own = framework.get("cuda") and not stack.get("horovod")
    compatible = framework.get("minor_version_compatibility", False)
    brought = {"version": framework.get("cuda"), "minor_version_compatibility": compatible}
    return stack.get("cuda") or (brought if has_own else None)


def libraries_and_cuda(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue for NCCL, cuDNN and their packages that are built for another CUDA."""
    cuda = stack.get("cuda")
    for key, name in _LIBRARIES.items():
        library = stack.get(key)
        if not library:
            continue
        named = f"{name} {library['version']}"
        source = facts["cuda_builds"]["source"]
        if cuda is None:
            yield misfit(f"{named} is built for CUDA {library['cuda']} and the stack has no CUDA", source)
        elif not same_cuda(library["cuda"], cuda["version"]):
            words = f"{named} is built for CUDA {library['cuda']} and the stack has CUDA {cuda['version']}"
            yield misfit(words, source)
        for packages in library["packages"].values():
            for package in packages:
                built = built_for_cuda(package.get("version", ""))
                if built is not None and built != library["cuda"]:
                    words = f"{package['name']} {package['version']} is built for CUDA {built}"
                    yield misfit(f"{words} and the stack specifies {named} for CUDA {library['cuda']}", source)


def nccl_and_moves(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue if a vGPU that moves, which has no unified memory, has an NCCL that requires it."""
    gpu = stack.get("gpu")
    known = row(facts, "vgpu_moves", "library", "nccl")
    if not gpu or not known or gpu["attachment"] != "vgpu" or not gpu.get("moves", True):
        return
    for owner, version in _nccls(stack):
        if at_least(version, known["again"]):
            yield unknown(f"NCCL {version} of {owner} on a vGPU that moves: inferred from its program text, not run")
        elif at_least(version, known["before"]):
            needed = f"NCCL < {known['before']} or >= {known['again']}"
            words = f"A vGPU that moves has no unified memory and needs {needed}"
            yield misfit(f"{words} and {owner} has NCCL {version}", known["source"])


def _nccls(stack: Stack) -> Iterator[tuple[str, str]]:
    """Yield each NCCL of a stack and its location: the part ``nccl``, and Python packages."""
    if stack.get("nccl"):
        yield "the stack", stack["nccl"]["version"]
    for package in stack["framework"]["packages"]:
        if package["name"].startswith(_BUNDLED_NCCL):
            yield f"the Python package {package['name']}", package["version"]


def gpus_and_cuda(stack: Stack, facts: CompatibilityTables) -> Iterator[CompatibilityIssue]:
    """Yield an issue for each GPU of the stack whose compute capability CUDA does not support."""
    for model in (stack.get("gpu") or {"models": []})["models"]:
        yield from gpu_of_node(stack, facts, model)


def gpu_of_node(stack: Stack, facts: CompatibilityTables, model: str) -> Iterator[CompatibilityIssue]:
    """Yield an issue if CUDA does not support the compute capability of this GPU."""
    cuda = _cuda(stack)
    if not cuda:
        return
    gpu = row(facts, "gpus", "gpu", model)
    known = row(facts, "cuda_capabilities", "capability", gpu["capability"]) if gpu else None
    if gpu is None or known is None:
        yield unknown(f"the compute capability of the GPU {model}, and whether CUDA {cuda['version']} supports it")
        return
    capability = f"The GPU {model} has compute capability {gpu['capability']}"
    if not at_least(cuda["version"], known["since"]):
        words = f"{capability}, which CUDA supports from {known['since']} on"
        yield misfit(f"{words}, and the stack has CUDA {cuda['version']}", known["source"])
    if "before" in known and at_least(cuda["version"], known["before"]):
        words = f"{capability}, which CUDA no longer supports from {known['before']} on"
        yield misfit(f"{words}, and the stack has CUDA {cuda['version']}", known["source"])


def host_and_guest(stack: Stack, facts: CompatibilityTables, host_driver: str) -> Iterator[CompatibilityIssue]:
    """Yield an issue unless the vGPU manager of the host supports guests of this branch."""
    driver, gpu = stack.get("gpu_driver"), stack.get("gpu")
    if not driver or not gpu or gpu["attachment"] != "vgpu":
        return
    host, guest = series(host_driver, 1), series(driver["version"], 1)
    if host == guest:
        return
    pair = f"the guest driver {driver['version']} under the vGPU manager {host_driver}"
    branch = row(facts, "vgpu_branches", "branch", host)
    if at_least(guest, host):
        yield misfit(
            f"The guest driver {driver['version']} is newer than the vGPU manager {host_driver}", _notes(facts)
        )
    elif branch is None or branch["older_guests"] is None:
        yield unknown(f"{pair}; only the same branch is known to fit")
    elif guest not in branch["older_guests"]:
        runs = ", ".join([host, *branch["older_guests"]])
        words = f"The vGPU manager {host_driver} runs guests of the branches {runs}"
        yield misfit(f"{words}, but not {driver['version']}", branch["source"])


def _notes(facts: CompatibilityTables) -> str:
    """Return the release notes that state the rule for all newer guests."""
    newest = [one for one in facts["vgpu_branches"]["rows"] if one["older_guests"]][-1]
    return str(newest["source"])


RULES: tuple[Callable[[Stack, CompatibilityTables], Iterator[CompatibilityIssue]], ...] = (
    driver_and_cuda,
    driver_and_attachment,
    libraries_and_cuda,
    nccl_and_moves,
    gpus_and_cuda,
)
