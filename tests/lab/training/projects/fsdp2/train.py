"""FSDP2 with sharded checkpoints every 20 steps, in a folder that all nodes share."""

import argparse
import os
import time

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

options = argparse.ArgumentParser()
options.add_argument("--steps", type=int)
options.add_argument("--lr", type=float, default=0.01)
options.add_argument("--pace", type=float, default=0.0, help="seconds of each step")
options.add_argument("--from", dest="path", default="")
options = options.parse_args()
torch.distributed.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1))
mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
for layer in (model[0], model[2], model):
    fully_shard(layer, mesh=mesh)
optimizer, first = torch.optim.AdamW(model.parameters(), options.lr), 0
if options.path:
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, "step": 0}
    dcp.load(state, checkpoint_id=options.path)
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    first = state["step"]
os.makedirs("outputs", exist_ok=True)
for step in range(first + 1, options.steps + 1):
    time.sleep(options.pace)
    optimizer.zero_grad()
    given = torch.randn(16, 8)
    loss = torch.nn.functional.mse_loss(model(given), given.sum(1, keepdim=True))
    loss.backward()
    optimizer.step()
    if torch.distributed.get_rank() == 0:
        print(f"step {step} of {torch.distributed.get_world_size()} ranks", flush=True)
        with open("outputs/metrics.csv", "a") as file:
            file.write(f"{loss.item()}\n" if step > 1 else f"loss\n{loss.item()}\n")
    if step % 20 == 0:
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": moments, "step": step}, checkpoint_id=f"outputs/step-{step}")
torch.distributed.destroy_process_group()
