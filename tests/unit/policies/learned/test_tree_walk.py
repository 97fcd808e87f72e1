import numpy as np
import pytest

from policies.learned.tree_walk import TreeWalk

xgboost = pytest.importorskip("xgboost")


def booster(depth, rounds, *, noise=0.1, columns=12):
    rng = np.random.default_rng(depth + rounds)
    x = rng.normal(size=(400, columns)).astype("f4")
    y = np.where(x[:, 0] > 0, x[:, 1], -x[:, 2]) + noise * rng.normal(size=400)
    data = xgboost.DMatrix(x, label=y, nthread=1)
    settings = {"max_depth": depth, "eta": 0.1, "base_score": 0.0, "nthread": 1}
    return xgboost.train(settings, data, num_boost_round=rounds), rng


@pytest.mark.parametrize(("depth", "rounds"), [(1, 1), (3, 40), (7, 15)])
def test_a_walk_says_what_xgboost_says(depth, rounds):
    trained, rng = booster(depth, rounds)
    walk = TreeWalk(bytes(trained.save_raw("json")))
    rows = rng.normal(size=(100, 12)).astype("f4")
    rows[:30, 3:] = 0
    assert walk.output(rows) == pytest.approx(trained.inplace_predict(rows), abs=1e-5)
    data = xgboost.DMatrix(rows, nthread=1)
    told = trained.predict(data, pred_contribs=True, approx_contribs=True)[:, :-1]
    walked = np.stack([walk.contributions(row) for row in rows])
    assert walked == pytest.approx(told, abs=1e-5)


def test_trees_that_learnt_nothing_say_nothing_of_a_row():
    rng = np.random.default_rng(0)
    data = xgboost.DMatrix(rng.normal(size=(50, 4)), label=np.zeros(50), nthread=1)
    flat = xgboost.train({"base_score": 0.0, "nthread": 1}, data, num_boost_round=3)
    walk = TreeWalk(bytes(flat.save_raw("json")))
    rows = rng.normal(size=(5, 4)).astype("f4")
    assert np.zeros(5) == pytest.approx(walk.output(rows))
    assert np.zeros(4) == pytest.approx(walk.contributions(rows[0]))
