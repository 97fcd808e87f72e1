"""`/v1/experiments`: look at experiments, start and stop them. For administrators."""

import asyncio
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path
from fastapi.responses import Response

from policies.experiments.experiment import Experiment
from policies.experiments.observation import ArmView
from policies.experiments.watch import Looked
from serve_app.api.authentication import require_admin
from serve_app.api.problems import CONFLICT, PROBLEMS
from serve_app.api.schemas import NO_REASON, ReasonBody, StartExperimentBody
from serve_app.api.views import json_response
from serve_app.config import TacticianConfig
from serve_app.experiments import ExperimentDesk, Trial
from serve_app.looks import RecentLooks

Name = Annotated[
    str,
    Path(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$", description="Of the experiment."),
]


def router(config: TacticianConfig) -> APIRouter:
    """The routes."""
    routes = APIRouter(
        prefix="/v1/experiments",
        tags=["experiments"],
        responses=PROBLEMS | CONFLICT,
        dependencies=[Depends(require_admin)],
    )
    desk = ExperimentDesk(config)
    looks = RecentLooks(desk)

    @routes.get("", response_model=dict[str, Any])
    async def experiments() -> Response:
        """All experiments, oldest first; at most the last one is running."""
        found = await asyncio.to_thread(desk.all)
        return json_response({"experiments": [experiment_view(each) for each in found]})

    @routes.post("", status_code=201, response_model=dict[str, Any])
    async def start(body: StartExperimentBody) -> Response:
        """Try a published version on the first stage's share of the traffic."""
        trial = Trial(body.version, body.name, body.unit, tuple(body.stages), body.min_units)
        return json_response(experiment_view(await asyncio.to_thread(desk.start, trial)), 201)

    @routes.get("/{name}", response_model=dict[str, Any])
    async def experiment(name: Name) -> Response:
        """How an experiment stands, or stood some seconds ago: arms, tests, guardrails, and what is
        decided so far. Limits of an interval that nothing is known of are null.
        """
        return json_response(looked_view(await looks.look(name)))

    @routes.post("/{name}/stop", response_model=dict[str, Any])
    async def stop(name: Name, body: ReasonBody = NO_REASON) -> Response:
        """End a running experiment: everybody gets control again within seconds."""
        return json_response(experiment_view(await asyncio.to_thread(desk.stop, name, body.reason)))

    @routes.post("/{name}/rollback", response_model=dict[str, Any])
    async def rollback(name: Name, body: ReasonBody = NO_REASON) -> Response:
        """Undo an experiment: stop it, or take back the promotion that it ended with."""
        undone = await asyncio.to_thread(desk.rollback, name, body.reason)
        return json_response(experiment_view(undone))

    return routes


def experiment_view(experiment: Experiment) -> dict[str, Any]:
    """What was set up, and how far it has come."""
    return {
        "name": experiment.name,
        "status": experiment.status,
        "treatment": experiment.treatment,
        "control": experiment.control or "rules",
        "unit": experiment.unit,
        "stages": experiment.settings.stages,
        "stage": experiment.stage + 1,
        "share": experiment.split.share,
        "min_units": experiment.settings.min_units,
        "stage_starts": experiment.stage_starts,
        "ended_at": experiment.ended_at,
        "reason": experiment.reason,
    }


def looked_view(looked: Looked) -> dict[str, Any]:
    """The same with what was seen of its arms, and what follows."""
    experiment, report = looked.experiment, looked.report
    guardrails = experiment.settings.guardrails
    return experiment_view(experiment) | {
        "arms": {"control": _arm(looked.control), "treatment": _arm(looked.treatment)},
        "sample_ratio": {
            "p_value": report.ratio_p_value,
            "as_it_should_be": report.ratio_p_value >= experiment.settings.ratio_alarm,
        },
        "difference": {"always_valid": report.reward, "welch": report.welch},
        "by_intent": {intent.value: found for intent, found in report.by_intent.items()},
        "guardrails": guardrails.model_dump()
        | {"broken": guardrails.broken(looked.control, looked.treatment)},
        "decision": {"verdict": report.verdict, "reason": report.reason, "share": report.share},
    }


def _arm(arm: ArmView) -> dict[str, Any]:
    return {
        "requests": arm.num_requests,
        "units": arm.num_units,
        "rewarded_units": arm.reward.count,
        "reward": arm.reward.mean if arm.reward.count else None,
        "p95_ms": arm.p95_ms,
        "failed_share": arm.failed.mean,
        "missing_share": arm.missing.mean,
    }
