"""The life of a request: analyse, decide, execute, record. Knows nothing of Ray or HTTP."""

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from policies.analysis.profile import Profiles
from policies.drift.book import DriftState
from policies.experience.digests import Digester
from policies.experience.record import ExperienceRecord, RequestKind
from policies.types import BASELINE_VERSION, Decision, DecisionRequest, Intent, QueryFeatures
from serve_app import telemetry
from serve_app.answers.types import Answer, AnswerRequest
from serve_app.deadline import Deadline, Stopwatch
from serve_app.errors import Overloaded, RequestRejected, ServiceUnavailable
from serve_app.execution.first_look import DEPTH as FIRST_LOOK_DEPTH
from serve_app.execution.first_look import TIMEOUT_MS as FIRST_LOOK_TIMEOUT_MS
from serve_app.execution.first_look import FirstLook
from serve_app.execution.results import missing_of, status_of
from serve_app.execution.types import ExecutionRequest
from serve_app.execution.wellness import watch
from serve_app.gateway_graph import Graph
from serve_app.metrics import Publish, drift_samples, result_samples, skill_samples
from serve_app.recording import Recording
from serve_app.records import record_of
from serve_app.requests import Retrieved, RetrieveRequest
from serve_app.sessions.conversations import Conversations
from serve_app.sessions.follow_up import search
from serve_app.shadow import ShadowArms
from skills.errors import RequestInvalid, SkillError
from skills.skill import SkillRequest
from skills.stores.store import CollectionReader
from skills.types import Missing, MissingReason

log = logging.getLogger(__name__)

PART_TIMEOUT_MS = 250.0
"""Analysis and decision take 2 ms; a part that needs this long is as good as gone."""

VERSION_TIMEOUT_MS = 100.0
"""Which version is current is remembered; a request in more of a hurry than this gets an answer
that says what is missing, and not that a store is away."""

ANSWER_SHARE = 0.4
"""Of the budget of a question: what retrieval must leave for making the answer."""

WARM_UP_QUERY = "warm-up 预热"
WARM_UP_BUDGET_MS = 10_000.0

UNKNOWN_FEATURES = QueryFeatures(
    language="", num_chars=0, num_words=0, question_word="", intent=Intent.OPEN_ENDED
)
"""Stands in when the analyzer is away: it costs its part, not the answer."""


class Gateway:
    """Serves requests on a graph, which `apply` may replace at any time."""

    def __init__(
        self,
        graph: Graph,
        collections: CollectionReader,
        recording: Recording,
        digester: Digester,
        conversations: Conversations,
        *,
        max_concurrent_requests: int,
        store_query_text: bool = True,
        shadows: ShadowArms | None = None,
    ) -> None:
        self.graph = graph
        self.collections = collections
        self.recording = recording
        self.digester = digester
        self.conversations = conversations
        self._max_concurrent = max_concurrent_requests
        self._store_query_text = store_query_text
        self._shadows = shadows or ShadowArms(0, np.random.default_rng())
        self._running = 0
        self._rng = np.random.default_rng()
        self._profiles = Profiles()
        self.publish: Publish | None = None
        """Told the gateway's numbers now and then, see `serve_app.metrics`."""
        self.drift = DriftState()
        """What is known of drift, see `serve_app.drift`."""
        self.warm = False
        """Whether the warm-up is over; before it first queries may run into timeouts."""

    def apply(self, graph: Graph) -> None:
        """Serve on another graph from now on; requests under way stay on theirs."""
        self.graph = graph

    def candidates(self) -> tuple[str, ...]:
        """Plans whose required skills all run here."""
        return self.graph.candidates

    async def watch(self) -> None:
        """Look after the skills until cancelled."""
        await watch(lambda: self.graph.executor.wellness, self._a_collection, self._publish)

    def _publish(self) -> None:
        if self.publish is not None:
            report, counts = self.graph.executor.wellness.report(), self.graph.results.counts
            samples = *skill_samples(report), *result_samples(counts), *drift_samples(self.drift)
            self.publish(samples)

    async def _a_collection(self) -> str:
        try:
            infos = await self.collections.collections()
        except SkillError:  # a skill that needs no store must be able to return without it
            infos = []
        return infos[0].name if infos else "none"

    async def warm_up(self) -> None:
        """Run every plan once on every collection."""
        try:
            await self.warm_plans(self.graph, self.candidates())
        finally:
            self.warm = True

    async def warm_plans(self, graph: Graph, plans: Sequence[str]) -> None:
        """Run plans once on every collection: opens indexes and loads models before they are
        needed.
        """
        unhurried = graph.executor.unhurried(WARM_UP_BUDGET_MS)
        try:
            for info in await self.collections.collections():
                for name in plans:
                    await unhurried.execute(
                        ExecutionRequest(
                            query=WARM_UP_QUERY,
                            plan=graph.plans[name],
                            collection=info.name,
                            version=info.version,
                            top_k=1,
                            deadline=Deadline.after(WARM_UP_BUDGET_MS),
                            budget_ms=WARM_UP_BUDGET_MS,
                        )
                    )
        except SkillError as error:
            log.warning("warm-up stopped", extra={"why": str(error)})

    async def retrieve(self, request: RetrieveRequest) -> Retrieved:
        """Choose a plan, run it, record it.

        Raises:
            RequestRejected: unknown collection, plan or filter field; subject names the field.
            Overloaded: too many requests are under way.
            ServiceUnavailable: no plan can run here.
        """
        return await self._serve(request, RequestKind.RETRIEVE)

    async def answer(self, request: RetrieveRequest) -> Retrieved:
        """Retrieve, then make an answer of the passages. Raises like `retrieve`."""
        return await self._serve(request, RequestKind.ANSWER)

    async def _serve(self, request: RetrieveRequest, kind: RequestKind) -> Retrieved:
        if self._running >= self._max_concurrent:
            raise Overloaded("gateway", f"{self._running} requests are under way")
        self._running += 1
        arrived, deadline = datetime.now(UTC), Deadline.after(request.budget_ms)
        name = telemetry.SPAN_ANSWER if kind is RequestKind.ANSWER else telemetry.SPAN_RETRIEVE
        try:
            with telemetry.span(name, self._attributes(request)) as span:
                retrieved = await self._retrieve(request, arrived, deadline, kind)
                if kind is RequestKind.ANSWER:
                    retrieved = await self._answered(retrieved, request, deadline)
                span.set_attribute(telemetry.PLAN, retrieved.decision.plan)
                span.set_attribute(telemetry.POLICY_VERSION, retrieved.decision.policy_version)
                span.set_attribute(telemetry.NUM_HITS, len(retrieved.hits))
        finally:
            self._running -= 1
        beside = self._shadows.beside(retrieved, self.graph.executor, self.graph.plans)
        self.recording.record(self._record(request, retrieved, arrived, kind), beside)
        self.conversations.remember(request, retrieved)
        return retrieved

    async def _retrieve(
        self, request: RetrieveRequest, arrived: datetime, deadline: Deadline, kind: RequestKind
    ) -> Retrieved:
        graph, missing, clock = self.graph, list[Missing](), Stopwatch()
        version = await self._version(request.collection, deadline)
        features = await self._analyze(graph, request, deadline, missing)
        follows = await self.conversations.follow_up(request, features, missing)
        if follows is not None:
            request = replace(request, query=follows.query)
        clock.lap("analyze")
        looked = await self._look(graph, request, version, features, deadline)
        live = dict(graph.executor.wellness.signals())
        if looked is not None:
            seen = looked.signals()
            self._profiles.observe(request.collection, seen)
            live |= seen | self._profiles.signals(request.collection)
            clock.lap("look")
        asked = DecisionRequest(
            request.request_id,
            request.collection,
            features,
            graph.working(),
            live,
            user=self.digester.user(request.user_id, request.caller.tenant),
            session=self.digester.session(request.session_id, request.caller.tenant),
        )
        decision = await self._decide(graph, request, asked, deadline, missing)
        clock.lap("decide")
        left_ms = deadline.remaining_ms()
        if kind is RequestKind.ANSWER:
            left_ms -= ANSWER_SHARE * request.budget_ms
        executed = ExecutionRequest(
            query=request.query,
            plan=graph.plans[decision.plan],
            collection=request.collection,
            version=version,
            top_k=request.top_k,
            deadline=Deadline.after(max(left_ms, 0.0)),
            budget_ms=request.budget_ms,
            filters=request.filters,
            caller=request.caller,
            language=features.language,
            looked=looked,
        )
        decided = Retrieved(
            request_id=request.request_id,
            hits=(),
            decision=decision,
            features=features,
            live=live,
            index_version=version,
            missing=tuple(missing),
            stages=(),
            timings_ms=clock.laps_ms,
            executed=executed,
        )
        try:
            # Learning has a new version every few seconds; what a plan finds is the same.
            kept_under = str(decision.details.get(BASELINE_VERSION, decision.policy_version))
            execution = await search(graph.results, executed, kept_under, follows)
        except RequestInvalid as error:
            raise _rejected(error) from error
        except Exception:  # a bug: whoever watches an experiment must see that a plan fails
            failed = self._record(request, decided, arrived, kind)
            self.recording.record(replace(failed, status="internal"))
            raise
        clock.lap("execute")
        return replace(
            decided,
            hits=execution.hits,
            missing=(*missing, *execution.missing),
            stages=execution.stages,
            cached=execution.cached,
            session=follows,
        )

    async def _look(
        self,
        graph: Graph,
        request: RetrieveRequest,
        version: str,
        features: QueryFeatures,
        deadline: Deadline,
    ) -> FirstLook | None:
        """A first look, when one is configured and there is a plan to choose."""
        if request.plan or not graph.first_look:
            return None
        by = deadline.no_later_than(FIRST_LOOK_TIMEOUT_MS)
        asked = SkillRequest(
            query=request.query,
            collection=request.collection,
            top_k=FIRST_LOOK_DEPTH,
            budget_ms=by.remaining_ms(),
            version=version,
            filters=request.filters,
            caller=request.caller,
            language=features.language,
        )
        return await graph.results.look(asked, graph.first_look, by)

    async def _answered(
        self, retrieved: Retrieved, request: RetrieveRequest, deadline: Deadline
    ) -> Retrieved:
        """The same with an answer; without one, `missing` says why."""
        if not retrieved.hits and not any(
            missing.reason is MissingReason.NO_EVIDENCE for missing in retrieved.missing
        ):
            return _unanswered(retrieved)
        clock = Stopwatch()
        follows = retrieved.session
        question = AnswerRequest(
            query=request.query if follows is None else follows.query,
            hits=retrieved.hits,
            budget_ms=deadline.remaining_ms(),
            intent=retrieved.features.intent,
            entities=retrieved.features.entities,
        )
        answer: Answer | None = None
        missing: tuple[Missing, ...]
        try:
            answer = await self.graph.generator.call(question, deadline)
            missing = answer.missing
        except SkillError as error:
            missing = (missing_of("answer", status_of(error), error.detail),)
        clock.lap("generate")
        timings = dict(retrieved.timings_ms)
        timings["total"] += clock.laps_ms["total"]
        return replace(
            retrieved,
            answer=answer,
            missing=tuple(dict.fromkeys((*retrieved.missing, *missing))),
            timings_ms=timings | {"generate": clock.laps_ms["generate"]},
        )

    async def _version(self, collection: str, deadline: Deadline) -> str:
        try:
            async with asyncio.timeout(max(deadline.remaining_ms(), VERSION_TIMEOUT_MS) / 1000):
                return (await self.collections.info(collection)).version
        except TimeoutError as error:
            raise ServiceUnavailable("collection", "its store did not answer in time") from error
        except RequestInvalid as error:
            raise RequestRejected("collection", error.detail) from error
        except SkillError as error:
            raise ServiceUnavailable("collection", error.detail) from error

    async def _analyze(
        self, graph: Graph, request: RetrieveRequest, deadline: Deadline, missing: list[Missing]
    ) -> QueryFeatures:
        try:
            by = deadline.no_later_than(PART_TIMEOUT_MS)
            return await graph.analyzer.call(request.query, by)
        except SkillError as error:
            missing.append(missing_of("analyzer", status_of(error), error.detail))
            return replace(UNKNOWN_FEATURES, num_chars=len(request.query))

    async def _decide(
        self,
        graph: Graph,
        request: RetrieveRequest,
        asked: DecisionRequest,
        deadline: Deadline,
        missing: list[Missing],
    ) -> Decision:
        if request.plan:
            return self._insisted(graph, request.plan)
        if not asked.plans:
            raise ServiceUnavailable("plan", "no plan has all the skills that it requires")
        try:
            by = deadline.no_later_than(PART_TIMEOUT_MS)
            return await graph.orchestrator.call(asked, by)
        except SkillError as error:
            missing.append(missing_of("orchestrator", status_of(error), error.detail))
            (ruled,) = graph.fallback.choose([asked], self._rng)
            reason = f"the orchestrator gave no decision; rules stand in: {ruled.reason}"
            return replace(ruled, policy="fallback", reason=reason)

    def _insisted(self, graph: Graph, plan: str) -> Decision:
        if plan not in graph.plans:
            raise RequestRejected("plan", f"no plan {plan!r}; there are: {', '.join(graph.plans)}")
        if not graph.plans[plan].is_candidate(graph.executor.skills):
            lacking = sorted(graph.plans[plan].required - graph.executor.skills)
            raise RequestRejected("plan", f"{plan!r} needs skills that do not run: {lacking}")
        return Decision(plan, 1.0, "caller", "", "the request names the plan", mode="bypass")

    def _record(
        self, request: RetrieveRequest, retrieved: Retrieved, arrived: datetime, kind: RequestKind
    ) -> ExperienceRecord:
        record = record_of(request, retrieved, arrived, kind, self.digester)
        return record if self._store_query_text else record.without_text()

    def _attributes(self, request: RetrieveRequest) -> dict[str, telemetry.AttributeValue]:
        attributes: dict[str, telemetry.AttributeValue] = {
            telemetry.REQUEST_ID: request.request_id,
            telemetry.COLLECTION: request.collection,
        }
        if telemetry.recording():
            attributes[telemetry.CALLER] = self.digester.caller(request.caller)
        if telemetry.content_wanted():
            attributes[telemetry.QUERY_TEXT] = request.query
        return attributes


def _unanswered(retrieved: Retrieved) -> Retrieved:
    """Nothing was searched, which tells nothing about what there is."""
    reason = next((m.reason for m in retrieved.missing), MissingReason.UNAVAILABLE)
    unanswered = Missing(reason, "answer", "no skill could search for passages; ask again")
    return replace(retrieved, missing=(*retrieved.missing, unanswered))


def _rejected(error: RequestInvalid) -> RequestRejected:
    field = error.subject if error.subject.startswith("filters") else f"filters.{error.subject}"
    return RequestRejected(field, error.detail)
