"""The ingress deployment: HTTP in front, the gateway behind."""

from collections.abc import Mapping
from typing import Any

from fastapi import FastAPI
from ray import serve
from ray.serve.handle import DeploymentHandle

from serve_app.api.app import build_api
from serve_app.catalogue import configured
from serve_app.config import TacticianConfig
from serve_app.deployments.handles import handle_send
from serve_app.deployments.heap import settle
from serve_app.deployments.metrics import RayMetrics
from serve_app.deployments.skill_apps import SkillApps
from serve_app.graph import build_gateway, inline_sends, is_inline, part_names
from serve_app.live import LiveCatalogue
from skills.resources import Resources


@serve.ingress()
class GatewayDeployment:
    """Hosts the gateway and every part that is placed inline."""

    def __init__(
        self, config: dict[str, Any], handles: Mapping[str, "DeploymentHandle[Any]"]
    ) -> None:
        self._config = TacticianConfig.model_validate(config)
        catalogue = configured(self._config)
        resources = Resources(self._config.resources)
        inline = [
            name
            for name in part_names(catalogue)
            if is_inline(name, self._config, catalogue.registry)
        ]
        sends = {name: handle_send(name, handle) for name, handle in handles.items()}
        sends |= inline_sends(inline, self._config, catalogue.registry, resources)
        self._gateway = build_gateway(self._config, catalogue, resources, sends.__getitem__)
        self._gateway.publish = RayMetrics().publish
        self._live = LiveCatalogue(self._config, self._gateway, SkillApps(self._config, resources))

    def __serve_build_asgi_app__(self) -> FastAPI:
        """Called by Serve once the constructor is done."""
        api = build_api(self._gateway, self._config, self._live)
        settle()
        return api
