"""How well intents are told, on queries that nothing was tuned on."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from policies.analysis.intents.classifier import INTENTS, IntentClassifier
from policies.analysis.intents.labelled import LabelledQuery
from policies.analysis.intents.training import clues_for
from policies.types import Intent


@dataclass(frozen=True, slots=True)
class Score:
    """Of one way to tell intents."""

    accuracy: float
    macro_f1: float
    """Mean over the intents that there are queries of."""
    f1: dict[Intent, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Rules and classifier on the same queries."""

    num_queries: int
    rules: Score
    classifier: Score
    low: float
    """Of the 95 % interval of what the classifier's accuracy is higher by (paired bootstrap)."""
    high: float


def compare(
    queries: Sequence[LabelledQuery], classifier: IntentClassifier, seed: int = 0
) -> Comparison:
    """Score rules and classifier; `queries` are not empty."""
    clues = [clues_for(query.text) for query in queries]
    wanted = [query.intent for query in queries]
    ruled = [one.ruled for one in clues]
    learnt = [classifier.intent(one) for one in clues]
    gain = np.array(
        [float(b is w) - float(a is w) for a, b, w in zip(ruled, learnt, wanted, strict=True)]
    )
    draws = np.random.default_rng(seed).integers(len(gain), size=(2000, len(gain)))
    low, high = np.percentile(gain[draws].mean(axis=1), [2.5, 97.5])
    return Comparison(
        len(queries), _score(ruled, wanted), _score(learnt, wanted), float(low), float(high)
    )


def _score(told: Sequence[Intent], wanted: Sequence[Intent]) -> Score:
    pairs = list(zip(told, wanted, strict=True))
    f1 = {}
    for intent in INTENTS:
        hits = sum(t is intent and w is intent for t, w in pairs)
        both = sum(t is intent for t, _ in pairs) + sum(w is intent for _, w in pairs)
        if intent in wanted:
            f1[intent] = 2 * hits / both
    accuracy = sum(t is w for t, w in pairs) / len(pairs)
    return Score(accuracy, float(np.mean(list(f1.values()))), f1)
