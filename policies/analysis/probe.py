"""Probe features: what a cheap first look says about which way of searching will do.

Text alone predicts little about which plan wins. The rankings of the arms are at hand once they
have run: how sure each is, and whether they agree. The names are columns of learned policies.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from skills.language import content_words
from skills.siblings import kinships
from skills.types import Hit

DEPTH = 10
_CANDIDATES = 50
"""Hits among which siblings are looked for: as deep as plans that use them."""
_CLOSE = 0.4
"""Kinship from which two passages are siblings here."""
_CHANCE = 0.01
"""Added to both kinships of a ratio, so that few siblings make no large number."""


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
        (distinct among ten), `hits`; `siblings` (log of the kinship among ten over that among
        fifty), `pull` (how much higher than others score those that have a sibling among ten, in
        units of the range) and `near` (kinship of the best passage to the nearest of ten). Of the
        best passage: `coverage` (share of the query's content words in it) and `title` (in its
        title and headings). Of two arms:
        `overlap` of their ten passages and `agree` when their best one is the same.
    """
    asked = {word.normalised for word in content_words(query)}
    found: dict[str, float] = {}
    for skill, hits in arms.items():
        per = max(len(asked), 1) if skill == "keyword" else 1
        found |= {f"probe.{skill}.{k}": v for k, v in _shape(hits, per).items()}
        found |= {f"probe.{skill}.{k}": v for k, v in _words(hits, asked).items()}
        found |= {f"probe.{skill}.{k}": v for k, v in _siblings(hits[:_CANDIDATES]).items()}
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


def _siblings(hits: Sequence[Hit]) -> dict[str, float]:
    if len(hits) < 3:
        return {"siblings": 0.0, "pull": 0.0, "near": 0.0}
    kinship = kinships([hit.passage for hit in hits])
    best = kinship[:DEPTH, :DEPTH]
    ratio = (_mean_of_pairs(best) + _CHANCE) / (_mean_of_pairs(kinship) + _CHANCE)
    scores = np.array([hit.score for hit in hits])
    span = float(np.ptp(scores))
    has_sibling = (kinship[:, :DEPTH] > _CLOSE).any(axis=1)
    told = span > 0 and has_sibling.any() and not has_sibling.all()
    pull = scores[has_sibling].mean() - scores[~has_sibling].mean() if told else 0.0
    return {
        "siblings": float(np.log(ratio)),
        "pull": float(pull) / span if told else 0.0,
        "near": float(best[0].max()),
    }


def _mean_of_pairs(kinship: np.ndarray) -> float:
    n = len(kinship)
    return float(kinship.sum()) / (n * (n - 1))


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
