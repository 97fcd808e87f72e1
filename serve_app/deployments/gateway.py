"""The ingress deployment: HTTP in front, the gateway behind."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from serve_app.api.app import build_api
from serve_app.config import TacticianConfig
from serve_app.deployments.handles import handle_send
from serve_app.deployments.metrics import RayMetrics
from serve_app.graph import build_gateway, inline_sends, is_inline, part_names
from skills.registry import SkillRegistry
from skills.resources import Resources


@serve.ingress()
class GatewayDeployment:
    """Hosts the gateway and every part that is placed inline."""

    def __init__(
        self, config: dict[str, Any], handles: Mapping[str, "DeploymentHandle[Any]"]
    ) -> None:
        self._config = TacticianConfig.model_validate(config)
        registry = SkillRegistry.load(self._config.skill_dirs)
        resources = Resources(self._config.resources)
        inline = [
            name
            for name in part_names(self._config, registry)
            if is_inline(name, self._config, registry)
        ]
        sends = {name: handle_send(name, handle) for name, handle in handles.items()}
        sends |= inline_sends(inline, self._config, resources)
        self._gateway = build_gateway(self._config, registry, resources, sends.__getitem__)
        self._gateway.publish = RayMetrics().publish
        self._registry = registry

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Called by Serve once the constructor is done."""
        return build_api(self._gateway, self._config, self._registry)
