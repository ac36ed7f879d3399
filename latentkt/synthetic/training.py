"""Train a network on a stream of documents: deterministic by seed and thread count, checkpointed, resumable."""

from __future__ import annotations

import math
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.nn import functional

from latentkt.errors import InputError, RunError
from latentkt.synthetic.network import Network, NetworkConfig

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
    from torch import Tensor

    from latentkt.progress import Bar

__all__ = ["Batch", "Stream", "Trained", "TrainingConfig", "train"]


@dataclass(frozen=True, slots=True)
class Batch:
    """Some documents of one step.

    Attributes:
        ids: Right-padded documents.
        target: Tokens that are predicted (the loss is their mean).
        answer: The targets that are answers; their loss is reported beside the floor.
        floor: -log of the exact probability of each answer, in the order in which `answer` is true.
        other: For soft labels: id of the option that is not the answer, in the same order.
    """

    ids: Int[Tensor, "document place"]
    target: Bool[Tensor, "document place"]
    answer: Bool[Tensor, "document place"]
    floor: Float[Tensor, " answer"]
    other: Int[Tensor, " answer"]


class Stream(Protocol):
    """Where batches come from; the batches of an epoch depend on nothing but its number."""

    @property
    def vocabulary_size(self) -> int:
        """Number of ids."""
        ...

    @property
    def steps(self) -> int:
        """Batches of one epoch."""
        ...

    def batches(self, epoch: int) -> Iterator[Batch]:
        """The batches of an epoch."""
        ...


@dataclass(frozen=True, slots=True)
class TrainingConfig:
    """How to train.

    Attributes:
        network: Its size.
        epochs: Passes over the stream, each redrawn.
        batch: Choice documents a step (statements and questions are spread over the same steps).
        learning_rate: The highest; reached after `warm_up` steps, then a cosine down to `last_rate` of it.
        soft_labels: Whether answers are learned from the exact probabilities instead of drawn labels.
        threads: CPU threads. Parameters are bitwise equal between runs with the same number.
        device: "cpu", "cuda", "mps".
    """

    network: NetworkConfig = field(default_factory=NetworkConfig)
    epochs: int = 14
    batch: int = 64
    learning_rate: float = 4e-3
    warm_up: int = 100
    last_rate: float = 0.02
    weight_decay: float = 0.1
    betas: tuple[float, float] = (0.9, 0.98)
    clip: float = 1.0
    soft_labels: bool = False
    threads: int = 1
    device: str = "cpu"

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch < 1 or self.threads < 1 or self.learning_rate <= 0:
            raise InputError(
                "this training cannot be", expected="epochs, batch, threads of at least 1, a rate over 0", found=self
            )


@dataclass(frozen=True, slots=True)
class Trained:
    """A trained network and its history.

    Attributes:
        network: In evaluation mode.
        history: One row an epoch: epoch, loss, answer_nll, bayes_nll (on the documents trained on), tokens, seconds
            and cpu_seconds.
    """

    network: Network
    history: list[dict[str, float]]

    @property
    def wall_s(self) -> float:
        """Seconds of training, over all sittings."""
        return sum(row["seconds"] for row in self.history)

    @property
    def cpu_s(self) -> float:
        """CPU seconds of training, over all sittings."""
        return sum(row["cpu_seconds"] for row in self.history)

    @property
    def tokens_per_second(self) -> float:
        """Tokens that are no padding, over the time of training."""
        return sum(row["tokens"] for row in self.history) / self.wall_s


def train(stream: Stream, config: TrainingConfig, *, seed: int, folder: Path, bar: Bar | None = None) -> Trained:
    """Train, or go on where the checkpoint in `folder` stopped.

    Args:
        stream: The documents.
        config: How to train.
        seed: Of the initial parameters.
        folder: Holds `checkpoint.pt`, written after each epoch by a temporary name.
        bar: Shows loss and Bayes floor.

    Raises:
        RunError: If the loss is not finite (the checkpoint of the last good epoch is kept), the checkpoint belongs
            to another training, or the device does not exist.
    """
    check_device(config.device)
    before = torch.get_num_threads()
    torch.set_num_threads(config.threads)
    try:
        return _Training(stream, config, seed, folder).run(bar)
    finally:
        torch.set_num_threads(before)


class _Training:
    """The state of one training: network, optimiser, schedule, history."""

    def __init__(self, stream: Stream, config: TrainingConfig, seed: int, folder: Path) -> None:
        self.stream, self.config, self.seed = stream, config, seed
        self.path = folder / "checkpoint.pt"
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.network = Network(config.network, stream.vocabulary_size).to(config.device)
        self.parameters = list(self.network.parameters())
        self.optimiser = torch.optim.AdamW(
            self.parameters,
            lr=config.learning_rate,
            betas=config.betas,
            weight_decay=config.weight_decay,
            fused=True,
        )
        self.history: list[dict[str, float]] = []

    def run(self, bar: Bar | None) -> Trained:
        self._resume()
        stage = None if bar is None else bar.stage(f"training, seed {self.seed}", total=self.config.epochs)
        if stage is not None:
            stage.advance(len(self.history))
        for epoch in range(len(self.history), self.config.epochs):
            self.history.append(self._epoch(epoch))
            self._save()
            if stage is not None:
                row = self.history[-1]
                stage.advance(1, note=f"answer {row['answer_nll']:.3f}, Bayes {row['bayes_nll']:.3f} nats")
        return Trained(self.network.eval(), self.history)

    def _epoch(self, epoch: int) -> dict[str, float]:
        self.network.train()
        start, start_cpu = time.perf_counter(), time.process_time()
        sums = {"loss": 0.0, "answer_nll": 0.0, "bayes_nll": 0.0, "answers": 0.0, "tokens": 0.0}
        for index, batch in enumerate(self.stream.batches(epoch)):
            step = epoch * self.stream.steps + index
            for group in self.optimiser.param_groups:
                group["lr"] = self.config.learning_rate * self._rate(step)
            loss, answers = self._step(batch)
            if not math.isfinite(loss):
                self._stop(epoch, index, loss)
            sums["loss"] += loss
            sums["answer_nll"] += float(answers.sum())
            sums["bayes_nll"] += float(batch.floor.sum())
            sums["answers"] += len(answers)
            sums["tokens"] += int((batch.ids != 0).sum())
        seconds, cpu_seconds = time.perf_counter() - start, time.process_time() - start_cpu
        return {
            "epoch": float(epoch),
            "loss": sums["loss"] / self.stream.steps,
            "answer_nll": sums["answer_nll"] / sums["answers"],
            "bayes_nll": sums["bayes_nll"] / sums["answers"],
            "tokens": sums["tokens"],
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
        }

    def _step(self, batch: Batch) -> tuple[float, Tensor]:
        ids, target = batch.ids.to(self.config.device), batch.target.to(self.config.device)
        wanted = target[:, 1:]
        logits = self.network.logits_at(ids[:, :-1], wanted)
        nll = functional.cross_entropy(logits, ids[:, 1:][wanted], reduction="none")
        is_answer = batch.answer.to(self.config.device)[:, 1:][wanted]
        learned = nll
        if self.config.soft_labels:
            learned = self._soften(nll, logits, is_answer, batch)
        loss = learned.mean()
        self.optimiser.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(self.parameters, self.config.clip)
        value = float(loss.detach())
        if math.isfinite(value):
            self.optimiser.step()
        return value, nll.detach()[is_answer]

    def _soften(self, nll: Tensor, logits: Tensor, is_answer: Tensor, batch: Batch) -> Tensor:
        chance = torch.exp(-batch.floor).to(nll)
        other = functional.cross_entropy(logits[is_answer], batch.other.to(nll.device), reduction="none")
        soft = nll.clone()
        soft[is_answer] = chance * nll[is_answer] + (1 - chance) * other
        return soft

    def _rate(self, step: int) -> float:
        config = self.config
        if step < config.warm_up:
            return (step + 1) / config.warm_up
        total = config.epochs * self.stream.steps
        part = (step - config.warm_up) / max(total - config.warm_up, 1)
        return config.last_rate + (1 - config.last_rate) * 0.5 * (1 + math.cos(math.pi * part))

    def _identity(self) -> dict[str, Any]:
        return {"config": asdict(self.config), "seed": self.seed, "vocabulary": self.stream.vocabulary_size,
                "steps": self.stream.steps}  # fmt: skip

    def _save(self) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        temporary = self.path.with_suffix(".tmp")
        torch.save(
            {
                "identity": self._identity(),
                "network": self.network.state_dict(),
                "optimiser": self.optimiser.state_dict(),
                "history": self.history,
            },
            temporary,
        )
        os.replace(temporary, self.path)  # noqa: PTH105  (pathlib's replace is the same call)

    def _resume(self) -> None:
        if not self.path.exists():
            return
        state = torch.load(self.path, map_location=self.config.device, weights_only=True)
        if state["identity"] != self._identity():
            raise RunError(
                f"{self.path} belongs to another training",
                expected=self._identity(),
                found=state["identity"],
                fix="train into another folder",
            )
        self.network.load_state_dict(state["network"])
        self.optimiser.load_state_dict(state["optimiser"])
        self.history = state["history"]

    def _stop(self, epoch: int, index: int, loss: float) -> None:
        kept = f"the checkpoint of epoch {epoch - 1} is kept: {self.path}" if self.history else "no epoch was finished"
        raise RunError(
            f"training stopped at epoch {epoch}, step {index}",
            expected="a finite loss",
            found=loss,
            fix=f"lower the learning rate ({kept})",
        )


def check_device(device: str) -> None:
    """Refuse a device that this machine does not have.

    Raises:
        RunError: It names those that there are.
    """
    kind = device.split(":")[0]
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not there.get(kind, False):
        raise RunError(
            f"device {device!r} does not exist here",
            expected=[name for name, value in there.items() if value],
            found=device,
            fix="this configuration is for a machine that has one; use a smaller preset",
        )
