"""The Serve application: `build` is the import path of a Serve configuration file."""

from typing import Any

from ray import serve
from ray.serve import Application

from serve_app.catalogue import configured
from serve_app.config import Scaling, TacticianConfig
from serve_app.deployments.gateway import GatewayDeployment
from serve_app.deployments.part import PartDeployment
from serve_app.deployments.scaling import serve_options, skill_scaling
from serve_app.graph import is_inline, part_names
from serve_app.parts import SKILL
from skills.manifest import SkillManifest


def build(args: TacticianConfig) -> Application:
    """The application of a configuration: the gateway, and a deployment for every part that is not
    inline. Skills that were applied to the home later are applications of their own
    (`serve_app.deployments.skill_apps`), which the gateway starts.
    """
    config = args.model_dump(mode="json")
    catalogue = configured(args)
    handles = {}
    for name in part_names(catalogue):
        if is_inline(name, args, catalogue.registry):
            continue
        skill = catalogue.registry[name.removeprefix(SKILL)] if name.startswith(SKILL) else None
        handles[name] = (
            serve.deployment(PartDeployment)
            .options(name=name, **_options(name, args, skill))
            .bind(name, config, skill.model_dump(mode="json") if skill is not None else None)
        )
    gateway = serve.deployment(GatewayDeployment).options(
        name="gateway", **serve_options(args.parts.gateway)
    )
    return gateway.bind(config, handles)


def _options(name: str, config: TacticianConfig, skill: SkillManifest | None) -> dict[str, Any]:
    if skill is not None:
        return serve_options(skill_scaling(skill))
    scaling: Scaling = getattr(config.parts, name)
    return serve_options(scaling)
