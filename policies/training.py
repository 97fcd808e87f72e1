"""Training on Ray Tune: one trial per candidate. The only module of `policies` that knows Ray."""

import logging
import os
import tempfile
from collections.abc import Sequence
from typing import Any

import ray
from ray import tune

from policies.errors import PolicyError, PolicyInvalid
from policies.learned.training_set import TrainingSet
from policies.learning.search import Candidate, Scored, score

_QUIET = {
    # Tune would write every trial's result as CSV, JSON and for TensorBoard.
    "TUNE_DISABLE_AUTO_CALLBACK_LOGGERS": "1",
    # The newer output prints its tables even when it is told to be silent.
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
}


def score_on_ray(training: TrainingSet, candidates: Sequence[Candidate]) -> list[Scored]:
    """Score every candidate in a trial of its own.

    Starts a cluster of this machine when there is none, and stops it again; `RAY_ADDRESS` names
    another one.

    Args:
        training: sent once, through the object store.
        candidates: what to try.

    Returns:
        The scores, in the order of the candidates.

    Raises:
        PolicyInvalid: a trial failed; it has the trial's own words.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    # It warns that those files are not there.
    logging.getLogger("ray.tune").setLevel(logging.ERROR)
    started = not ray.is_initialized()
    if started:
        ray.init(
            address=os.environ.get("RAY_ADDRESS", "local"),
            include_dashboard=False,
            log_to_driver=False,
            logging_level=logging.WARNING,
        )
    try:
        with tempfile.TemporaryDirectory(prefix="tactician-tune-") as storage:
            return _scored(training, candidates, storage)
    finally:
        if started:
            ray.shutdown()


def _scored(training: TrainingSet, candidates: Sequence[Candidate], storage: str) -> list[Scored]:
    tuner = tune.Tuner(
        tune.with_parameters(_trial, training=training, candidates=tuple(candidates)),
        param_space={"number": tune.grid_search(list(range(len(candidates))))},
        # A trial's process is kept for the next one: starting one takes as long as a fit.
        tune_config=tune.TuneConfig(reuse_actors=True),
        run_config=tune.RunConfig(storage_path=storage, verbose=0),
    )
    found: dict[int, Scored] = {}
    for result in tuner.fit():
        if result.error is not None:
            raise PolicyInvalid("training", f"a trial failed: {result.error}")
        if refused := result.metrics["refused"]:
            raise PolicyInvalid(*refused)
        found[result.config["number"]] = result.metrics["scored"]
    return [found[number] for number in range(len(candidates))]


def _trial(
    config: dict[str, Any], training: TrainingSet, candidates: tuple[Candidate, ...]
) -> None:
    """Runs in a process of Ray's. What is wrong with the data is a result, not a crash."""
    try:
        tune.report({"scored": score(training, candidates[config["number"]]), "refused": None})
    except PolicyError as error:
        tune.report({"scored": None, "refused": (error.subject, error.detail)})
