"""A wave that a small network learns."""

import time

import lightning
import torch


class Wave(lightning.LightningDataModule):
    """Points of a wave."""

    def __init__(self, batch_size: int = 16):
        super().__init__()
        self.batch_size = batch_size

    def train_dataloader(self):
        """Return the batches."""
        x = torch.linspace(0, 6, 40000)[:, None]
        return torch.utils.data.DataLoader(
            torch.utils.data.TensorDataset(x, torch.sin(x)), self.batch_size, shuffle=True
        )


class Network(lightning.LightningModule):
    """Two layers, whose steps take as long as those of a larger network."""

    def __init__(self, lr: float = 0.01, pace: float = 0.0):
        super().__init__()
        self.lr, self.pace = lr, pace
        self.layers = torch.nn.Sequential(torch.nn.Linear(1, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))

    def training_step(self, batch, _number):
        """Return the loss."""
        time.sleep(self.pace)
        loss = torch.nn.functional.mse_loss(self.layers(batch[0]), batch[1])
        self.log("train_loss", loss)
        return loss

    def on_train_batch_end(self, *_given):
        """Print the step."""
        if self.global_rank == 0:
            print(f"step {self.global_step} of {self.trainer.world_size} ranks", flush=True)

    def configure_optimizers(self):
        """Return the optimizer."""
        return torch.optim.Adam(self.parameters(), self.lr)
