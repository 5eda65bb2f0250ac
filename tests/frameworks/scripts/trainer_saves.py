"""Hugging Face's Trainer with regular checkpoints and one at SIGTERM; it goes on after the given checkpoint."""

import sys
import time

import torch
from transformers import Trainer, TrainerCallback, TrainingArguments


class Network(torch.nn.Module):
    """One layer with its loss."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x=None, labels=None):
        """Return loss and output."""
        output = self.layer(x)
        return {"loss": torch.nn.functional.mse_loss(output, labels), "logits": output}


class Saves(TrainerCallback):
    """Checkpoints after steps that take as long as those of a larger network."""

    def on_step_end(self, _arguments, state, control, **_named):
        """Wait, and save."""
        time.sleep(0.2)
        control.should_save = control.should_save or state.global_step % 10 == 0


resume = sys.argv[1] if len(sys.argv) > 1 else ""
torch.manual_seed(1)
rows = [{"x": torch.rand(4), "labels": torch.rand(1)} for _row in range(4000)]
arguments = TrainingArguments(
    output_dir="outputs",
    max_steps=5000,
    per_device_train_batch_size=2,
    use_cpu=True,
    report_to=[],
    logging_steps=1,
    save_strategy="no",
    enable_jit_checkpoint=True,
)
trainer = Trainer(model=Network(), args=arguments, train_dataset=rows, callbacks=[Saves()])
trainer.train(resume_from_checkpoint=resume or None)
