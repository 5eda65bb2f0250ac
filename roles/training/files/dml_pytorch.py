"""Common parts of the PyTorch benchmarks; each benchmark provides an object for communication between ranks.

That object has ``rank``, ``size`` and ``local_rank``. ``optimizer`` and ``joined`` return optimizer and model for all
ranks, ``share`` broadcasts the state of rank 0, ``same`` broadcasts a value of rank 0, ``gather`` returns the values of
all ranks, and ``update`` makes a step.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import dml_options
import dml_records
import torch


def options(description: str) -> Any:
    """Read the command line."""
    chosen = dml_options.options(description)
    if chosen.xla and not hasattr(torch, "compile"):
        raise dml_options.BenchmarkError(
            f"--xla needs torch.compile, which PyTorch {torch.__version__} lacks: omit --xla or use PyTorch 2.0"
        )
    return chosen


def train(chosen: Any, ranks: Any) -> None:
    """Train."""
    device = _prepare(chosen, ranks)
    parts, kept = _parts(chosen, device, ranks), dml_options.Checkpoints(chosen, ".pt")
    done = _begin(chosen, parts, kept, device, ranks)
    records, pace = dml_records.start(first_step=done + 1), dml_options.Pace(chosen, done)
    model, batches = parts["model"], _batches(chosen, device, ranks)
    joined = ranks.joined(model)
    run = torch.compile(joined) if chosen.xla else joined
    for number in pace.steps(ranks.same):
        images, labels = next(batches)
        loss = _step(chosen, run, parts, (images, labels), ranks)
        pace.end_step()
        records.step(images=chosen.batch_size, loss=loss)
        if pace.is_due(chosen.evaluate_every, number):
            with records.phase("eval"), torch.no_grad():
                model.eval()(images)
                model.train()
        if pace.is_due(chosen.checkpoint_every, number):
            with records.phase("checkpoint"):
                _keep(parts, kept, number, ranks)
    parameters = (value.detach().cpu().numpy().tobytes() for value in model.parameters())
    dml_options.keep(pace.summary(ranks.rank, ranks.size, parameters), ranks.gather)


def _parts(chosen: Any, device: Any, ranks: Any) -> Any:
    """Return the parts that training changes."""
    model = _model(chosen).to(device)
    plain = torch.optim.SGD(model.parameters(), 0.01 * ranks.size, momentum=0.9)
    return {
        "model": model,
        "optimizer": ranks.optimizer(plain, model),
        "scaler": _scaler(chosen.fp16 and not chosen.cpu),
    }


def _scaler(is_enabled: bool) -> Any:
    """Return the gradient scaler for half precision; PyTorch 2.3 moved it and warns at the old place."""
    if hasattr(torch.amp, "GradScaler"):
        return torch.amp.GradScaler("cuda", enabled=is_enabled)
    return torch.cuda.amp.GradScaler(enabled=is_enabled)


def _begin(chosen: Any, parts: Any, kept: Any, device: Any, ranks: Any) -> int:
    """Broadcast the state of rank 0, optionally from a checkpoint, and return the number of completed steps."""

    def read(file: Any) -> None:
        states = torch.load(file, map_location=device)
        try:
            for name, part in parts.items():
                part.load_state_dict(states[name])
        except (RuntimeError, ValueError) as error:
            raise dml_options.BenchmarkError(f"the checkpoint {file.name} belongs to another network") from error

    done = kept.restore(read) if chosen.resume and ranks.rank == 0 else 0
    ranks.share(parts["model"], parts["optimizer"])
    # Gradients with different scales cannot be added.
    parts["scaler"].load_state_dict(ranks.same(parts["scaler"].state_dict()))
    return int(ranks.same(done))


def _keep(parts: Any, kept: Any, number: int, ranks: Any) -> None:
    if ranks.rank == 0:
        states = {name: part.state_dict() for name, part in parts.items()}
        kept.keep(number, lambda file: torch.save(states, file))


def _prepare(chosen: Any, ranks: Any) -> Any:
    torch.manual_seed(ranks.rank)
    if chosen.cpu:
        torch.set_num_threads(1)
        return torch.device("cpu")
    torch.cuda.set_device(ranks.local_rank)
    return torch.device("cuda", ranks.local_rank)


def _model(chosen: Any) -> Any:
    if chosen.model == "resnet50":
        from torchvision.models import resnet50  # the small network does not need torchvision

        return resnet50(num_classes=chosen.classes)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, 2),
        torch.nn.ReLU(),
        torch.nn.AdaptiveAvgPool2d(1),
        torch.nn.Flatten(),
        torch.nn.Linear(8, chosen.classes),
    )


def _batches(chosen: Any, device: Any, ranks: Any) -> Iterator[Any]:
    if not chosen.data:
        images = torch.rand(chosen.batch_size, 3, chosen.image_size, chosen.image_size, device=device)
        labels = torch.randint(0, chosen.classes, (chosen.batch_size,), device=device)
        while True:
            yield images, labels
    from torchvision import datasets, transforms  # synthetic images do not need torchvision

    shape = transforms.Compose([transforms.RandomResizedCrop(chosen.image_size), transforms.ToTensor()])
    folder = datasets.ImageFolder(chosen.data, shape)
    dml_options.check_folder(chosen, len(folder), len(folder.classes), ranks.size)
    share = torch.utils.data.distributed.DistributedSampler(folder, ranks.size, ranks.rank)
    # Persistent workers: starting new ones for each pass over a small folder would take longer than loading its images.
    how = {"num_workers": 4, "persistent_workers": True, "drop_last": True}
    loader = torch.utils.data.DataLoader(folder, chosen.batch_size, sampler=share, **how)
    epoch = 0
    while True:
        share.set_epoch(epoch)
        epoch += 1
        for images, labels in loader:
            yield images.to(device, non_blocking=True), labels.to(device, non_blocking=True)


def _step(chosen: Any, run: Any, parts: Any, batch: Any, ranks: Any) -> float:
    optimizer, scaler, (images, labels) = parts["optimizer"], parts["scaler"], batch
    optimizer.zero_grad()
    kind = torch.bfloat16 if chosen.cpu else torch.float16
    with torch.autocast("cpu" if chosen.cpu else "cuda", dtype=kind, enabled=chosen.fp16):
        loss = torch.nn.functional.cross_entropy(run(images), labels)
    scaler.scale(loss).backward()
    ranks.update(optimizer, scaler)
    scaler.update()
    return float(loss.item())
