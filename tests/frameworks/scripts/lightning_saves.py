"""Lightning with regular checkpoints and one at SIGTERM; it goes on after the given checkpoint."""

import sys
import time

import lightning
import torch
from lightning.pytorch.callbacks import Callback, ModelCheckpoint


class Network(lightning.LightningModule):
    """One layer."""

    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(4, 1)

    def training_step(self, batch, _number):
        """Return the loss."""
        loss = ((self.layer(batch) - 1) ** 2).mean()
        self.log("train_loss", loss)
        return loss

    def configure_optimizers(self):
        """Return the optimizer."""
        return torch.optim.Adam(self.parameters(), 0.01)


class Saves(Callback):
    """Checkpoints after steps that take as long as those of a larger network."""

    def on_train_batch_end(self, trainer, *_given, **_named):
        """Wait, and save."""
        time.sleep(0.2)
        if trainer.global_step % 10 == 0:
            trainer.save_checkpoint(f"outputs/step={trainer.global_step}.ckpt")


resume = sys.argv[1] if len(sys.argv) > 1 else ""
lightning.seed_everything(1)
trainer = lightning.Trainer(
    max_steps=5000,
    accelerator="cpu",
    devices=1,
    num_nodes=2,
    strategy="ddp",
    logger=False,
    log_every_n_steps=1,
    enable_progress_bar=False,
    callbacks=[ModelCheckpoint("outputs", every_n_train_steps=5000, save_on_exception=True), Saves()],
)
data = torch.utils.data.DataLoader(torch.rand(8000, 4), 2)
trainer.fit(Network(), data, ckpt_path=resume or None)
