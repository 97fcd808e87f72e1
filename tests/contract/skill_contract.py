"""What every skill must hold to. A test class inherits it and says how to make the skill and a
request that it can serve. The checks themselves are shipped: `tactician skills test` runs them.
"""

import pytest

from skills.conformance import GENERAL, RANKING, RETRIEVING
from skills.skill import Skill


class SkillContract:
    """Inherit, and give the fixture `skill` and a `good_request`."""

    @pytest.fixture
    def skill(self):
        raise NotImplementedError

    def good_request(self, **changed):
        raise NotImplementedError

    def test_is_a_skill(self, skill):
        assert isinstance(skill, Skill)

    @pytest.mark.parametrize("check", GENERAL, ids=lambda check: check.__name__)
    async def test_conforms(self, skill, check):
        assert "" == await check(skill, self.good_request())


class RankingSkillContract(SkillContract):
    """A skill that orders candidates."""

    @pytest.mark.parametrize("check", RANKING, ids=lambda check: check.__name__)
    async def test_ranks(self, skill, check):
        assert "" == await check(skill, self.good_request())


class RetrievingSkillContract(SkillContract):
    """A skill that finds passages in a collection."""

    @pytest.mark.parametrize("check", RETRIEVING, ids=lambda check: check.__name__)
    async def test_retrieves(self, skill, check):
        assert "" == await check(skill, self.good_request())
