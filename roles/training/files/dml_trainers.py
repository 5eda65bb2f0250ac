"""Losses of Hugging Face's Trainer and Lightning, their phases without steps, and the step of their checkpoints."""

# No "from __future__ import annotations" here: the Python of TensorFlow 1 does not support it.

import functools
import re
from typing import Any

# The modules and classes that log for Trainer and Lightning, the method, and which of its arguments has the values.
TRAINER = ("transformers.trainer_callback", ("CallbackHandler",), "on_log", 3)
CONNECTOR = "trainer.connectors.logger_connector.logger_connector"
LIGHTNING = ("_LoggerConnector", "LoggerConnector"), "log_metrics", 0
LOGGERS = (
    TRAINER,
    *((package + "." + CONNECTOR, *LIGHTNING) for package in ("lightning.pytorch", "pytorch_lightning")),
)
# The modules, classes and methods of Trainer and Lightning that make no steps, and their phases.
BESIDE = (
    ("transformers.trainer", ("Trainer",), (("evaluation_loop", "eval"), ("_save_checkpoint", "checkpoint"))),
    *(
        (package + "." + module, names, ((method, phase),))
        for package in ("lightning.pytorch", "pytorch_lightning")
        for module, names, method, phase in (
            ("loops.evaluation_loop", ("_EvaluationLoop", "EvaluationLoop"), "run", "eval"),
            ("trainer.trainer", ("Trainer",), "save_checkpoint", "checkpoint"),
        )
    ),
)
# The modules, classes and methods in which a training begins, after the state of a checkpoint was read.
BEGINS = (
    ("transformers.trainer_callback", ("CallbackHandler",), "on_train_begin"),
    ("lightning.pytorch.loops.fit_loop", ("_FitLoop", "FitLoop"), "run"),
    ("pytorch_lightning.loops.fit_loop", ("_FitLoop", "FitLoop"), "run"),
)
# The names of the loss of a step in what they log.
LOSS = re.compile(r"(?:train(?:ing)?[_/.-])?loss(?:_step)?")
# Trainer logs the mean loss of the whole training with it.
OF_THE_END = "train_runtime"


def watched(steps: Any) -> "dict[str, Any]":
    """Return what to do with each module once it is imported."""
    found = {}  # type: dict[str, list[Any]]
    for watch, places in ((watch_logger, LOGGERS), (watch_beside, BESIDE), (watch_begin, BEGINS)):
        for module, *where in places:
            found.setdefault(module, []).append(watch(steps, *where))
    return {module: _each(functions) for module, functions in found.items()}


def _each(functions: Any) -> Any:
    """Return a function that calls each of several functions with a module."""

    def then(module: Any) -> None:
        for function in functions:
            function(module)

    return then


def loss_in(values: Any) -> Any:
    """Return the loss among values that a framework logs; None without one, and for the mean of a whole training."""
    if not isinstance(values, dict) or OF_THE_END in values:
        return None
    losses = [values[name] for name in values if LOSS.fullmatch(str(name))]
    try:
        return float(losses[0]) if losses else None
    except (TypeError, ValueError, RuntimeError):
        return None


def watch_logger(steps: Any, names: Any, method: str, place: int) -> Any:
    """Return what to do with a class that logs once it is imported."""

    def then(module: Any) -> None:
        found = next((getattr(module, name) for name in names if hasattr(module, name)), None)
        log = getattr(found, method, None)
        if log is None:
            return

        def with_loss(self: Any, *given: Any, **named: Any) -> Any:
            steps.log(given[place] if len(given) > place else named.get("logs", named.get("metrics")))
            return log(self, *given, **named)

        setattr(found, method, with_loss)

    return then


def watch_begin(steps: Any, names: Any, method: str) -> Any:
    """Return what to do with a class that begins a training once it is imported: its checkpoint has a step."""

    def then(module: Any) -> None:
        found = next((getattr(module, name) for name in names if hasattr(module, name)), None)
        begin = getattr(found, method, None)
        if begin is None:
            return

        def with_number(self: Any, *given: Any, **named: Any) -> Any:
            state = given[1] if len(given) > 1 else named.get("state", getattr(self, "trainer", None))
            steps.continue_after(getattr(state, "global_step", None))
            return begin(self, *given, **named)

        setattr(found, method, with_number)

    return then


def watch_beside(steps: Any, names: Any, methods: Any) -> Any:
    """Return what to do with a class that evaluates or saves once it is imported."""

    def then(module: Any) -> None:
        found = next((getattr(module, name) for name in names if hasattr(module, name)), None)
        for method, phase in methods:
            if hasattr(found, method):
                setattr(found, method, _marked(steps, getattr(found, method), phase))

    return then


def _marked(steps: Any, method: Any, phase: str) -> Any:
    """Return a method during which this rank is in a phase without steps."""

    @functools.wraps(method)
    def marked(*given: Any, **named: Any) -> Any:
        is_outermost = steps.begin(phase)
        try:
            return method(*given, **named)
        finally:
            if is_outermost:
                steps.mark(steps.by, "end", phase)

    return marked
