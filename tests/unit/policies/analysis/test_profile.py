import pytest

from policies.analysis.profile import Profiles


def test_means_of_a_collection_are_told_once_there_are_enough():
    profiles = Profiles()
    for number in range(20):
        assert {} == profiles.signals("a")
        profiles.observe("a", {"probe.keyword.siblings": float(number), "probe.keyword.top": 3.0})
    assert {"profile.keyword.siblings": pytest.approx(9.5)} == profiles.signals("a")
    assert {} == profiles.signals("b")


def test_a_feature_that_appears_late_is_averaged_by_its_own_looks():
    profiles = Profiles()
    for _ in range(500):
        profiles.observe("a", {"probe.keyword.near": 0.5})
    for number in range(20):
        assert "profile.dense.near" not in profiles.signals("a")
        profiles.observe("a", {"probe.keyword.near": 0.5, "probe.dense.near": float(number)})
    assert {"profile.keyword.near": 0.5, "profile.dense.near": pytest.approx(9.5)} == (
        profiles.signals("a")
    )


def test_a_collection_that_changes_is_followed():
    profiles = Profiles()
    for value in [0.0] * 3000 + [1.0] * 3000:
        profiles.observe("a", {"probe.dense.pull": value})
    assert profiles.signals("a")["profile.dense.pull"] > 0.9
