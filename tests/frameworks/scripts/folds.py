"""Two trainings one after the other, of which both optimizers remain."""

import torch

kept = []
for _fold in range(2):
    optimizer = torch.optim.SGD(torch.nn.Linear(4, 1).parameters(), 0.1)
    kept.append(optimizer)
    for _step in range(100):
        optimizer.step()
