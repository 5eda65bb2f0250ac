# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Asks the GPU for more memory than it has."""

import torch

torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
