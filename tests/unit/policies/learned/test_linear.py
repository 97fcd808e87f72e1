import numpy as np
import pytest

from policies.learned.linear import LinearRewardModel, LinearSettings, shared_noise
from policies.learned.training_set import TrainingSet


def learnt(x, plans, rewards, **settings):
    model = LinearRewardModel(x.shape[1], LinearSettings(**settings))
    model.learn(x, plans, np.asarray(rewards, float), np.ones(len(plans)))
    return model


def test_by_hand_one_plan_and_no_columns():
    """Two rewards of 1: shared and plan intercept have prior variances .09 and .01, noise .09."""
    model = learnt(np.zeros((2, 0)), ["a", "a"], [1, 1])
    prediction = model.predict(np.zeros((1, 0)), ["a", "b"])
    assert 0.5 + 0.5 * 2 * 0.1 / (2 * 0.1 + 0.09) == pytest.approx(prediction.mean[0, 0])
    assert 0.5 + 0.5 * 2 * 0.09 / (2 * 0.1 + 0.09) == pytest.approx(prediction.mean[0, 1])
    assert 0.1 * 0.09 / (2 * 0.1 + 0.09) == pytest.approx(prediction.covariance[0, 0, 0])


def test_knows_nothing_at_first():
    model = LinearRewardModel(2, LinearSettings())
    prediction = model.predict(np.ones((1, 2)), ["a", "b"])
    np.testing.assert_allclose(prediction.mean, [[0.5, 0.5]])
    variance = prediction.covariance[0]
    assert variance[0, 0] == pytest.approx(3 * 0.3**2 + 0.1**2 + 2 * 0.02**2)
    assert variance[0, 1] == pytest.approx(3 * 0.3**2)


def test_finds_which_plan_a_column_speaks_for():
    rng = np.random.default_rng(1)
    x = rng.normal(size=(4000, 3))
    plans = rng.choice(["a", "b"], 4000)
    effect = np.where(plans == "a", 0.1 * x[:, 1], -0.1 * x[:, 1])
    rewards = 0.5 + 0.2 * x[:, 0] + effect + rng.normal(0, 0.1, 4000)
    model = learnt(x, list(plans), rewards, interaction_spread=0.1)
    means = model.predict(np.array([[0, 1.0, 0], [0, -1.0, 0]]), ["a", "b"]).mean
    np.testing.assert_allclose(means, [[0.6, 0.4], [0.4, 0.6]], atol=0.02)
    contributions = model.contributions(np.array([2.0, 1.0, 3.0]), "a", "b")
    np.testing.assert_allclose(contributions, [0, 0.2, 0], atol=0.04)


def test_little_evidence_hardly_moves_a_plan_from_the_others():
    x = np.zeros((4, 1))
    model = learnt(x, ["a", "a", "b", "b"], [1, 1, 0, 0])
    mean = model.predict(np.zeros((1, 1)), ["a", "b"]).mean[0]
    assert 0 < mean[0] - mean[1] < 0.25


def test_a_new_plan_is_an_arm_at_once_and_uncertain():
    x = np.random.default_rng(0).normal(size=(500, 1))
    model = learnt(x, ["a"] * 500, np.full(500, 0.8))
    prediction = model.predict(np.zeros((1, 1)), ["a", "new"])
    assert prediction.covariance[0, 1, 1] > 5 * prediction.covariance[0, 0, 0]
    model.learn(x[:300], ["new"] * 300, np.full(300, 0.6), np.ones(300))
    assert model.predict(np.zeros((1, 1)), ["new"]).mean[0, 0] == pytest.approx(0.6, abs=0.03)


def test_learning_at_once_or_one_by_one_is_the_same():
    rng = np.random.default_rng(2)
    x, rewards = rng.normal(size=(30, 2)), rng.random(30)
    plans = list(rng.choice(["a", "b", "c"], 30))
    together = learnt(x, plans, rewards, discount=0.95)
    single = LinearRewardModel(2, LinearSettings(discount=0.95))
    for i in range(30):
        single.learn(x[i : i + 1], [plans[i]], rewards[i : i + 1], np.ones(1))
    at = np.array([[0.3, -1.0]])
    one, other = together.predict(at, ["a", "b", "c"]), single.predict(at, ["a", "b", "c"])
    np.testing.assert_allclose(one.mean, other.mean)
    np.testing.assert_allclose(one.covariance, other.covariance)


def test_a_discount_follows_change():
    x = np.zeros((600, 0))
    rewards = np.repeat([0.9, 0.1], 300)
    for discount, expected in ((1.0, 0.5), (0.98, 0.1)):
        model = learnt(x, ["a"] * 600, rewards, discount=discount)
        assert model.predict(np.zeros((1, 0)), ["a"]).mean[0, 0] == pytest.approx(
            expected, abs=0.03
        )


def test_a_weight_of_two_is_the_observation_twice():
    x = np.ones((1, 1))
    twice = learnt(np.ones((2, 1)), ["a", "a"], [1, 1])
    heavy = LinearRewardModel(1)
    heavy.learn(x, ["a"], np.ones(1), np.array([2.0]))
    np.testing.assert_allclose(twice.predict(x, ["a"]).mean, heavy.predict(x, ["a"]).mean)


def test_digest_changes_with_what_was_learnt():
    model = LinearRewardModel(1)
    before = model.digest
    assert before == LinearRewardModel(1).digest
    model.learn(np.ones((1, 1)), ["a"], np.ones(1), np.ones(1))
    assert before != model.digest


def three_plans(seed=0, plans=("a", "b", "c"), num=200):
    rng = np.random.default_rng(seed)
    model, x = LinearRewardModel(3, LinearSettings()), rng.normal(size=(num, 3))
    chosen = rng.choice(plans, num).tolist()
    model.learn(x, chosen, rng.random(num), np.ones(num))
    return model, x


def test_forgets_a_plan_and_nothing_else():
    model, x = three_plans()
    before = model.predict(x[:5], ("a", "b"))
    model.forget("c")
    after = model.predict(x[:5], ("a", "b"))
    assert after.mean == pytest.approx(before.mean)
    assert after.covariance == pytest.approx(before.covariance)
    new, forgotten = (model.predict(x[:5], (plan,)) for plan in ("unseen", "c"))
    assert forgotten.mean == pytest.approx(new.mean)
    assert forgotten.covariance == pytest.approx(new.covariance)


def test_a_few_rewards_at_a_time_teach_the_same_as_all_at_once():
    rng = np.random.default_rng(1)
    x, rewards = rng.normal(size=(60, 8)), rng.random(60)
    plans = [("a", "b", "c")[i % 3] for i in range(60)]
    whole, slow = (LinearRewardModel(8, LinearSettings()) for _ in range(2))
    whole.learn(x, plans, rewards, np.ones(60))
    for i in range(0, 60, 5):
        slow.learn(x[i : i + 5], plans[i : i + 5], rewards[i : i + 5], np.ones(5))
        slow.predict(x[:1], ("a",))
    one, other = (model.predict(x[:4], ("a", "b", "c")) for model in (whole, slow))
    assert other.mean == pytest.approx(one.mean)
    assert other.covariance == pytest.approx(one.covariance)


def test_a_sum_over_plans_has_the_mean_and_the_variance_of_its_parts():
    model, x = three_plans()
    predicted = model.predict(x[:1], ("a", "b"))
    one = np.concatenate([[1.0], x[0]])
    mean, variance = model.combined({"a": one, "b": -one})
    covariance = predicted.covariance[0]
    assert mean == pytest.approx(predicted.mean[0, 0] - predicted.mean[0, 1])
    assert variance == pytest.approx(covariance[0, 0] + covariance[1, 1] - 2 * covariance[0, 1])


def test_rewards_of_one_query_tell_differences_and_not_its_difficulty():
    """By the covariance of the rewards itself, s I + t 11' for each query, in one dense solve."""
    rng = np.random.default_rng(3)
    x, queries = rng.normal(size=(4, 2))[[0, 0, 0, 1, 1, 2, 3]], np.array([7, 7, 7, 2, 2, 5, 9])
    plans, rewards = ["a", "b", "c", "a", "c", "b", "a"], rng.random(7)
    settings = LinearSettings(shared_noise=0.8)
    model = LinearRewardModel(2, settings)
    model.learn(x, plans, rewards, np.ones(7), queries)
    one = np.concatenate([np.ones((7, 1)), x], axis=1)
    blocks = [one * np.array([p == plan for p in plans])[:, None] for plan in "abc"]
    phi = np.concatenate([one, *blocks], axis=1)
    own = [settings.plan_spread**2, *[settings.interaction_spread**2] * 2]
    prior = np.diag([*[settings.query_spread**2] * 3, *own * 3])
    same = queries[:, None] == queries
    noise = settings.noise**2 * np.where(np.eye(7) > 0, 1.0, 0.8 * same)
    weights = prior @ phi.T @ np.linalg.solve(phi @ prior @ phi.T + noise, rewards - 0.5)
    at = np.array([1.0, 0.3, -1.0])
    expected = [0.5 + at @ (weights[:3] + weights[i : i + 3]) for i in (3, 6, 9)]
    np.testing.assert_allclose(model.mean(at[None, 1:], ["a", "b", "c"])[0], expected)


def test_differences_are_known_better_than_from_queries_apart():
    x, plans = np.zeros((60, 0)), ["a", "b"] * 30
    together, apart = LinearRewardModel(0), LinearRewardModel(0)
    together.learn(x, plans, np.tile([0.6, 0.5], 30), np.ones(60), np.repeat(np.arange(30), 2))
    apart.learn(x, plans, np.tile([0.6, 0.5], 30), np.ones(60))

    def lead(model):
        found = model.predict(np.zeros((1, 0)), ["a", "b"])
        (one, both), (_, other) = found.covariance[0]
        return found.mean[0, 0] - found.mean[0, 1], one + other - 2 * both

    assert lead(apart)[0] < lead(together)[0] < 0.1
    assert lead(together)[1] < lead(apart)[1] / 2


def test_what_tells_collections_apart_may_say_more_than_other_columns():
    x = np.repeat([[1.0, 1.0], [-1.0, -1.0]], 40, axis=0)
    model = LinearRewardModel(2, LinearSettings(interaction_spread=0.001), collection_columns=[1])
    rewards = np.concatenate([np.tile([0.9, 0.1], 20), np.tile([0.1, 0.9], 20)])
    model.learn(x, ["a", "b"] * 40, rewards, np.ones(80))
    one, other = model.contributions(np.ones(2), "a", "b")
    assert other > 20 * one > 0
    unseen = model.predict(np.array([[0.0, 1.0]]), ["new"]).covariance
    assert unseen > model.predict(np.array([[1.0, 0.0]]), ["new"]).covariance


def test_the_shared_part_of_the_noise_is_measured_where_plans_ran_together():
    rng = np.random.default_rng(4)
    hard = rng.normal(0, 0.3 * np.sqrt(0.7), (4000, 1))
    rewards = 0.5 + np.array([0.0, 0.1, 0.2]) + hard + rng.normal(0, 0.3 * np.sqrt(0.3), (4000, 3))
    requests = [None] * 4000
    training = TrainingSet.from_replay(requests, ["a", "b", "c"], rewards, rewards)
    assert 0.7 == pytest.approx(shared_noise(training, LinearSettings()), abs=0.02)
    rewards[:, 1:] = np.nan
    assert 0.8 == shared_noise(training, LinearSettings(shared_noise=0.8))
