"""What every skill must hold to. A test class inherits it and says how to make the skill and a
request that it can serve.
"""

import pytest

from skills.skill import Skill, SkillResult


class SkillContract:
    """Inherit, and give the fixture `skill` and a `good_request`."""

    @pytest.fixture
    def skill(self):
        raise NotImplementedError

    def good_request(self, **changed):
        raise NotImplementedError

    def test_is_a_skill(self, skill):
        assert isinstance(skill, Skill)

    async def test_answers_every_request_in_its_place(self, skill):
        results = await skill.run([self.good_request() for _ in range(5)])
        assert [SkillResult] * 5 == [type(result) for result in results]
        assert [None] * 5 == [result.error for result in results]

    async def test_no_requests_no_results(self, skill):
        assert [] == await skill.run([])

    async def test_a_batch_answers_like_single_requests(self, skill):
        together = await skill.run([self.good_request(), self.good_request()])
        alone = await skill.run([self.good_request()])
        assert [alone[0].hits] * 2 == [result.hits for result in together]

    async def test_is_healthy(self, skill):
        await skill.check_health()


class RetrievingSkillContract(SkillContract):
    """A skill that finds passages in a collection."""

    async def test_hits_are_best_first_and_say_where_they_come_from(self, skill):
        (result,) = await skill.run([self.good_request()])
        assert result.hits
        scores = [hit.score for hit in result.hits]
        assert scores == sorted(scores, reverse=True)
        seen = [(p.rank, p.score, p.skill) for hit in result.hits for p in hit.provenance]
        name = seen[0][2]
        assert [(i, s, name) for i, s in enumerate(scores, 1)] == seen

    async def test_gives_no_more_hits_than_asked_for(self, skill):
        (result,) = await skill.run([self.good_request(top_k=1)])
        assert 1 == len(result.hits)

    async def test_says_where_its_time_went(self, skill):
        (result,) = await skill.run([self.good_request()])
        assert result.spent_ms
        assert all(spent >= 0 for spent in result.spent_ms.values())

    @pytest.mark.parametrize(
        ("changed", "error", "subject"),
        [
            ({"collection": "nobody"}, "RequestInvalid", "collection"),
            ({"version": "v000099-00000000"}, "RequestInvalid", "collection"),
            ({"params": {"no_such_param": 1}}, "RequestInvalid", "params"),
            ({"budget_ms": 0}, "SkillTimeout", None),
        ],
    )
    async def test_a_bad_request_fails_alone(self, skill, changed, error, subject):
        first, wrong, last = await skill.run(
            [self.good_request(), self.good_request(**changed), self.good_request()]
        )
        assert error == type(wrong.error).__name__
        assert subject in (None, wrong.error.subject)
        assert first.hits
        assert first.hits == last.hits
