"""Hugging Face's Trainer, with a checkpoint every 20 steps."""

import argparse
import time

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

options = argparse.ArgumentParser()
options.add_argument("--steps", type=int)
options.add_argument("--lr", type=float, default=0.001)
options.add_argument("--pace", type=float, default=0.0, help="seconds of each step")
options.add_argument("--resume", default="")
options = options.parse_args()


class Shown(TrainerCallback):
    """Prints each step, after its time."""

    def on_step_end(self, arguments, state, _control, **_named):
        """Wait, and print."""
        time.sleep(options.pace)
        if state.is_world_process_zero:
            print(f"step {state.global_step} of {arguments.world_size} ranks", flush=True)


torch.manual_seed(0)
with open("corpus.txt", "rb") as file:
    text = file.read() * 50
blocks = [torch.tensor(list(text[start : start + 32])) for start in range(0, len(text) - 32, 16)]
model = GPT2LMHeadModel(GPT2Config(vocab_size=256, n_positions=32, n_embd=32, n_layer=1, n_head=1))
saving = {"logging_steps": 5, "save_steps": 20, "report_to": [], "disable_tqdm": True, "learning_rate": options.lr}
arguments = TrainingArguments("outputs", max_steps=options.steps, per_device_train_batch_size=4, use_cpu=True, **saving)
rows = [{"input_ids": block, "labels": block} for block in blocks]
trainer = Trainer(model=model, args=arguments, train_dataset=rows, callbacks=[Shown()])
trainer.train(resume_from_checkpoint=options.resume or None)
