"""What learning is worth: `python -m tests.load.policy_bench MATRICES [--json FILE] [--quick]`.

MATRICES is a folder of replay matrices, one folder each (`--build COLLECTION_HOME` makes them from
`../shared/data` first, with the collections ingested under that home). Prints, each beside its bar:
trained policies against the best fixed plan, collections held out, quality for less cost, online
learning with clean, wrong and thin feedback, recovery, and the off-policy estimators' coverage.
"""

import argparse
import asyncio
import json
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np

from policies.evaluation.dataset import load_dataset
from policies.learned.exploration import Rule
from policies.learned.fit import Family, FitSettings, fit
from policies.offpolicy.estimators import Method
from policies.replay.coverage import coverage
from policies.replay.matrix import ReplayMatrix
from policies.replay.offline import compare, cost_frontier, decided, held_out_collections
from policies.replay.online import learn_online, online_policy, recover
from policies.replay.stream import StreamSettings
from policies.rules import RulesPolicy, load_rules
from serve_app.config import TacticianConfig
from serve_app.replay import cached_matrix, replay_matrix

SHARED = Path(__file__).parents[2].parent / "shared" / "data"
STILL = {"epsilon": 0.0, "epsilon_floor": 0.0}
PRICES = (0.0, 0.1, 0.2, 0.5, 1.0, 2.0)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("matrices", type=Path)
    parser.add_argument("--build", type=Path, help="home with ingested collections")
    parser.add_argument("--sample", type=int, default=300, help="queries a set when building")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--quick", action="store_true", help="one seed, short traffic")
    given = parser.parse_args()
    if given.build:
        build(given.build, given.matrices, given.sample)
    folders = sorted(path.parent for path in given.matrices.glob("*/matrix.npz"))
    if not folders:
        sys.exit(f"{given.matrices} holds no replay matrix; make some with --build")
    matrix = typical_costs(ReplayMatrix.join([ReplayMatrix.load(folder) for folder in folders]))
    names = ", ".join(np.unique(matrix.collections))
    print(f"{len(matrix)} queries of {names}; plans: {', '.join(matrix.plans)}")
    found = (
        offline(matrix) | online(matrix, given.quick) | {"coverage": covered(matrix, given.quick)}
    )
    if given.json:
        given.json.write_text(json.dumps(found, indent=1))


def build(home, folder, sample):
    for data in sorted(SHARED.glob("*/queries.jsonl")):
        name = data.parent.name
        if cached_matrix(folder / name) is None:
            dataset = load_dataset(data.parent).sample(sample, seed=11)
            made = asyncio.run(replay_matrix(TacticianConfig(home=home), dataset, name))
            made.save(folder / name)


def typical_costs(matrix):
    """Each plan's median cost on its collection: what else ran on the machine is no plan's cost."""
    cost_ms = matrix.cost_ms.copy()
    for name in np.unique(matrix.collections):
        rows = matrix.collections == name
        cost_ms[rows] = np.median(cost_ms[rows], axis=0)
    return replace(matrix, cost_ms=cost_ms)


def offline(matrix):
    dev, test = matrix.split("dev"), matrix.split("test")
    found = {"test": {}, "held_out": {}, "frontier": []}
    print("\ntrained on dev, compared on test   (bar: interval above 0; goal 20 % of the gap)")
    for family in Family:
        fitted = fit(dev.training(), FitSettings(family=family, **STILL))
        found["test"][family] = shown(
            f"  {family}", compare(fitted.policy, fitted.report.reference, test)
        )
    print("collections held out   (bar: mean above 0, none below -0.01)")
    for family in Family:
        held = held_out_collections(matrix, FitSettings(family=family, **STILL))
        differences = {name: c.difference.mean for name, c in held.items()}
        found["held_out"][family] = differences
        worst = min(differences, key=differences.get)
        mean = np.mean(list(differences.values()))
        print(f"  {family:8} mean {mean:+.4f}, worst {worst} {differences[worst]:+.4f}")
    print("quality for less cost   (bar: within 0.005 of the dearest plan at 60 % of its cost)")
    for price, _, comparison in cost_frontier(dev, test, FitSettings(**STILL), PRICES):
        found["frontier"].append(shown(f"  {price:g} per s", comparison))
    return found


def shown(name, comparison):
    c, d = comparison, comparison.difference
    closed = "no gap" if c.gap_closed is None else f"{c.gap_closed:.1%} of the gap"
    print(
        f"{name:12} {c.reward:.4f} against {c.reference_reward:.4f} ({c.reference}), oracle "
        f"{c.oracle_reward:.4f}: {d.mean:+.4f} [{d.low:+.4f}, {d.high:+.4f}], {closed}; "
        f"{c.cost_ms:.0f} of {c.reference_cost_ms:.0f} ms"
    )
    return asdict(comparison)


def online(matrix, quick):
    rules = load_rules()
    seeds, length = (1, 1500) if quick else (3, 5000)
    found = []
    print("online, one reward per request, against the rules")
    for name, traffic, rule in (
        ("clean", {}, Rule.THOMPSON),
        ("clean, pessimistic", {}, Rule.PESSIMISTIC),
        ("30 % wrong", {"wrong_share": 0.3}, Rule.THOMPSON),
        ("5 % feedback", {"feedback_share": 0.05}, Rule.THOMPSON),
    ):
        result = learn_online(
            lambda rule=rule: online_policy(matrix, rules.default, rule=rule),
            lambda: RulesPolicy(rules),
            matrix,
            StreamSettings(num_requests=length, **traffic),
            name=name,
            seeds=seeds,
        )
        found.append(asdict(result))
        print(
            f"  {name:20} gain {result.gain:+.4f} ({result.low:+.4f} to {result.high:+.4f}), "
            f"settled after {result.settled_after}"
        )
    make = lambda: online_policy(matrix, rules.default)  # noqa: E731
    recovery = recover(make, matrix, at=length // 2, seeds=seeds)
    print(f"  {recovery.plan} degrades: {recovery.recovered:.0%} recovered (bar: 50 % in 500)")
    return {"online": found, "recovery": asdict(recovery)}


def covered(matrix, quick):
    print("off-policy estimates   (bar: truth in at least 90 % of the intervals)")
    logging = decided(RulesPolicy(load_rules(), epsilon=0.3), matrix)
    target = decided(fit(matrix.training(), FitSettings(weight_per_s=0.5)).policy, matrix)
    found = []
    for method in Method:
        result = coverage(matrix, logging, target, method=method, resamplings=40 if quick else 200)
        found.append(asdict(result))
        print(
            f"  {method:6} {result.held:.1%}, width {result.mean_width:.4f}, "
            f"bias {result.bias:+.4f}"
        )
    return found


if __name__ == "__main__":
    main()
