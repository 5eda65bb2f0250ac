"""Small stand-ins of PyTorch, Keras, Hugging Face's Trainer and Lightning; tests/frameworks runs the real ones."""

from __future__ import annotations

from pathlib import Path

# The part of PyTorch's optimizers that calls the hooks.
OPTIMIZER = """
PRE, POST = [], []
register_optimizer_step_pre_hook, register_optimizer_step_post_hook = PRE.append, POST.append
class Optimizer:
    inner = None
    def step(self):
        for hook in PRE: hook(self, (), {})
        if self.inner: self.inner.step()
        for hook in POST: hook(self, (), {})
class SGD(Optimizer): pass
class Adam(Optimizer): pass
class Wrapped(SGD):
    def step(self):
        for hook in PRE: hook(self, (), {})
        super().step()
        for hook in POST: hook(self, (), {})
"""
LIGHTNING_PACKAGES = [
    "lightning",
    "lightning/pytorch",
    "lightning/pytorch/trainer",
    "lightning/pytorch/trainer/connectors",
    "lightning/pytorch/trainer/connectors/logger_connector",
]
TORCH = "import torch.optim.optimizer\nclass compiler:\n    is_compiling = staticmethod(lambda: False)\n"
KERAS = """
class Callback:
    def on_test_begin(self, logs=None): pass
    def on_test_end(self, logs=None): pass
class CallbackList:
    def __init__(self, callbacks=None, **more): self.callbacks = list(callbacks or [])
    def call(self, name, *words):
        for each in self.callbacks: getattr(each, name)(*words)
"""
# The parts of Hugging Face's Trainer and of Lightning that log.
TRAINER = """
class CallbackHandler:
    def on_log(self, args, state, control, logs): return control, logs
    def on_train_begin(self, args, state, control): return control
"""
LIGHTNING = """
class _LoggerConnector:
    def log_metrics(self, metrics, step=None): return metrics
"""
# The parts that evaluate and save; Lightning may evaluate to save.
BESIDE = {
    "transformers/trainer.py": """
class Trainer:
    def evaluation_loop(self, loader, description=""): return loader, description
    def _save_checkpoint(self, model, trial): raise OSError("full")
""",
    "lightning/pytorch/loops/__init__.py": "",
    "lightning/pytorch/loops/fit_loop.py": "class _FitLoop:\n    def run(self): return 'ran'\n",
    "lightning/pytorch/loops/evaluation_loop.py": "class _EvaluationLoop:\n    def run(self): return []\n",
    "lightning/pytorch/trainer/trainer.py": """
from lightning.pytorch.loops.evaluation_loop import _EvaluationLoop
class Trainer:
    def save_checkpoint(self, path, weights_only=None): _EvaluationLoop().run(); return path
""",
}


def write(folder: Path) -> None:
    """Write the modules to a folder."""
    for path, text in (
        ("torch/__init__.py", TORCH),
        ("torch/optim/__init__.py", ""),
        ("torch/optim/optimizer.py", OPTIMIZER),
        ("keras/__init__.py", ""),
        ("keras/src/__init__.py", ""),
        ("keras/src/callbacks/__init__.py", "from .callback_list import Callback, CallbackList\n"),
        ("keras/src/callbacks/callback_list.py", KERAS),
        ("transformers/__init__.py", ""),
        ("transformers/trainer_callback.py", TRAINER),
        *((f"{package}/__init__.py", "") for package in LIGHTNING_PACKAGES),
        (f"{LIGHTNING_PACKAGES[-1]}/logger_connector.py", LIGHTNING),
        *BESIDE.items(),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
