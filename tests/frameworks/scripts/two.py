"""Two networks against each other: five steps of the second for each of the first."""

import torch

first = torch.optim.SGD(torch.nn.Linear(4, 1).parameters(), 0.1)
second = torch.optim.Adam(torch.nn.Linear(4, 1).parameters(), 0.1)
for _step in range(8):
    first.step()
    for _more in range(5):
        second.step()
