"""Candidates of which a ranker can learn something: live sales decide, the incoming order does
not.
"""

import datetime

import numpy as np

from skills.ranking_features import FeatureSettings, feature_rows
from skills.ranking_model import RankerCard, RankerSettings, RankingModel
from skills.skill import SkillRequest
from skills.types import Hit, Passage, PassageMetadata

NOW = datetime.datetime(2025, 1, 31, tzinfo=datetime.UTC)
SETTINGS = FeatureSettings(business_field="sold")


def candidates(rng, n=12):
    """Hits, and which of them are relevant."""
    sold = rng.permutation(n)
    hits = tuple(
        Hit(
            Passage(
                f"p{i}", f"d{i}", f"text {i}", "", PassageMetadata(attributes={"sold": int(s)})
            ),
            float(n - i),
        )
        for i, s in enumerate(sold)
    )
    return hits, (sold >= n - 3).astype(int)


def request(hits, **changed):
    return SkillRequest(**{"query": "q", "collection": "c", "top_k": 12, "budget_ms": 100,
                           "hits": tuple(hits)} | changed)  # fmt: skip


def trained(num_queries=60):
    rng = np.random.default_rng(0)
    rows, grades, groups = [], [], []
    for _ in range(num_queries):
        hits, relevant = candidates(rng)
        rows.append(feature_rows(request(hits), SETTINGS, NOW))
        grades += relevant.tolist()
        groups.append(len(hits))
    trees = RankerSettings(rounds=20)
    return RankingModel.fit(np.concatenate(rows), grades, groups, SETTINGS, trees)


def card(**changed):
    facts = {
        "trained_at": NOW, "source": "a test", "plan": "hybrid_learned", "num_queries": 60,
        "num_labels": 720, "held_out_queries": 40, "ndcg_before": 0.4, "ndcg_after": 0.9,
        "win": 0.5, "win_low": 0.4, "win_high": 0.6,
    }  # fmt: skip
    return RankerCard(**facts | changed)
