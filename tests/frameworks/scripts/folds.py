# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Two trainings one after the other, of which both optimizers remain."""

import torch

kept = []
for _fold in range(2):
    optimizer = torch.optim.SGD(torch.nn.Linear(4, 1).parameters(), 0.1)
    kept.append(optimizer)
    for _step in range(100):
        optimizer.step()
