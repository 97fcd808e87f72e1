"""Trains the classifier of intents on labelled queries."""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_matrix

from policies.analysis.intents.classifier import INTENTS, IntentClassifier
from policies.analysis.intents.clues import Clues, clues_of
from policies.analysis.intents.labelled import LabelledQuery
from policies.analysis.questions import question_word
from policies.errors import DatasetInvalid
from policies.types import Intent
from skills.language import words

PENALTIES = (0.1, 0.2, 0.3, 0.5, 1.0)
LEAST = (0.0, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.55, 0.6)
MIN_QUERIES = 60
_FOLDS = 5
_MIN_SEEN = 2
"""Queries that a written clue must be in: what is in one says nothing of the next."""


def clues_for(text: str) -> Clues:
    """The clues of a text, as the analyzer finds them."""
    return clues_of(text, question_word(text), len(words(text)))


def train(queries: Sequence[LabelledQuery]) -> IntentClassifier:
    """Fit on all queries, with the penalty that does best on folds of them.

    Raises:
        DatasetInvalid: there are too few, or an intent has none.
    """
    if len(queries) < MIN_QUERIES or {query.intent for query in queries} != set(Intent):
        raise DatasetInvalid("queries", f"fewer than {MIN_QUERIES}, or an intent has none")
    seen = [(clues_for(query.text), query.intent) for query in queries]
    right: dict[tuple[float, float], int] = {}
    for penalty in PENALTIES:
        parts = [[one for i, one in enumerate(seen) if i % _FOLDS != k] for k in range(_FOLDS)]
        models = [_fit(part, penalty) for part in parts]
        told = [models[i % _FOLDS].likeliest(clues) for i, (clues, _) in enumerate(seen)]
        for least in LEAST:
            right[penalty, least] = sum(
                (intent if sure >= least else clues.ruled) is wanted
                for (intent, sure), (clues, wanted) in zip(told, seen, strict=True)
            )
    penalty, _ = max(right, key=lambda tried: right[tried])
    model = _fit(seen, penalty)
    model.least = _cautious({least: right[penalty, least] for least in LEAST}, len(seen))
    return model


def _cautious(right: Mapping[float, int], num_queries: int) -> float:
    """The highest least probability that is as good as the best one within its standard error:
    queries of other people are less like these than these are like one another.
    """
    best = max(right.values())
    error = float(np.sqrt(best * (1 - best / num_queries)))
    return max(least for least, count in right.items() if count >= best - error)


def _fit(seen: Sequence[tuple[Clues, Intent]], penalty: float) -> IntentClassifier:
    counts = Counter(clue for clues, _ in seen for clue in clues.written)
    rarity = {
        clue: float(np.log(len(seen) / count))
        for clue, count in sorted(counts.items())
        if _MIN_SEEN <= count < len(seen)
    }
    names = sorted({clue for clues, _ in seen for clue in clues.told})
    told = {clue: len(rarity) + i for i, clue in enumerate(names)}
    shape = len(rarity) + len(told), len(INTENTS)
    model = IntentClassifier(np.zeros(shape), np.zeros(shape[1]), rarity, told, 0.0)
    rows = [model.values(clues) for clues, _ in seen]
    ends = np.cumsum([0, *(len(columns) for columns, _ in rows)])
    values = np.concatenate([counted for _, counted in rows])
    columns = np.concatenate([np.array(columns, dtype=int) for columns, _ in rows])
    x = csr_matrix((values, columns, ends), shape=(len(seen), shape[0]))
    y = np.array([INTENTS.index(intent) for _, intent in seen])
    model.weights, model.bias = _regress(x, np.eye(shape[1])[y], penalty)
    return model


def _regress(x: csr_matrix, wanted: np.ndarray, penalty: float) -> tuple[np.ndarray, np.ndarray]:
    """Weights and bias that minimise the log loss and the penalised squares of the weights.

    Args:
        x: `(num_queries, num_clues)`.
        wanted: `(num_queries, num_intents)`, one 1 in each row.
        penalty: of half the sum of squares.
    """
    shape = x.shape[1] + 1, wanted.shape[1]

    def loss(flat: np.ndarray) -> tuple[float, np.ndarray]:
        weights = flat.reshape(shape)
        score = x @ weights[:-1] + weights[-1]
        score -= score.max(axis=1, keepdims=True)
        total = np.log(np.exp(score).sum(axis=1, keepdims=True))
        surprise = np.exp(score - total) - wanted
        value = float((total - (score * wanted).sum(axis=1, keepdims=True)).sum())
        value += penalty / 2 * float((weights[:-1] ** 2).sum())
        slope = np.vstack([x.T @ surprise + penalty * weights[:-1], surprise.sum(axis=0)])
        return value, slope.ravel()

    options = {"maxiter": 300}
    found = minimize(loss, np.zeros(shape).ravel(), jac=True, method="L-BFGS-B", options=options)
    weights = found.x.reshape(shape)
    return weights[:-1], weights[-1]
