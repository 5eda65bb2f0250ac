"""A loss scaler skips two of ten steps."""

import torch

model = torch.nn.Linear(4, 1)
optimizer = torch.optim.Adam(model.parameters(), 0.1)
scaler = torch.amp.GradScaler("cpu", init_scale=256.0)
for number in range(10):
    optimizer.zero_grad()
    loss = model(torch.rand(3, 4)).sum() * (float("inf") if number in (3, 4) else 1.0)
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
