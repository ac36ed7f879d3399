"""Worlds with a known prior: corpora with exact counts, the exact predictor, and small transformers trained on them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from latentkt import lazy

if TYPE_CHECKING:
    from latentkt.synthetic.actions import ActionConfig, ActionStream, ActionWorld, make_action_world
    from latentkt.synthetic.checks import Check, check_run
    from latentkt.synthetic.corpus import corpus_patterns, corpus_statistics, write_corpus
    from latentkt.synthetic.exact import bayes_dominance, path_likelihood
    from latentkt.synthetic.inside import run_inside
    from latentkt.synthetic.make import WorldConfig, count_levels, make_world
    from latentkt.synthetic.network import Network, NetworkConfig
    from latentkt.synthetic.pathmodel import fact_model, path_model
    from latentkt.synthetic.presets import PRESETS, Preset, preset
    from latentkt.synthetic.rrun import RTestConfig, run_r_test
    from latentkt.synthetic.rstream import PathStream
    from latentkt.synthetic.rtest import verdict
    from latentkt.synthetic.run import network_folder, open_stream, run_preset, run_summary
    from latentkt.synthetic.rworld import PathWorld, make_path_world
    from latentkt.synthetic.streams import FactStream
    from latentkt.synthetic.sweep import run_sweep
    from latentkt.synthetic.training import Trained, TrainingConfig, train
    from latentkt.synthetic.world import Cluster, Relation, World, load_world

_HOME = {
    "actions": ("ActionConfig", "ActionStream", "ActionWorld", "make_action_world"),
    "checks": ("Check", "check_run"),
    "corpus": ("corpus_patterns", "corpus_statistics", "write_corpus"),
    "exact": ("bayes_dominance", "path_likelihood"),
    "inside": ("run_inside",),
    "make": ("WorldConfig", "count_levels", "make_world"),
    "network": ("Network", "NetworkConfig"),
    "pathmodel": ("fact_model", "path_model"),
    "presets": ("PRESETS", "Preset", "preset"),
    "rrun": ("RTestConfig", "run_r_test"),
    "rstream": ("PathStream",),
    "rtest": ("verdict",),
    "run": ("network_folder", "open_stream", "run_preset", "run_summary"),
    "rworld": ("PathWorld", "make_path_world"),
    "streams": ("FactStream",),
    "sweep": ("run_sweep",),
    "training": ("Trained", "TrainingConfig", "train"),
    "world": ("Cluster", "Relation", "World", "load_world"),
}
_NAMES = {name: module for module, names in _HOME.items() for name in names}
__all__ = [
    "PRESETS",
    "ActionConfig",
    "ActionStream",
    "ActionWorld",
    "Check",
    "Cluster",
    "FactStream",
    "Network",
    "NetworkConfig",
    "PathStream",
    "PathWorld",
    "Preset",
    "RTestConfig",
    "Relation",
    "Trained",
    "TrainingConfig",
    "World",
    "WorldConfig",
    "bayes_dominance",
    "check_run",
    "corpus_patterns",
    "corpus_statistics",
    "count_levels",
    "fact_model",
    "load_world",
    "make_action_world",
    "make_path_world",
    "make_world",
    "network_folder",
    "open_stream",
    "path_likelihood",
    "path_model",
    "preset",
    "run_inside",
    "run_preset",
    "run_r_test",
    "run_summary",
    "run_sweep",
    "train",
    "verdict",
    "write_corpus",
]


def __getattr__(name: str) -> Any:
    return lazy.load(__name__, _NAMES, name)
