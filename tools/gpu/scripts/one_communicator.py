"""Makes a communicator of NCCL with one rank, and reduces once: this already makes the memory pool."""

import sys
import time

import torch
import torch.distributed as dist

torch.cuda.set_device(0)
dist.init_process_group("nccl", rank=0, world_size=1)
value = torch.ones(1, device="cuda")
dist.all_reduce(value)
torch.cuda.synchronize()
print(f"reduced {value.item():g} with NCCL {'.'.join(map(str, torch.cuda.nccl.version()))}", flush=True)
time.sleep(float(sys.argv[1]) if sys.argv[1:] else 0)
dist.destroy_process_group()
