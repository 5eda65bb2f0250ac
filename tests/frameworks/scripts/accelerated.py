"""accelerate with accumulation: 16 batches are 8 steps."""

import torch
from accelerate import Accelerator

accelerator = Accelerator(cpu=True, gradient_accumulation_steps=2)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
data = torch.utils.data.DataLoader(torch.rand(32 * accelerator.num_processes, 4), 2)
model, optimizer, data = accelerator.prepare(model, optimizer, data)
for batch in data:
    with accelerator.accumulate(model):
        accelerator.backward(model(batch).sum())
        optimizer.step()
        optimizer.zero_grad()
accelerator.end_training()
