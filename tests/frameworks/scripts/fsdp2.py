"""FSDP2 with sharded checkpoints, in the folder outputs; it goes on after the given checkpoint."""

import sys

import torch
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard

torch.distributed.init_process_group("gloo")
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.ReLU(), torch.nn.Linear(12, 1))
mesh = init_device_mesh("cpu", (torch.distributed.get_world_size(),))
for layer in (model[0], model[2], model):
    fully_shard(layer, mesh=mesh)
optimizer, first = torch.optim.AdamW(model.parameters(), 0.01), 0
if len(sys.argv) > 2:
    weights, moments = get_state_dict(model, optimizer)
    state = {"model": weights, "optimizer": moments, "step": 0}
    dcp.load(state, checkpoint_id=sys.argv[2])
    set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    first = state["step"]
for step in range(first + 1, int(sys.argv[1]) + 1):
    optimizer.zero_grad()
    given = torch.randn(16, 8)
    torch.nn.functional.mse_loss(model(given), given.sum(1, keepdim=True)).backward()
    optimizer.step()
    if step % 10 == 0:
        weights, moments = get_state_dict(model, optimizer)
        dcp.save({"model": weights, "optimizer": moments, "step": step}, checkpoint_id=f"outputs/step-{step}")
print(f"ended at step {step} of {torch.distributed.get_world_size()} ranks")
torch.distributed.destroy_process_group()
