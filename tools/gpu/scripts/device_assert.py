# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Reads beyond the end of a table on the GPU, which ends the kernel with a device-side assert."""

import torch

table = torch.ones(4, 4, device="cuda")
print(table[torch.tensor([9], device="cuda")].sum().item())
