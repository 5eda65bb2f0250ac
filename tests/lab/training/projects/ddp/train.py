"""Plain DistributedDataParallel, with a checkpoint every 20 steps."""

import argparse
import os
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

options = argparse.ArgumentParser()
options.add_argument("--steps", type=int)
options.add_argument("--lr", type=float, default=0.1)
options.add_argument("--pace", type=float, default=0.0, help="seconds of each step")
options.add_argument("--from", dest="path", default="")
options.add_argument("--hang", type=int, default=0, help="the step in which rank 1 does not take part")
options.add_argument("--spoil", type=int, default=0, help="the step in which rank 1 has a batch that is not finite")
options = options.parse_args()
dist.init_process_group("gloo")
torch.manual_seed(0)
model, first = DistributedDataParallel(torch.nn.Linear(4, 1)), 0
optimizer = torch.optim.SGD(model.parameters(), options.lr)
if options.path:
    state = torch.load(options.path)
    first = state["step"]
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optim"])
os.makedirs("outputs", exist_ok=True)
for step in range(first + 1, options.steps + 1):
    if options.hang == step and dist.get_rank() == 1:
        time.sleep(3600)
    time.sleep(options.pace)
    given = torch.randn(16, 4) * (float("nan") if options.spoil == step and dist.get_rank() == 1 else 1)
    optimizer.zero_grad()
    loss = torch.nn.functional.mse_loss(model(given), given.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    if dist.get_rank() == 0:
        print(f"step {step} of {dist.get_world_size()} ranks", flush=True)
        with open("outputs/metrics.csv", "a") as file:
            file.write(f"{loss.item()}\n" if step > 1 else f"loss\n{loss.item()}\n")
        if step % 20 == 0:
            state = {"step": step, "model": model.state_dict(), "optim": optimizer.state_dict()}
            torch.save(state, "outputs/new")
            os.replace("outputs/new", f"outputs/step-{step}.pt")
dist.destroy_process_group()
