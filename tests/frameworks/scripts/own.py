"""A script that records its own steps, after three that it does not record."""

import dml_records
import torch

optimizer = torch.optim.SGD(torch.nn.Linear(4, 1).parameters(), 0.1)
for _step in range(3):
    optimizer.step()
records = dml_records.start()
for _step in range(5):
    optimizer.step()
    records.step(images=2, loss=1.0)
