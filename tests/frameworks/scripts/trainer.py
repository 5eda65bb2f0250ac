"""Hugging Face's Trainer with accumulation and evaluation, and a small network; it goes on after its checkpoint."""

import sys
from pathlib import Path

import torch
from transformers import Trainer, TrainingArguments


class Network(torch.nn.Module):
    """One layer with its loss."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def forward(self, x=None, labels=None):
        """Return loss and output."""
        output = self.layer(x)
        return {"loss": torch.nn.functional.mse_loss(output, labels), "logits": output}


rows = [{"x": torch.rand(4), "labels": torch.rand(1)} for _row in range(64)]
arguments = TrainingArguments(
    output_dir=sys.argv[1],
    max_steps=int(sys.argv[2]) if len(sys.argv) > 2 else 8,
    per_device_train_batch_size=2,
    gradient_accumulation_steps=2,
    use_cpu=True,
    eval_strategy="steps",
    eval_steps=4,
    report_to=[],
    logging_steps=1,
)
trainer = Trainer(model=Network(), args=arguments, train_dataset=rows, eval_dataset=rows)
trainer.train(resume_from_checkpoint=any(Path(sys.argv[1]).glob("checkpoint-*")))
