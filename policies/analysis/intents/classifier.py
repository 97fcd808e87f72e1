"""The trained classifier, as it is used."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path

import numpy as np
import orjson

from policies.analysis.intents.clues import NO_DEFINITION, Clues, clues_of
from policies.errors import PolicyInvalid
from policies.types import Intent

MODEL = Path(__file__).parent / "model.json"
"""Made of the training half of `queries.tsv` by `tactician train intent`."""

INTENTS = tuple(Intent)
_DEFINITION = INTENTS.index(Intent.DEFINITION)
TOLD = 0.8
"""What a clue of the rules counts beside all that is written together, which counts 1."""


class IntentClassifier:
    """Multinomial logistic regression over the clues of a query."""

    def __init__(
        self,
        weights: np.ndarray,
        bias: np.ndarray,
        rarity: Mapping[str, float],
        told: Mapping[str, int],
        least: float,
    ) -> None:
        """Args:
        weights: `(num_clues, num_intents)`, those of `rarity` first.
        bias: `(num_intents,)`.
        rarity: what a written clue counts: the logarithm of how rare it is.
        told: the row of each other clue.
        least: probability below which the classifier is unsure.
        """
        self.weights, self.bias, self.rarity, self.told = weights, bias, rarity, told
        self.least = least
        self._rows = {clue: row for row, clue in enumerate(rarity)}

    def values(self, clues: Clues) -> tuple[list[int], np.ndarray]:
        """Rows of the weights, and what each counts: written clues have length 1 together."""
        written = [clue for clue in sorted(clues.written) if clue in self._rows]
        counted = np.array([self.rarity[clue] for clue in written])
        length = float(np.sqrt((counted**2).sum())) or 1.0
        told = [self.told[clue] for clue in sorted(clues.told) if clue in self.told]
        rows = [self._rows[clue] for clue in written] + told
        return rows, np.concatenate([counted / length, np.full(len(told), TOLD)])

    def probabilities(self, clues: Clues) -> np.ndarray:
        """`(num_intents,)`, in the order of `Intent`."""
        rows, values = self.values(clues)
        score = values @ self.weights[rows] + self.bias
        score = np.exp(score - score.max())
        probabilities: np.ndarray = score / score.sum()
        return probabilities

    def likeliest(self, clues: Clues) -> tuple[Intent, float]:
        """The likeliest intent and its probability. A question for a property (`the area of … is
        what`) is no definition, however it is written.
        """
        probabilities = self.probabilities(clues)
        if NO_DEFINITION in clues.told:
            probabilities[_DEFINITION] = 0
        best = int(probabilities.argmax())
        return INTENTS[best], float(probabilities[best])

    def intent(self, clues: Clues) -> Intent:
        """The likeliest intent; what the rules say when it is not likely enough."""
        intent, sure = self.likeliest(clues)
        return intent if sure >= self.least else clues.ruled

    def dump(self) -> bytes:
        """As a file: weights by clue, rounded to what matters."""
        rows = [[round(float(w), 3) for w in row] for row in self.weights]
        written = {clue: [round(r, 4), *rows[i]] for i, (clue, r) in enumerate(self.rarity.items())}
        told = {clue: rows[row] for clue, row in self.told.items()}
        content = {
            "intents": INTENTS,
            "bias": [round(float(b), 4) for b in self.bias],
            "least": self.least,
            "told": told,
            "written": written,
        }
        return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


@cache
def load_classifier(path: Path = MODEL) -> IntentClassifier:
    """Read a classifier.

    Raises:
        PolicyInvalid: the file is missing, or no classifier of this release.
    """
    try:
        content = orjson.loads(path.read_bytes())
        if tuple(content["intents"]) != INTENTS:
            raise PolicyInvalid(str(path), f"knows other intents: {content['intents']}")
        written, told = content["written"], content["told"]
        rows = [row[1:] for row in written.values()] + list(told.values())
        return IntentClassifier(
            np.array(rows, dtype=np.float64).reshape(-1, len(INTENTS)),
            np.array(content["bias"], dtype=np.float64),
            {clue: float(row[0]) for clue, row in written.items()},
            {clue: len(written) + i for i, clue in enumerate(told)},
            float(content["least"]),
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise PolicyInvalid(str(path), f"is no classifier of intents: {error}") from error


class IntentReader:
    """Tells what kind of answer a query wants: the classifier, and rules where it is unsure."""

    def __init__(self, classifier: IntentClassifier | None = None) -> None:
        self._classifier = classifier or load_classifier()

    def intent(self, text: str, question: str, num_words: int) -> Intent:
        """The intent of a query; arguments as of `clues_of`."""
        return self._classifier.intent(clues_of(text, question, num_words))
