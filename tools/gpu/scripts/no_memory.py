"""Asks the GPU for more memory than it has."""

import torch

torch.empty(1 << 50, dtype=torch.uint8, device="cuda")
