"""Training from this home's experience into its registry."""

from datetime import datetime

from policies.experience.store import ExperienceStore
from policies.learning.log import rewarded_log
from policies.learning.search import Search
from policies.learning.train import Trained, TrainSettings, train
from policies.policy import Policy
from policies.registry.registry import Entry, PolicyRegistry
from policies.rules import RULES, RulesPolicy, load_rules
from serve_app import catalogue
from serve_app.config import TacticianConfig
from serve_app.parts.orchestrator import policy_registry


def train_policy(
    config: TacticianConfig,
    since: datetime,
    until: datetime,
    search: Search,
    settings: TrainSettings | None = None,
    *,
    collection: str | None = None,
) -> Trained:
    """Train on what was recorded in a window, and judge against what serves now.

    Args:
        config: where experience and policies are kept.
        since: first arrival.
        until: end of the window, and the time at which silence is judged.
        search: how candidates are scored.
        settings: grid, split, what publication asks.
        collection: only its requests; all when None.

    Raises:
        PolicyInvalid: too little to learn from.
        StorageUnavailable: the experience or the registry cannot be read.
    """
    store = ExperienceStore(config.experience_url)
    try:
        log = rewarded_log(store.iterate(since, until, collection=collection), until)
    finally:
        store.close()
    return train(log, incumbent(config), search, settings)


def incumbent(config: TacticianConfig) -> Policy:
    """What serves on this home: the registry's current policy, else the rules."""
    registry = policy_registry(config)
    current = registry.index().current
    if current is not None:
        return registry.load(current)[0]
    rules = load_rules(config.rules_file or RULES, catalogue.current(config).plans)
    return RulesPolicy(rules, config.policy.exploration)


def publish(registry: PolicyRegistry, trained: Trained, *, promote: bool = False) -> Entry | None:
    """Add a policy that may be published, and let it serve when that is asked for.

    Returns:
        Its entry; None when it was refused.
    """
    if not trained.judgement.publishable:
        return None
    entry = registry.publish(trained.policy, trained.card)
    if promote:
        registry.promote(entry.version, f"trained from {trained.card.source}")
    return entry
