# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Record the steps of an unchanged training script: those of its optimizer in PyTorch, or of Keras' fit::

    python -u dml_steps.py script.py ...
    python -u dml_steps.py -m module ...

It imports no framework. When the script imports one, each step of the first optimizer becomes a record without a loss
(PyTorch 2.0 and later), and each batch of ``fit`` becomes one with its loss. Records of the script by dml_records take
precedence. Only the process of the rank records steps, no child process.
"""

# No "from __future__ import annotations" here: the Python of TensorFlow 1 does not support it.

import os
import runpy
import sys
import weakref
from typing import Any

import dml_records

BY, FOLDER = "DML_STEPS_BY", "DML_RECORDS"
TORCH = "torch.optim.optimizer"
# The modules that define CallbackList in Keras 3, Keras 2, and TensorFlow up to 2.5.
KERAS = (
    *("keras.src.callbacks.callback_list", "keras.src.callbacks", "keras.callbacks"),
    *("tf_keras.src.callbacks", "tensorflow.python.keras.callbacks"),
)
# An optimizer that ended is replaced by one that made many more steps than usual without a step of the former.
MORE = 10


class Steps:
    """The records of this process, which begin with its first step."""

    def __init__(self) -> None:
        self._pid, self._records = os.getpid(), None  # type: Any
        self._has_failed = False
        self.by, self.others = "", 0

    def take(self, by: str, others: int = 0, loss: Any = None) -> None:
        """Record a step, unless the script records its steps or another framework came first."""
        if self._is_mine(by):
            self.others = others
            self._write(lambda: self._records.step(loss=loss))

    def mark(self, by: str, name: str) -> None:
        """Begin or end an evaluation after the first step."""
        if self._records is not None and self._is_mine(by):
            self._write(lambda: getattr(self._records, name)("eval"))

    def _is_mine(self, by: str) -> bool:
        if self._has_failed or os.getpid() != self._pid or dml_records.is_used:
            return False
        if self.by and self.by.partition(" ")[0] != by.partition(" ")[0]:
            return False
        self.by = by
        return True

    def _write(self, write: Any) -> None:
        """Write a record; the script must not die because of records that it did not ask for."""
        try:
            if self._records is None:
                self._records = dml_records.automatic()
            self._records.source = {"by": self.by, "others": self.others}
            write()
        except (OSError, ValueError, TypeError) as error:
            self._has_failed = True
            sys.stderr.write(f"dml_steps.py records no more steps: {error}\n")


class Optimizers:
    """The steps of the optimizers in PyTorch; those of one of them count."""

    def __init__(self, steps: Steps, is_compiling: Any) -> None:
        self._steps, self._is_compiling = steps, is_compiling
        self._open = self._counted = None  # type: Any
        self._known, self._number = weakref.WeakSet(), 0  # type: Any
        # The steps of others since the last one that counted, and the most that there ever were.
        self._since, self._most = {}, 1  # type: Any

    def before(self, optimizer: Any, *_arguments: Any) -> None:
        """Note the outermost step: an optimizer may call that of another, or its own class twice."""
        if not self._is_compiling() and (self._open is None or self._open() is None):
            self._open = weakref.ref(optimizer)

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
        optimizers = Optimizers(steps, _is_compiling)
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
    sys.meta_path.insert(0, Imports({TORCH: watch_torch(steps), **dict.fromkeys(KERAS, watch_keras(steps))}))


def run(words: "list[str]") -> None:
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
