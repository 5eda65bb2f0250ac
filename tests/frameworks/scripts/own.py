# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
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
