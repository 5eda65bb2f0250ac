# Copyright: (c) 2026, dml.vsphere contributors
# GNU General Public License v3.0+ (see LICENSE or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Trains a network on synthetic images, or on a folder of them, by PyTorch and Horovod, recording each step."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dml_options
import dml_records
import horovod.torch as hvd
import torch


def main() -> None:
    """Train."""
    chosen = dml_options.options(__doc__)
    if chosen.xla and not hasattr(torch, "compile"):
        raise dml_options.BenchmarkError(
            f"--xla asks for torch.compile, which PyTorch {torch.__version__} lacks: leave it out, or take 2.0"
        )
    hvd.init()
    device = _prepare(chosen)
    parts, kept = _parts(chosen, device), dml_options.Checkpoints(chosen, ".pt")
    done = _begin(chosen, parts, kept, device)
    records, pace = dml_records.start(first_step=done + 1), dml_options.Pace(chosen, done)
    model, batches = parts["model"], _batches(chosen, device)
    run = torch.compile(model) if chosen.xla else model
    for number in pace.steps(lambda wish: bool(hvd.broadcast(torch.tensor(int(wish)), 0))):
        images, labels = next(batches)
        loss = _step(chosen, run, parts, images, labels)
        pace.end_step()
        records.step(images=chosen.batch_size, loss=loss)
        if pace.is_due(chosen.evaluate_every, number):
            with records.phase("eval"), torch.no_grad():
                model.eval()(images)
                model.train()
        if pace.is_due(chosen.checkpoint_every, number):
            with records.phase("checkpoint"):
                _keep(parts, kept, number)
    parameters = (value.detach().cpu().numpy().tobytes() for value in model.parameters())
    dml_options.keep(pace.summary(hvd.rank(), hvd.size(), parameters), hvd.allgather_object)


def _parts(chosen: Any, device: Any) -> Any:
    """All that training changes."""
    model = _model(chosen).to(device)
    optimizer = hvd.DistributedOptimizer(
        torch.optim.SGD(model.parameters(), 0.01 * hvd.size(), momentum=0.9), named_parameters=model.named_parameters()
    )
    return {
        "model": model,
        "optimizer": optimizer,
        "scaler": torch.cuda.amp.GradScaler(enabled=chosen.fp16 and not chosen.cpu),
    }


def _begin(chosen: Any, parts: Any, kept: Any, device: Any) -> int:
    """Let all ranks begin with what rank 0 has, from a checkpoint or not; the steps that were made by then."""

    def read(file: Any) -> None:
        states = torch.load(file, map_location=device)
        try:
            for name, part in parts.items():
                part.load_state_dict(states[name])
        except (RuntimeError, ValueError) as error:
            raise dml_options.BenchmarkError(f"the checkpoint {file.name} is of another network") from error

    done = kept.restore(read) if chosen.resume and hvd.rank() == 0 else 0
    hvd.broadcast_parameters(parts["model"].state_dict(), root_rank=0)
    hvd.broadcast_optimizer_state(parts["optimizer"], root_rank=0)
    # Ranks that scale differently would add up what cannot be added.
    parts["scaler"].load_state_dict(hvd.broadcast_object(parts["scaler"].state_dict(), 0))
    return int(hvd.broadcast_object(done, 0))


def _keep(parts: Any, kept: Any, number: int) -> None:
    if hvd.rank() == 0:
        states = {name: part.state_dict() for name, part in parts.items()}
        kept.keep(number, lambda file: torch.save(states, file))


def _prepare(chosen: Any) -> Any:
    torch.manual_seed(hvd.rank())
    if chosen.cpu:
        torch.set_num_threads(1)
        return torch.device("cpu")
    torch.cuda.set_device(hvd.local_rank())
    return torch.device("cuda", hvd.local_rank())


def _model(chosen: Any) -> Any:
    if chosen.model == "resnet50":
        from torchvision.models import resnet50  # the small network does without torchvision

        return resnet50(num_classes=chosen.classes)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, 2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, chosen.classes),
    )


def _batches(chosen: Any, device: Any) -> Iterator[Any]:
    if not chosen.data:
        images = torch.rand(chosen.batch_size, 3, chosen.image_size, chosen.image_size, device=device)
        labels = torch.randint(0, chosen.classes, (chosen.batch_size,), device=device)
        while True:
            yield images, labels
    from torchvision import datasets, transforms  # synthetic images do without torchvision

    shape = transforms.Compose([transforms.RandomResizedCrop(chosen.image_size), transforms.ToTensor()])
    folder = datasets.ImageFolder(chosen.data, shape)
    dml_options.check_folder(chosen, len(folder), len(folder.classes), hvd.size())
    share = torch.utils.data.distributed.DistributedSampler(folder, hvd.size(), hvd.rank())
    # Workers that stay: new ones for each pass over a small folder would cost more than its images.
    how = {"num_workers": 4, "persistent_workers": True, "drop_last": True}
    loader = torch.utils.data.DataLoader(folder, chosen.batch_size, sampler=share, **how)
    epoch = 0
    while True:
        share.set_epoch(epoch)
        epoch += 1
        for images, labels in loader:
            yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def _step(chosen: Any, run: Any, parts: Any, images: Any, labels: Any) -> float:
    optimizer, scaler = parts["optimizer"], parts["scaler"]
    optimizer.zero_grad()
    kind = torch.bfloat16 if chosen.cpu else torch.float16
    with torch.autocast("cpu" if chosen.cpu else "cuda", dtype=kind, enabled=chosen.fp16):
        loss = torch.nn.functional.cross_entropy(run(images), labels)
    scaler.scale(loss).backward()
    # The scaler must see the gradients of all ranks, not those of this one.
    optimizer.synchronize()
    with optimizer.skip_synchronize():
        scaler.step(optimizer)
    scaler.update()
    return float(loss.item())


if __name__ == "__main__":
    main()
