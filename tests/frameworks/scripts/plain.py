"""Gradients of two batches in each step of one optimizer."""

import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
for _step in range(8):
    for _part in range(2):
        (model(torch.rand(3, 4)).sum() / 2).backward()
    optimizer.step()
    optimizer.zero_grad()
