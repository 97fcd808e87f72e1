"""Skills that a running service takes up, each a Serve application of its own: the application that
serves requests is not touched.
"""

import asyncio
import contextlib
import hashlib
import time
from typing import Any

from ray import serve
from ray.exceptions import RayError
from ray.serve.exceptions import RayServeException
from ray.serve.handle import DeploymentHandle
from ray.serve.schema import ApplicationStatus

from serve_app.calls import Send
from serve_app.config import TacticianConfig
from serve_app.deployments.handles import as_skill_error, handle_send
from serve_app.deployments.part import PartDeployment
from serve_app.deployments.scaling import serve_options, skill_scaling
from serve_app.live import InlineHosting
from serve_app.parts import SKILL
from serve_app.service import SKILL_APPLICATIONS
from skills.errors import SkillUnavailable
from skills.manifest import SkillManifest
from skills.resources import Resources

READY_WITHIN_S = 60.0
HEALTHY_WITHIN_S = 30.0


class SkillApps:
    """Hosts skills as applications; those placed inline in this process.

    An application is named after its manifest's content: gateways that take up the same change meet
    in the same application, and a changed skill gets new replicas beside the old ones.
    """

    def __init__(self, config: TacticianConfig, resources: Resources) -> None:
        self._config = config
        self._inline = InlineHosting(resources)

    async def host(self, manifest: SkillManifest) -> "Send[Any, Any]":
        """See `Hosting.host`."""
        if self._config.inline_skills or manifest.placement == "inline":
            return await self._inline.host(manifest)
        name, app = SKILL + manifest.skill_id, _app_name(manifest)
        try:
            await asyncio.to_thread(self._deploy, manifest)
            await self._until_running(manifest.skill_id, app)
            handle: DeploymentHandle[Any] = serve.get_deployment_handle(
                name, app, _check_exists=False
            )
            async with asyncio.timeout(HEALTHY_WITHIN_S):
                await handle.check_part.remote()
        except TimeoutError as error:
            await self.retire(manifest)
            detail = f"its health check took over {HEALTHY_WITHIN_S:.0f} s"
            raise SkillUnavailable(manifest.skill_id, detail) from error
        except (RayError, RayServeException, SkillUnavailable) as error:
            await self.retire(manifest)
            raise as_skill_error(manifest.skill_id, error) from error
        return handle_send(name, handle)

    async def retire(self, manifest: SkillManifest) -> None:
        """Delete its application, if there is one."""
        with contextlib.suppress(RayServeException):
            await asyncio.to_thread(serve.delete, _app_name(manifest), _blocking=False)

    def _deploy(self, manifest: SkillManifest) -> None:
        if self._is_there(_app_name(manifest)):
            return  # another gateway was first
        name = SKILL + manifest.skill_id
        target = (
            serve.deployment(PartDeployment)
            .options(name=name, **serve_options(skill_scaling(manifest)))
            .bind(name, self._config.model_dump(mode="json"), manifest.model_dump(mode="json"))
        )
        serve.run_many(
            [serve.RunTarget(target=target, name=_app_name(manifest), route_prefix=None)],
            wait_for_applications_running=False,
        )

    @staticmethod
    def _is_there(app: str) -> bool:
        """Whether the application is there to stay; one that is being deleted is waited for."""
        until = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until:
            found = serve.status().applications.get(app)
            if found is None or found.status is not ApplicationStatus.DELETING:
                return found is not None
            time.sleep(0.1)
        return False

    @staticmethod
    async def _until_running(skill: str, app: str) -> None:
        until = time.monotonic() + READY_WITHIN_S
        while time.monotonic() < until:
            found = (await asyncio.to_thread(serve.status)).applications.get(app)
            if found is not None and found.status is ApplicationStatus.RUNNING:
                return
            if found is not None and found.status is ApplicationStatus.DEPLOY_FAILED:
                raise SkillUnavailable(skill, f"could not be deployed: {found.message}")
            await asyncio.sleep(0.1)
        detail = f"had no replica after {READY_WITHIN_S:.0f} s: the cluster may lack CPUs"
        raise SkillUnavailable(skill, detail)


def _app_name(manifest: SkillManifest) -> str:
    digest = hashlib.sha256(manifest.model_dump_json().encode()).hexdigest()[:12]
    return f"{SKILL_APPLICATIONS}{manifest.skill_id}-{digest}"
