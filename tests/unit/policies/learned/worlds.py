"""Simulated worlds whose truth is known: queries, plans, and what each plan earns on each query."""

import numpy as np

from policies.learned.training_set import TrainingSet
from policies.policy import Outcome
from tests.contract.policy_contract import request

PLANS = ("hybrid", "keyword", "filtered", "reranked")


class World:
    """Queries with a date want `filtered`; with codes `keyword`; `reranked` is a little better than
    `hybrid` everywhere and five times as dear. With `signal=0` no query wants anything special.
    """

    def __init__(self, num, seed=0, signal=0.2, noise=0.25, either=False):
        rng = np.random.default_rng(seed)
        dated, coded = rng.random((2, num)) < (0.5 if either else 0.25)
        chars = rng.integers(10, 200, num)
        self.requests = tuple(
            request(
                PLANS,
                f"w{seed}-{i}",
                dates=("2023",) if dated[i] else (),
                codes=("E1102",) if coded[i] else (),
                num_chars=int(chars[i]),
                num_words=int(chars[i]) // 5,
                signals={"probe.gap": float(rng.normal())},
            )
            for i in range(num)
        )
        difficulty = rng.normal(0.5, 0.2, num)
        effects = np.zeros((num, 4))
        effects[:, 2] = np.where(dated, signal, -0.03)
        effects[:, 1] = np.where(coded, signal / 2, -0.06)
        effects[:, 3] = 0.01
        if either:  # What no linear model can say: a date or a code, but not both.
            effects[:, :2], effects[:, 2] = 0, np.where(dated ^ coded, signal, -signal)
        self.truth = np.clip(difficulty[:, None] + effects, 0, 1)
        self.rewards = np.clip(self.truth + rng.normal(0, noise, (num, 4)), 0, 1)
        self.cost_ms = np.tile([20.0, 5.0, 25.0, 100.0], (num, 1)) + rng.normal(0, 1, (num, 4))

    def replay(self):
        return TrainingSet.from_replay(self.requests, PLANS, self.rewards, self.cost_ms)

    def log(self, seed=0, propensities=(0.7, 0.1, 0.1, 0.1)):
        rng = np.random.default_rng(seed)
        chosen = rng.choice(4, len(self.requests), p=propensities)
        return [
            Outcome(r, PLANS[c], propensities[c], float(self.rewards[i, c]), self.cost_ms[i, c])
            for i, (r, c) in enumerate(zip(self.requests, chosen, strict=True))
        ]

    def value(self, policy, weight_per_s=0.0, seed=0):
        """True mean utility of a policy and of each fixed plan."""
        utility = self.truth - weight_per_s * self.cost_ms / 1000
        decisions = policy.choose(list(self.requests), np.random.default_rng(seed))
        chosen = [PLANS.index(d.plan) for d in decisions]
        return utility[np.arange(len(chosen)), chosen].mean(), utility.mean(axis=0)
