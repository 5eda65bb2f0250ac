"""Lightning's command line."""

from lightning.pytorch.cli import LightningCLI

from litwave import Network, Wave

LightningCLI(Network, Wave)
