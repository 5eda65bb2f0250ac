"""An optimizer that calls that of each rank, with a scheduler that wraps its step."""

import torch
import torch.distributed
from torch.distributed.optim import ZeroRedundancyOptimizer

torch.distributed.init_process_group("gloo")
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(4, 1))
optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.Adam, lr=0.1)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
for _step in range(8):
    model(torch.rand(3, 4)).sum().backward()
    optimizer.step()
    scheduler.step()
torch.distributed.destroy_process_group()
