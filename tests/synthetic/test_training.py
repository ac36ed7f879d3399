from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from latentkt.errors import InputError, RunError
from latentkt.synthetic import NetworkConfig, TrainingConfig, train
from latentkt.synthetic.training import Batch, _Training

from .conftest import TINY_TRAINING


def _weights(trained) -> torch.Tensor:
    return torch.cat([parameter.detach().ravel() for parameter in trained.network.parameters()])


def test_training_is_deterministic(tiny_stream, tmp_path):
    first, again = (train(tiny_stream, TINY_TRAINING, seed=1, folder=tmp_path / name) for name in "ab")
    other = train(tiny_stream, TINY_TRAINING, seed=2, folder=tmp_path / "c")
    assert torch.equal(_weights(first), _weights(again))
    assert not torch.equal(_weights(first), _weights(other))


def test_training_leaves_the_users_random_state_alone(tiny_stream, tmp_path):
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    train(tiny_stream, replace(TINY_TRAINING, epochs=1), seed=1, folder=tmp_path)
    assert torch.equal(torch.rand(3), expected)


class _Broken:
    """A stream that stops after some epochs, or gives a label that makes the loss infinite."""

    def __init__(self, stream, *, stops_at: int) -> None:
        self.stream, self.stops_at = stream, stops_at
        self.vocabulary_size, self.steps = stream.vocabulary_size, stream.steps

    def batches(self, epoch):
        if epoch >= self.stops_at:
            raise KeyboardInterrupt
        return self.stream.batches(epoch)


def test_a_resumed_training_equals_an_unbroken_one(tiny_stream, tmp_path):
    whole = train(tiny_stream, TINY_TRAINING, seed=1, folder=tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(_Broken(tiny_stream, stops_at=1), TINY_TRAINING, seed=1, folder=tmp_path / "broken")
    resumed = train(tiny_stream, TINY_TRAINING, seed=1, folder=tmp_path / "broken")
    assert torch.equal(_weights(whole), _weights(resumed))
    assert len(resumed.history) == 3
    assert [row["answer_nll"] for row in resumed.history] == [row["answer_nll"] for row in whole.history]


def test_another_trainings_checkpoint_is_refused(tiny_stream, tmp_path):
    train(tiny_stream, replace(TINY_TRAINING, epochs=1), seed=1, folder=tmp_path)
    with pytest.raises(RunError, match="another training"):
        train(tiny_stream, replace(TINY_TRAINING, epochs=1), seed=2, folder=tmp_path)


def test_a_loss_that_is_not_finite_stops_and_keeps_the_last_checkpoint(tiny_stream, tmp_path, monkeypatch):
    good = train(tiny_stream, replace(TINY_TRAINING, epochs=1), seed=1, folder=tmp_path / "good")
    step = _Training._step
    calls = []

    def broken(self, batch: Batch):
        calls.append(1)
        if len(calls) > tiny_stream.steps + 1:
            with torch.no_grad():
                self.network.unembed.weight[0, 0] = float("nan")
        return step(self, batch)

    monkeypatch.setattr(_Training, "_step", broken)
    with pytest.raises(RunError, match=r"epoch 1, step 1[\s\S]*checkpoint of epoch 0 is kept"):
        train(tiny_stream, TINY_TRAINING, seed=1, folder=tmp_path / "bad")
    kept = torch.load(tmp_path / "bad" / "checkpoint.pt", weights_only=True)
    assert len(kept["history"]) == 1
    assert all(torch.isfinite(value).all() for value in kept["network"].values())
    del good


def test_the_rate_warms_up_and_falls(tiny_stream, tmp_path):
    training = _Training(tiny_stream, replace(TINY_TRAINING, warm_up=4), 0, tmp_path)
    total = 3 * tiny_stream.steps
    rates = [training._rate(step) for step in range(total)]
    assert rates[:4] == pytest.approx([0.25, 0.5, 0.75, 1.0])
    assert np.all(np.diff(rates[4:]) < 0)
    assert training._rate(total) == pytest.approx(0.02)


def test_prompts_are_no_targets(tiny_stream):
    batch = next(tiny_stream.batches(0))
    answered = batch.answer.any(1)
    assert (batch.target[answered].sum(1) == 2).all()  # the answer and the newline
    assert (batch.target & (batch.ids == 0)).sum() == 0


def test_soft_labels_weigh_both_options(tiny_stream, tmp_path):
    """At the exact answer distribution the soft loss is the entropy, whatever label was drawn."""
    training = _Training(tiny_stream, replace(TINY_TRAINING, soft_labels=True), 0, tmp_path)
    chance = torch.tensor([0.7, 0.3])
    batch = Batch(
        ids=torch.zeros(2, 3, dtype=torch.long), target=torch.ones(2, 3, dtype=torch.bool),
        answer=torch.ones(2, 3, dtype=torch.bool), floor=-chance.log(), other=torch.tensor([5, 4]),
    )  # fmt: skip
    logits = torch.full((2, 8), -50.0)
    logits[:, 4], logits[:, 5] = np.log(0.7), np.log(0.3)  # label 4 drawn with .7, label 5 with .3
    nll = -logits.log_softmax(-1)[torch.arange(2), torch.tensor([4, 5])]
    soft = training._soften(nll, logits, torch.tensor([True, True]), batch)
    entropy = -(0.7 * np.log(0.7) + 0.3 * np.log(0.3))
    assert soft.tolist() == pytest.approx([entropy, entropy], abs=1e-5)


@pytest.mark.parametrize("sizes", [{"width": 30, "heads": 4}, {"width": 12, "heads": 4}, {"layers": 0}])
def test_odd_sizes_are_refused(sizes):
    with pytest.raises(InputError):
        NetworkConfig(**sizes)


def test_impossible_trainings_are_refused(tiny_stream, tmp_path):
    with pytest.raises(InputError):
        TrainingConfig(epochs=0)
    if not torch.cuda.is_available():
        with pytest.raises(RunError, match="does not exist here"):
            train(tiny_stream, replace(TINY_TRAINING, device="cuda"), seed=0, folder=tmp_path)
