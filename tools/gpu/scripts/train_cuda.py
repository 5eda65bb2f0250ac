"""A training script as a user has it, on a GPU if there is one; argv: backend, steps, seconds of each."""

import os
import sys
import time

import torch
import torch.distributed as dist

backend, steps, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
dist.init_process_group(backend)
device = (
    torch.device("cuda", int(os.environ["LOCAL_RANK"]) % torch.cuda.device_count())
    if torch.cuda.is_available()
    else "cpu"
)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8).to(device))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for _step in range(steps):
    optimizer.zero_grad()
    model(torch.ones(16, 64, device=device)).sum().backward()
    optimizer.step()
    time.sleep(seconds)
print(f"trained {steps} steps on {device} over {backend}", flush=True)
dist.destroy_process_group()
