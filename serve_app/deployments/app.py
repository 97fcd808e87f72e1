"""The Serve application: `build` is the import path of a Serve configuration file."""

from typing import Any

from ray import serve
from ray.serve import Application

from serve_app.config import Scaling, TacticianConfig
from serve_app.deployments.gateway import GatewayDeployment
from serve_app.deployments.part import PartDeployment
from serve_app.graph import is_inline, part_names
from serve_app.parts import SKILL
from skills.manifest import SkillManifest
from skills.registry import SkillRegistry

HEALTH: dict[str, Any] = {"health_check_period_s": 5, "health_check_timeout_s": 10}
SHUTDOWN: dict[str, Any] = {
    "graceful_shutdown_wait_loop_s": 0.1,
    "graceful_shutdown_timeout_s": 10,
}


def build(args: TacticianConfig) -> Application:
    """The application of a configuration: the gateway, and a deployment for every part that is not
    inline.
    """
    config = args.model_dump(mode="json")
    registry = SkillRegistry.load(args.skill_dirs)
    handles = {
        name: serve.deployment(PartDeployment)
        .options(name=name, **_options(name, args, registry))
        .bind(name, config)
        for name in part_names(args, registry)
        if not is_inline(name, args, registry)
    }
    gateway = serve.deployment(GatewayDeployment).options(
        name="gateway", **_scaled(args.parts.gateway)
    )
    return gateway.bind(config, handles)


def _options(name: str, config: TacticianConfig, registry: SkillRegistry) -> dict[str, Any]:
    if name.startswith(SKILL):
        return _scaled(_skill_scaling(registry[name.removeprefix(SKILL)]))
    scaling: Scaling = getattr(config.parts, name)
    return _scaled(scaling)


def _skill_scaling(manifest: SkillManifest) -> Scaling:
    asked = manifest.resources
    return Scaling(
        num_cpus=asked.num_cpus,
        min_replicas=asked.min_replicas,
        max_replicas=asked.max_replicas,
        target_ongoing_requests=asked.target_ongoing_requests,
        max_ongoing_requests=2 * asked.target_ongoing_requests,
    )


def _scaled(scaling: Scaling) -> dict[str, Any]:
    """Serve's options. Its own defaults are wrong for a service with deadlines, so all are set."""
    return {
        "ray_actor_options": {"num_cpus": scaling.num_cpus},
        "max_ongoing_requests": scaling.max_ongoing_requests,
        "max_queued_requests": 4 * scaling.max_ongoing_requests,
        "autoscaling_config": {
            "min_replicas": scaling.min_replicas,
            "max_replicas": scaling.max_replicas,
            "target_ongoing_requests": scaling.target_ongoing_requests,
            "upscale_delay_s": scaling.upscale_delay_s,
            "downscale_delay_s": scaling.downscale_delay_s,
            "look_back_period_s": 20,  # replicas push their load every 10 s
        },
        # New replicas start before old ones stop: with one replica the default is an outage.
        "max_surge_percent": 100,
        # Every request is in the record and the trace; a third line of it costs 3 % of a core.
        "logging_config": {"enable_access_log": False},
        **HEALTH,
        **SHUTDOWN,
    }
