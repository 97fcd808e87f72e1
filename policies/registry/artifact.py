"""A learned policy as one file: a zip of JSON and arrays, checksummed, readable by any release that
knows its format.
"""

import io
from collections.abc import Mapping
from typing import Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, ValidationError

from policies.errors import PolicyInvalid
from policies.learned.costs import CostSettings, PlanCosts
from policies.learned.exploration import Exploration
from policies.learned.linear import LinearRewardModel, LinearSettings
from policies.learned.policy import LearnedPolicy, PolicyParts
from policies.learned.prediction import RewardModel
from policies.learned.trees import Shrinkage, TreeRewardModel, read_booster
from policies.learned.vectoriser import Vectoriser
from policies.registry.card import PolicyCard
from skills.checked_archive import pack, unpack

FORMAT = 1


class _LinearState(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    num_columns: int
    plans: tuple[str, ...]
    settings: LinearSettings
    collection_columns: tuple[int, ...] = ()


class _TreeState(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    plans: tuple[str, ...]
    slope: float
    centres: tuple[float, ...]


class _PolicyState(BaseModel):
    """`policy.json`: everything but arrays and trees."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    version: str
    name: str
    reference: str
    num_outcomes: int
    vectoriser: Vectoriser
    exploration: Exploration
    costs: CostSettings
    measured: Mapping[str, tuple[float, float]]
    linear: _LinearState
    trees: _TreeState | None = None
    card: PolicyCard


def dump_policy(policy: LearnedPolicy, card: PolicyCard) -> bytes:
    """The policy as a file; equal policies with equal cards give equal bytes."""
    parts, model = policy.parts, policy.parts.model
    linear = model.linear if isinstance(model, TreeRewardModel) else model
    if not isinstance(linear, LinearRewardModel):
        raise PolicyInvalid(policy.name, f"{type(linear).__name__} has no file format")
    state = _PolicyState(
        version=policy.version,
        name=policy.name,
        reference=parts.reference,
        num_outcomes=policy.num_outcomes,
        vectoriser=parts.vectoriser,
        exploration=parts.exploration,
        costs=parts.costs.settings,
        measured=parts.costs.measured,
        linear=_LinearState(
            num_columns=linear.num_columns,
            plans=linear.plans,
            settings=linear.settings,
            collection_columns=linear.collection_columns,
        ),
        trees=_tree_state(model),
        card=card,
    )
    files = {
        "policy.json": state.model_dump_json().encode(),
        "gram.npy": _array_bytes(linear.gram),
        "moment.npy": _array_bytes(linear.moment),
    }
    if isinstance(model, TreeRewardModel):
        files["trees.ubj"] = bytes(model.booster.save_raw("ubj"))
    return pack(files)


def load_policy(data: bytes, source: str = "policy artifact") -> tuple[LearnedPolicy, PolicyCard]:
    """Read a file that `dump_policy` wrote.

    Nothing in it is executed: JSON, arrays without objects, and trees in UBJSON.

    Raises:
        PolicyInvalid: damaged, of another format, or it does not decide as it did when it was
            written; `source` is named.
    """
    files = _unpacked(data, source)
    try:
        state = _PolicyState.model_validate_json(files["policy.json"])
        policy = LearnedPolicy(
            PolicyParts(
                name=state.name,
                vectoriser=state.vectoriser,
                model=_model(state, files),
                costs=_costs(state),
                exploration=state.exploration,
                reference=state.reference,
            ),
            num_outcomes=state.num_outcomes,
        )
    except (KeyError, ValueError, ValidationError) as error:
        raise PolicyInvalid(source, f"cannot be read by this release: {error}") from error
    if policy.version != state.version:
        detail = f"says it is version {state.version} and is {policy.version}"
        raise PolicyInvalid(source, detail)
    return policy, state.card


def _model(state: _PolicyState, files: Mapping[str, bytes]) -> RewardModel:
    known = state.linear
    linear = LinearRewardModel(known.num_columns, known.settings, known.collection_columns)
    linear.restore(state.linear.plans, _array(files["gram.npy"]), _array(files["moment.npy"]))
    if linear.num_columns != len(state.vectoriser.columns):
        detail = f"has {linear.num_columns} columns where this release reads "
        raise ValueError(detail + str(len(state.vectoriser.columns)))
    if state.trees is None:
        return linear
    shrinkage = Shrinkage(state.trees.slope, state.trees.centres)
    booster = read_booster(files["trees.ubj"])
    return TreeRewardModel(state.trees.plans, linear, booster, shrinkage)


def _tree_state(model: RewardModel) -> _TreeState | None:
    if not isinstance(model, TreeRewardModel):
        return None
    return _TreeState(
        plans=model.plans, slope=model.shrinkage.slope, centres=model.shrinkage.centres
    )


def _costs(state: _PolicyState) -> PlanCosts:
    costs = PlanCosts(state.costs)
    costs.measured = dict(state.measured)
    return costs


def _unpacked(data: bytes, source: str) -> dict[str, bytes]:
    try:
        return unpack(data)
    except ValueError as error:
        raise PolicyInvalid(source, str(error)) from error


def _array_bytes(array: np.ndarray) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array, dtype="<f8"), allow_pickle=False)
    return buffer.getvalue()


def _array(data: bytes) -> np.ndarray:
    array: np.ndarray = np.load(io.BytesIO(data), allow_pickle=False)
    return array
