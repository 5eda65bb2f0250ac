"""A compiled step: compiling must succeed as without the hook."""

import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), 0.1)
step = torch.compile(optimizer.step, backend="eager")
for _step in range(3):
    model(torch.rand(3, 4)).sum().backward()
    step()
