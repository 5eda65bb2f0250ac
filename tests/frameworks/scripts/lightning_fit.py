"""Lightning with validation; the ranks print how Lightning numbers them."""

import sys
from pathlib import Path

import lightning
import torch


class Network(lightning.LightningModule):
    """One layer."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _number):
        """Return the loss."""
        loss = self.layer(batch).sum()
        self.log("train_loss", loss)
        return loss

    def validation_step(self, batch, _number):
        """Return the loss."""
        return self.layer(batch).sum()

    def configure_optimizers(self):
        """Return the optimizer and a scheduler."""
        optimizer = torch.optim.SGD(self.parameters(), 0.1)
        return [optimizer], [torch.optim.lr_scheduler.StepLR(optimizer, 2)]


nodes, devices = (int(word) for word in sys.argv[2:4])
trainer = lightning.Trainer(
    max_steps=int(sys.argv[4]) if len(sys.argv) > 4 else 8,
    accelerator="cpu",
    devices=devices,
    num_nodes=nodes,
    strategy="ddp" if nodes * devices > 1 else "auto",
    logger=False,
    log_every_n_steps=2,
    enable_checkpointing=False,
    default_root_dir=sys.argv[1],
    val_check_interval=4,
)
data = torch.utils.data.DataLoader(torch.rand(64 * nodes * devices, 4), 2)
saved = Path(sys.argv[1], "last.ckpt")
trainer.fit(Network(), data, data, ckpt_path=str(saved) if saved.exists() else None)
if len(sys.argv) > 4:
    trainer.save_checkpoint(saved)
print("lightning", trainer.global_rank, trainer.node_rank, trainer.local_rank, trainer.world_size)
