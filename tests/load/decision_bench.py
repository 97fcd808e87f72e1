"""How long a learned decision takes: `python -m tests.load.decision_bench [--profile]`.

Policies of both families over all shipped plans, trained on made-up rewards of real queries
(`../shared/data`), choose for one query at a time. Fails when a 95th percentile is above 2 ms by
the clock; where other programs keep the cores busy, what counts is the time of the processor.
"""

import argparse
import cProfile
import json
import pstats
import sys
import time
from pathlib import Path

import numpy as np

from policies.analysis import Analyzer
from policies.learned.fit import Family, FitSettings, fit
from policies.learned.training_set import TrainingSet
from policies.plan import known_plans
from policies.types import DecisionRequest

BAR_MS = 2.0
SHARED = Path(__file__).parents[2].parent / "shared" / "data"
SKILLS = ("keyword", "dense", "cross_encoder", "fusion", "late_interaction")


def asked(per_folder=100):
    """Requests as a service makes them: features, collection, live numbers."""
    analyzer, rng, made = Analyzer(), np.random.default_rng(0), []
    plans = tuple(known_plans())
    for folder in sorted(SHARED.glob("*/queries.jsonl")):
        lines = folder.read_text(encoding="utf-8").splitlines()[:per_folder]
        for features in analyzer.analyze([json.loads(line)["text"] for line in lines]):
            live = {f"{skill}.p50_ms": float(rng.lognormal(2, 0.5)) for skill in SKILLS}
            made.append(DecisionRequest(str(len(made)), folder.parent.name, features, plans, live))
    return made


def trained(requests, family):
    rng = np.random.default_rng(1)
    plans = requests[0].plans
    favoured = np.array([len(r.features.entities) % len(plans) for r in requests])
    rewards = rng.random((len(requests), len(plans))) * 0.5
    rewards[np.arange(len(requests)), favoured] += 0.5
    costs = np.tile(np.linspace(5, 100, len(plans)), (len(requests), 1))
    data = TrainingSet.from_replay(requests, plans, rewards, costs)
    return fit(data, FitSettings(family=family)).policy


def measured(policy, requests):
    """Milliseconds of each decision, by the clock and of the processor, `(2, num_requests)`."""
    rng, spent = np.random.default_rng(2), []
    policy.choose(requests[:5], rng)
    for request in requests:
        started, busy = time.perf_counter(), time.thread_time()
        policy.choose([request], rng)
        spent.append((time.perf_counter() - started, time.thread_time() - busy))
    return np.array(spent).T * 1000


def main(profile):
    requests, failed = asked(), False
    print(f"{len(requests)} queries, {len(requests[0].plans)} plans")
    for family in Family:
        policy = trained(requests, family)
        spent = measured(policy, requests)
        (p50, p95), (busy50, busy95) = (np.percentile(row, (50, 95)) for row in spent)
        print(
            f"{family:10} p50 {p50:.3f} ms  p95 {p95:.3f} ms  "
            f"processor p50 {busy50:.3f} ms  p95 {busy95:.3f} ms  bar: p95 {BAR_MS} ms"
        )
        failed |= p95 > BAR_MS
        if profile:
            profiler = cProfile.Profile()
            profiler.runcall(measured, policy, requests)
            pstats.Stats(profiler).sort_stats("cumulative").print_stats(30)
    return int(failed)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--profile", action="store_true")
    sys.exit(main(parser.parse_args().profile))
