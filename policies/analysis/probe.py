"""Probe features: what a cheap first look says about which way of searching will do.

Text alone predicts little about which plan wins. The rankings of the arms are at hand once they
have run: how sure each is, and whether they agree. The names are columns of learned policies.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from skills.language import content_words
from skills.types import Hit

DEPTH = 10


def probe_features(query: str, arms: Mapping[str, Sequence[Hit]]) -> dict[str, float]:
    """Features of a first look.

    Args:
        query: the user's words.
        arms: skill (`keyword`, `dense` …) to its ranking, best first; an arm that did not run is
            left out, one that found nothing is empty.

    Returns:
        Names to numbers. Of each arm: `top` (best score; of keyword per content word), `gap`
        (between the best two, as a share of the best), `spread` (best less the mean of ten, as a
        share of the best), `entropy` (of the ten scores, 1 when all are equal), `documents`
        (distinct among ten), `hits`. Of the best passage of the first arm: `coverage` (share of the
        query's content words in it) and `title` (in its title and headings). Of two arms:
        `overlap` of their ten passages and `agree` when their best one is the same.
    """
    asked = {word.normalised for word in content_words(query)}
    found: dict[str, float] = {}
    for skill, hits in arms.items():
        per = max(len(asked), 1) if skill == "keyword" else 1
        found |= {f"probe.{skill}.{k}": v for k, v in _shape(hits, per).items()}
        found |= {f"probe.{skill}.{k}": v for k, v in _words(hits, asked).items()}
    names = list(arms)
    for i, one in enumerate(names):
        for other in names[i + 1 :]:
            pair = f"probe.{one}.{other}"
            found |= {f"{pair}.{k}": v for k, v in _together(arms[one], arms[other]).items()}
    return found


def _shape(hits: Sequence[Hit], per: int) -> dict[str, float]:
    if not hits:
        return {
            "top": 0.0,
            "gap": 0.0,
            "spread": 0.0,
            "entropy": 0.0,
            "documents": 0.0,
            "hits": 0.0,
        }
    scores = np.array([hit.score for hit in hits[:DEPTH]])
    best = max(float(scores[0]), 1e-9)
    second = float(scores[1]) if len(scores) > 1 else 0.0
    return {
        "top": best / per,
        "gap": (best - second) / best,
        "spread": (best - float(scores.mean())) / best,
        "entropy": _entropy(scores),
        "documents": float(len({hit.passage.document_id for hit in hits[:DEPTH]})),
        "hits": float(np.log1p(len(hits))),
    }


def _entropy(scores: np.ndarray) -> float:
    """Of the scores' excess over the worst of ten, in units of its maximum."""
    excess = scores - scores.min() + 1e-9
    shares = excess / excess.sum()
    entropy = -(shares * np.log(shares)).sum()
    return float(entropy / np.log(len(shares))) if len(shares) > 1 else 0.0


def _words(hits: Sequence[Hit], asked: set[str]) -> dict[str, float]:
    if not hits or not asked:
        return {"coverage": 0.0, "title": 0.0}
    passage = hits[0].passage
    title = " ".join((passage.title, *passage.metadata.heading_path))
    in_title = {word.normalised for word in content_words(title)}
    inside = in_title | {word.normalised for word in content_words(passage.text[:2000])}
    return {
        "coverage": len(asked & inside) / len(asked),
        "title": len(asked & in_title) / len(asked),
    }


def _together(one: Sequence[Hit], other: Sequence[Hit]) -> dict[str, float]:
    ids = [[hit.passage.id for hit in hits[:DEPTH]] for hits in (one, other)]
    both = len(set(ids[0]) & set(ids[1]))
    agree = bool(ids[0] and ids[1] and ids[0][0] == ids[1][0])
    return {"overlap": both / max(min(len(ids[0]), len(ids[1])), 1), "agree": float(agree)}
