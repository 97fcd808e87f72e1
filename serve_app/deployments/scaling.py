"""What is asked of Serve for a part."""

from typing import Any

from serve_app.config import Scaling
from skills.manifest import SkillManifest

HEALTH: dict[str, Any] = {"health_check_period_s": 5, "health_check_timeout_s": 10}
SHUTDOWN: dict[str, Any] = {
    "graceful_shutdown_wait_loop_s": 0.1,
    "graceful_shutdown_timeout_s": 10,
}


def skill_scaling(manifest: SkillManifest) -> Scaling:
    """The scaling that a manifest asks for."""
    asked = manifest.resources
    return Scaling(
        num_cpus=asked.num_cpus,
        num_gpus=asked.num_gpus,
        min_replicas=asked.min_replicas,
        max_replicas=asked.max_replicas,
        target_ongoing_requests=asked.target_ongoing_requests,
        max_ongoing_requests=2 * asked.target_ongoing_requests,
    )


def serve_options(scaling: Scaling) -> dict[str, Any]:
    """The options of a deployment. Serve's defaults are wrong for a service with deadlines, so all
    are set.
    """
    return {
        "ray_actor_options": {"num_cpus": scaling.num_cpus, "num_gpus": scaling.num_gpus},
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
