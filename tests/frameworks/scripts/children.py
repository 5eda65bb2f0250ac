"""Child processes that train and load data: their steps are not those of the rank."""

import multiprocessing

import torch


def train():
    """Make three steps."""
    own = torch.optim.SGD(torch.nn.Linear(4, 1).parameters(), 0.1)
    for _step in range(3):
        own.step()


if __name__ == "__main__":
    for how in ("fork", "spawn"):
        child = multiprocessing.get_context(how).Process(target=train)
        child.start()
        child.join()
        assert child.exitcode == 0
    data = torch.utils.data.DataLoader(torch.rand(16, 4), 2, num_workers=1, multiprocessing_context="spawn")
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for batch in data:
        model(batch).sum().backward()
        optimizer.step()
