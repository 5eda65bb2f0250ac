"""Record the steps of an unchanged training script: those of its optimizer in PyTorch, or of Keras' fit::

    python -u dml_steps.py script.py ...
    python -u dml_steps.py -m module ...

It imports no framework. When the script imports one, each step of the first optimizer becomes a record (PyTorch 2.0 and
later), and each batch of ``fit`` becomes one with its loss. A loss that Hugging Face's Trainer or Lightning logs is a
separate record. Records of the script by dml_records take precedence. Only the process of the rank records steps, no
child process.
"""

# No "from __future__ import annotations" here: the Python of TensorFlow 1 does not support it.

import faulthandler
import math
import os
import runpy
import signal
import socket
import sys
import weakref
from typing import Any

import dml_records
import dml_room
import dml_trainers

# The function of torch.distributed.checkpoint, and how many callers of an optimizer's step are looked through for it.
STATE_MAKER, CALLERS = "_init_optim_state", 16

BY, FOLDER, EVERY = "DML_STEPS_BY", "DML_RECORDS", "DML_CHECK_GRADIENTS"
TORCH = "torch.optim.optimizer"
# The modules that define CallbackList in Keras 3, Keras 2, and TensorFlow up to 2.5.
KERAS = (
    *("keras.src.callbacks.callback_list", "keras.src.callbacks", "keras.callbacks"),
    *("tf_keras.src.callbacks", "tensorflow.python.keras.callbacks"),
)
CORES, LOCAL = "OMP_NUM_THREADS", "OMPI_COMM_WORLD_LOCAL_SIZE"
# The signal at which a rank writes the stack of its main thread; no framework uses it.
WHERE = signal.SIGRTMIN + 11
# The modules that connect ranks without a process group of PyTorch.
OTHER_GROUPS = ("horovod", "mpi4py.MPI")
# By this step, ranks that train one model have formed their group.
GROUPED_AFTER = 10
# An optimizer that ended is replaced by one that made many more steps than usual without a step of the former.
MORE = 10


class Steps:
    """The records of this process, which begin with its first step."""

    def __init__(self) -> None:
        self._pid, self._records = os.getpid(), None  # type: Any
        self._has_failed, self._has_lost, self._first, self._made = False, False, 1, 0
        self.by, self.others = "", 0
        # The first step with gradients that are not finite, and how often they are checked.
        self.not_finite = {}  # type: dict[str, int]

    @property
    def next_step(self) -> int:
        """Return the number of the next step."""
        return self._records.next_step if self._records is not None else self._first

    def take(self, by: str, others: int = 0, loss: Any = None) -> None:
        """Record a step, unless the script records its steps or another framework came first."""
        if self._is_mine(by):
            self.others = others
            self._made += 1
            self._write(lambda: self._records.step(loss=loss))

    def continue_after(self, step: Any) -> None:
        """Number the steps after the last one of the checkpoint that a framework has read."""
        if isinstance(step, int) and step > 0:
            self._first = step + 1

    def log(self, values: Any) -> None:
        """Record the loss among values that a framework logs after a step."""
        loss = dml_trainers.loss_in(values)
        if loss is not None and self._records is not None and self._is_mine(self.by):
            self._write(lambda: self._records.log(loss))

    def mark(self, by: str, name: str, phase: str = "eval") -> None:
        """Begin or end a phase without steps after the first step."""
        if self._records is not None and self._is_mine(by):
            self._write(lambda: getattr(self._records, name)(phase))

    def begin(self, phase: str) -> bool:
        """Begin a phase after the first step, unless it is part of another one; return whether to end it."""
        if self._records is None or self._records.is_in_phase:
            return False
        self.mark(self.by, "begin", phase)
        return self._records.is_in_phase

    def _is_mine(self, by: str) -> bool:
        if self._has_failed or os.getpid() != self._pid or dml_records.is_used:
            return False
        if self.by and self.by.partition(" ")[0] != by.partition(" ")[0]:
            return False
        self.by = by
        return True

    def _group(self) -> "dict[str, int]":
        """Return the size of the process group if it lacks ranks: each group then trains a separate model."""
        torch = sys.modules.get("torch")
        if self._made < GROUPED_AFTER or torch is None or any(name in sys.modules for name in OTHER_GROUPS):
            return {}
        found = getattr(torch, "distributed", None)
        is_grouped = getattr(found, "is_initialized", lambda: False)()
        size = found.get_world_size() if found is not None and is_grouped else 1
        return {"group": size} if size < self._records.size else {}

    def _write(self, write: Any) -> None:
        """Write a record; the script must not die because of records that it did not ask for.

        A disk that is full may have room again: without records of later steps, the job would count as silent. After
        any other error, the descriptor may be that of a file of the script, as if a helper had closed it.
        """
        try:
            if self._records is None:
                self._records = dml_records.automatic(self._first + max(0, self._made - 1))
            self._records.source = dict({"by": self.by, "others": self.others}, **self.not_finite, **self._group())
            write()
            self._has_lost = False
        except (OSError, ValueError, TypeError) as error:
            if not dml_room.is_about_room(error):
                self._has_failed = True
                sys.stderr.write(f"dml_steps.py records no more steps: {error}\n")
            elif not self._has_lost:
                self._has_lost = True
                sys.stderr.write(f"dml_steps.py could not record step {self._first + self._made - 1}: {error}\n")


class Gradients:
    """Whether the gradients of this rank are finite, every few steps, until they are not."""

    def __init__(self, steps: Steps, every: int) -> None:
        self._steps, self._every, self._made = steps, every, 0
        self._largest = None  # type: Any

    def check(self, optimizer: Any) -> None:
        """Read the last check, which a GPU has made meanwhile, and begin another one if it is due."""
        if not self._every or self._steps.not_finite:
            return
        self._made += 1
        if self._largest is not None:
            step, largest = self._largest
            self._largest = None
            if not math.isfinite(float(largest)):
                self._steps.not_finite = {"not_finite": step, "checked_every": self._every}
        if self._made % self._every == 0:
            self._begin(optimizer)

    def _begin(self, optimizer: Any) -> None:
        torch = sys.modules["torch"]  # type: Any
        # A fused optimizer skips such steps of a GradScaler itself, and a captured graph must not grow.
        if getattr(optimizer, "found_inf", None) is not None or _is_capturing(torch):
            return
        gradients = [_local(each.grad) for group in optimizer.param_groups for each in group["params"]]
        gradients = [each for each in gradients if each is not None and each.numel()]
        if gradients:
            self._largest = self._steps.next_step, _norm(torch, gradients)


def _local(gradient: Any) -> Any:
    """Return the values of a gradient on this rank: those of others would need a collective."""
    if gradient is None:
        return None
    gradient = gradient.to_local() if hasattr(gradient, "to_local") else gradient
    return (gradient._values() if gradient.is_sparse else gradient).detach()


def _norm(torch: Any, gradients: Any) -> Any:
    """Return the largest norm of a gradient, which is not finite if any value is not.

    The sum of squares takes a fifteenth of the time of the largest value on a CPU. Half precision has no room for it.
    """
    order = math.inf if any(getattr(each, "dtype", None) == torch.float16 for each in gradients) else 2.0
    try:
        each = torch._foreach_norm(gradients, order)
    except (AttributeError, RuntimeError, TypeError):
        each = [gradient.norm(order) for gradient in gradients]
    return torch.stack([norm.to(each[0].device, torch.float32) for norm in each]).max()


def _is_capturing(torch: Any) -> bool:
    """Return whether CUDA captures a graph."""
    is_used = torch.cuda.is_available() and torch.cuda.is_initialized()
    return bool(is_used and torch.cuda.is_current_stream_capturing())


def _makes_state() -> bool:
    """Return whether PyTorch makes the state of an optimizer for a checkpoint, with a step that trains nothing."""
    frame, left = sys._getframe(1), CALLERS  # type: Any
    while frame is not None and left and frame.f_code.co_name != STATE_MAKER:
        frame, left = frame.f_back, left - 1
    return bool(frame is not None and left)


class Optimizers:
    """The steps of the optimizers in PyTorch; those of one of them count."""

    def __init__(self, steps: Steps, is_compiling: Any, gradients: Gradients) -> None:
        self._steps, self._is_compiling, self._gradients = steps, is_compiling, gradients
        self._open = self._counted = None  # type: Any
        self._known, self._number = weakref.WeakSet(), 0  # type: Any
        # The steps of others since the last one that counted, and the most that there ever were.
        self._since, self._most = {}, 1  # type: Any

    def before(self, optimizer: Any, *_arguments: Any) -> None:
        """Note the outermost step: an optimizer may call that of another, or its own class twice."""
        if not self._is_compiling() and (self._open is None or self._open() is None) and not _makes_state():
            self._open = weakref.ref(optimizer)
            self._gradients.check(optimizer)

    def after(self, optimizer: Any, *_arguments: Any) -> None:
        """Record the step if it counts."""
        if self._is_compiling() or self._open is None or self._open() is not optimizer:
            return
        self._open = None
        if optimizer not in self._known:
            self._known.add(optimizer)
            self._number += 1
        if self._counts(optimizer):
            self._steps.take(f"optimizer {type(optimizer).__name__}", self._number - 1)

    def _counts(self, optimizer: Any) -> bool:
        counted = self._counted() if self._counted else None
        if counted is not None and counted is not optimizer:
            made = self._since[id(optimizer)] = self._since.get(id(optimizer), 0) + 1
            if made <= MORE * self._most:
                return False
            self._most = 1
        elif counted is optimizer:
            self._most = max([self._most, *self._since.values()])
        self._counted, self._since = weakref.ref(optimizer), {}
        return True


def watch_torch(steps: Steps) -> Any:
    """Return what to do with PyTorch's optimizers once they are imported."""

    def then(module: Any) -> None:
        if not hasattr(module, "register_optimizer_step_post_hook"):
            return
        gradients = Gradients(steps, int(os.environ.get(EVERY) or 0))
        optimizers = Optimizers(steps, _is_compiling, gradients)
        module.register_optimizer_step_pre_hook(optimizers.before)
        module.register_optimizer_step_post_hook(optimizers.after)

    return then


def _is_compiling() -> bool:
    """Return whether PyTorch compiles the step; the hook must leave no trace in what it compiles."""
    compiler = getattr(sys.modules.get("torch"), "compiler", None)
    return bool(compiler and hasattr(compiler, "is_compiling") and compiler.is_compiling())


def watch_keras(steps: Steps) -> Any:
    """Return what to do with Keras' callbacks once they are imported."""

    def then(module: Any) -> None:
        found = getattr(module, "CallbackList", None)
        if found is None or not hasattr(module, "Callback") or hasattr(found, "dml_steps"):
            return
        begin, found.dml_steps = found.__init__, True

        def with_records(self: Any, callbacks: Any = None, *more: Any, **named: Any) -> None:
            given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks] if callbacks else []
            begin(self, [*given, _callback(module.Callback, steps)], *more, **named)

        found.__init__ = with_records

    return then


def _callback(base: Any, steps: Steps) -> Any:
    class Steps(base):  # type: ignore[misc] # keras is not read by mypy
        """Record batches."""

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            """One step."""
            del batch
            steps.take("Keras", loss=(logs or {}).get("loss"))

        def on_test_begin(self, logs: Any = None) -> None:
            """Mark the start of an evaluation."""
            del logs
            steps.mark("Keras", "begin")

        def on_test_end(self, logs: Any = None) -> None:
            """Mark the end of an evaluation."""
            del logs
            steps.mark("Keras", "end")

    return Steps()


class Imports:
    """A finder that finds nothing itself and calls a function with each of some modules after its import."""

    def __init__(self, then: "dict[str, Any]") -> None:
        self._then = then

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Return the specification that the other finders return, with a loader that calls the function."""
        if name not in self._then:
            return None
        for finder in sys.meta_path:
            spec = finder.find_spec(name, path, target) if finder is not self and hasattr(finder, "find_spec") else None
            if spec is not None:
                self._wrap(spec.loader, self._then[name])
                return spec
        return None

    def _wrap(self, loader: Any, then: Any) -> None:
        """Let this loader call the function once; a loader that allows no attributes stays as it is."""
        run = getattr(loader, "exec_module", None)

        def run_then(module: Any) -> None:
            del loader.exec_module
            run(module)
            then(module)

        if run is not None and hasattr(loader, "__dict__") and not isinstance(loader, type):
            loader.exec_module = run_then


def install() -> None:
    """Record the steps of this process if the environment asks for it."""
    if os.environ.get(BY) != "auto" or FOLDER not in os.environ:
        return
    steps = Steps()
    watched = {TORCH: watch_torch(steps), **dict.fromkeys(KERAS, watch_keras(steps)), **dml_trainers.watched(steps)}
    sys.meta_path.insert(0, Imports(watched))


def register_stack() -> None:
    """Have this rank write the stack of its main thread to a file of the run when it gets the signal."""
    folder = os.environ.get(FOLDER)
    if not folder:
        return
    with open("/proc/self/stat", "rb") as stat:
        start = stat.read().rsplit(b")", 1)[1].split()[19].decode()
    with open("/proc/sys/kernel/random/boot_id") as boot:
        process = [str(os.getpid()), start, boot.read().strip(), socket.gethostname()]
    rank = next((os.environ[name] for name in ("OMPI_COMM_WORLD_RANK", "RANK") if name in os.environ), "0")
    try:
        os.makedirs(folder, exist_ok=True)
        file = open(os.path.join(folder, "rank" + rank + ".stack"), "w")  # noqa: SIM115 # open as long as the rank
    except OSError:
        return
    file.write(" ".join(process) + "\n")
    file.flush()
    faulthandler.register(WHERE, file=file, all_threads=False)


def share_cores() -> None:
    """Give each rank of the node its part of the cores, unless the user has: OpenMP would take all for each rank."""
    ranks = int(os.environ.get(LOCAL) or 1)
    if not os.environ.get(CORES):
        os.environ[CORES] = str(max(1, len(os.sched_getaffinity(0)) // ranks))


def run(words: "list[str]") -> None:
    """Run the program; if it fails on a full disk, name the file system, which its error does not."""
    share_cores()
    register_stack()
    try:
        _run(words)
    except Exception as error:
        full = dml_room.full_file_systems(error)
        if full:
            sys.stderr.write("dml_steps.py: no space is left in {}\n".format(", ".join(full)))
        elif dml_room.is_about_room(error):
            sys.stderr.write("dml_steps.py: no space was left, and there is room again\n")
        raise


def _run(words: "list[str]") -> None:
    """Run the given script or module as the main program, with imports from its folder."""
    sys.argv = words
    if words[0] in ("-m", "--module"):
        sys.argv = words[1:]
        sys.path[0] = os.getcwd()
        runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
        return
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    runpy.run_path(words[0], run_name="__main__")


if __name__ == "__main__":
    install()
    run(sys.argv[1:])
