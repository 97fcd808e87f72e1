"""The configuration tree. Defaults live here and nowhere else; unknown keys are errors.

Three layers: these defaults, a YAML file (`TACTICIAN_CONFIG` or `--config`), and the environment
for addresses and
secrets only (`${NAME:-default}` inside the file, and the few variables of `load_config`).
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import platformdirs
import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from policies.drift.settings import DriftSettings
from policies.learning.settings import OnlineSettings
from policies.modes import Mode
from policies.plan import EQUAL_ONLY, Deduplicate
from serve_app.callers import CallerSettings
from serve_app.execution.settings import BreakerSettings, CacheSettings
from serve_app.sessions.types import SessionSettings
from skills.errors import SkillMisconfigured
from skills.manifest import substitute
from skills.resources import Component, ResourceSettings

Placement = Literal["deployment", "inline"]


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Scaling(_Settings):
    """Replicas of one part and how many of them there are."""

    placement: Placement = "deployment"
    """`inline` puts the part into the gateway process: small machines, tests. Callers cannot
    tell."""
    num_cpus: float = Field(default=0.1, ge=0)
    """Logical CPUs a replica books; bookkeeping only, it does not limit what a replica uses."""
    num_gpus: float = Field(default=0, ge=0)
    """GPUs a replica books; Ray shows it these and no others."""
    min_replicas: int = Field(default=1, ge=1)
    max_replicas: int = Field(default=1, ge=1)
    target_ongoing_requests: int = Field(default=16, ge=1)
    max_ongoing_requests: int = Field(default=64, ge=1)
    upscale_delay_s: float = Field(default=5, ge=0)
    downscale_delay_s: float = Field(default=120, ge=0)


class Parts(_Settings):
    """Every part of the graph that is no skill; skills say the same in their manifests."""

    gateway: Scaling = Scaling(target_ongoing_requests=64, max_ongoing_requests=256)
    analyzer: Scaling = Scaling()
    orchestrator: Scaling = Scaling()
    generator: Scaling = Scaling(target_ongoing_requests=4, max_ongoing_requests=32)
    recorder: Scaling = Scaling()


class HttpSettings(_Settings):
    """Where the service listens."""

    host: str = "127.0.0.1"
    port: int = Field(default=8000, ge=1, le=65535)
    haproxy: bool = True
    """Ray Serve's HAProxy ingress: 0.6 ms instead of 4 ms a request (Ray 2.60, 2 cores). Linux
    only."""
    throughput_optimized: bool = True
    """Direct ingress and gRPC between replicas instead of the object store."""


class Limits(_Settings):
    """What one request, and all of them together, may ask for."""

    default_budget_ms: float = Field(default=2000, gt=0)
    max_budget_ms: float = Field(default=60_000, gt=0)
    default_top_k: int = Field(default=10, ge=1)
    max_top_k: int = Field(default=100, ge=1)
    max_query_chars: int = Field(default=8000, ge=1)
    max_body_bytes: int = Field(default=2_097_152, ge=1024)
    max_concurrent_requests: int = Field(default=256, ge=1)
    """Of one gateway replica; one more is answered with 429."""


class ExperienceSettings(_Settings):
    """Where decisions and outcomes are kept."""

    url: str = ""
    """SQLAlchemy URL; empty means SQLite under `home`."""
    store_query_text: bool = True
    max_waiting: int = Field(default=10_000, ge=1)
    """Records that a gateway holds while the recorder is away; one more is given up and counted
    (`records` of `/readyz`). The recorder holds as many for the database."""


class PolicySettings(_Settings):
    """Who decides."""

    mode: Mode = Mode.APPLY
    """What a learned policy may do: `observe` (decide and be logged), `apply`, `bypass`."""
    exploration: float = Field(default=0, ge=0, le=0.5)
    """Share of decisions that the rules leave to chance, so that there is something to learn
    from."""
    registry: str = ""
    """Where policies and experiments are kept: a directory, or `s3://BUCKET/PREFIX`; empty means
    below `home`."""
    shadow_share: float = Field(default=0, ge=0, le=0.1)
    """Share of decided requests for which a plan that was not chosen runs too, after the
    response."""
    first_look: tuple[str, ...] = ()
    """Skills that search before the plan is chosen (`[keyword]`): what they find becomes features
    of the policy, and the plan takes it over."""
    drift: DriftSettings = DriftSettings()
    """When a change of queries, rewards or skills is one, and how much is explored after it."""
    online: OnlineSettings = OnlineSettings()
    """Whether what serves learns from rewards between trainings, and what that may cost."""


class IngestSettings(_Settings):
    """What ingestion writes."""

    stores: tuple[str, ...] = Field(default=("default",), min_length=1)
    """Names of the stores; the first one says which version is current, and a version is current
    only when all have it."""
    encoders: dict[str, str] = Field(default_factory=lambda: {"dense": "default"})
    """Vector name to the name of the encoder that makes it; all in one pass."""
    token_encoders: dict[str, str] = Field(default_factory=dict)
    """The same for vectors of every token: with `{late: default}` late interaction reads them
    instead of encoding its candidates, for 768 bytes a token (384 dimensions)."""


class TacticianConfig(_Settings):
    """Everything a running service is made of; the argument of the application builder."""

    home: Path = Field(default_factory=lambda: Path(platformdirs.user_data_dir("tactician")))
    cache: Path = Field(default_factory=lambda: Path(platformdirs.user_cache_dir("tactician")))
    http: HttpSettings = HttpSettings()
    limits: Limits = Limits()
    callers: CallerSettings = CallerSettings()
    parts: Parts = Parts()
    breakers: BreakerSettings = BreakerSettings()
    deduplication: Deduplicate = EQUAL_ONLY
    """Of plans that do not say it themselves."""
    results: CacheSettings = CacheSettings()
    """Results that are given again; not to be confused with `cache`, which holds models."""
    sessions: SessionSettings = SessionSettings()
    skill_dirs: tuple[Path, ...] = ()
    plan_dirs: tuple[Path, ...] = ()
    rules_file: Path | None = None
    """Rules that replace the shipped ones."""
    skills: tuple[str, ...] = ()
    """Skills to run; empty means every known one that can be built here."""
    inline_skills: bool = False
    """Place every skill in the gateway, whatever its manifest says."""
    stores: dict[str, Component] = Field(default_factory=dict)
    encoders: dict[str, Component] = Field(default_factory=dict)
    """Named stores and encoders; they add to or replace the embedded `default` ones."""
    generator: Component = Component(class_path="serve_app.answers.extractive.ExtractiveReader")
    experience: ExperienceSettings = ExperienceSettings()
    policy: PolicySettings = PolicySettings()
    ingest: IngestSettings = IngestSettings()
    seed: int | None = None
    """Of the policy's random generator; None seeds from the system."""

    @property
    def resources(self) -> ResourceSettings:
        """What skills, readers and ingestion need to build stores and encoders."""
        base = ResourceSettings(home=self.home, cache=self.cache)
        return base.model_copy(
            update={
                "stores": base.stores | self.stores,
                "encoders": base.encoders | self.encoders,
            }
        )

    @property
    def tagger_file(self) -> Path:
        """Where `tactician train tagger` puts what tells domain tags."""
        return self.home / "tagger.json"

    @property
    def applied_dir(self) -> Path:
        """Where `tactician skills apply` puts skills and plans that a running service takes up."""
        return self.home / "applied"

    @property
    def experience_url(self) -> str:
        """Where decisions are kept, resolved."""
        return self.experience.url or f"sqlite:///{self.home / 'experience.db'}"


def load_config(
    path: Path | None = None, environment: Mapping[str, str] | None = None, **overrides: Any
) -> TacticianConfig:
    """Read the configuration file, if any, and the environment.

    Args:
        path: a YAML file; else the one that `TACTICIAN_CONFIG` names; else none.
        environment: by default the process's. `TACTICIAN_HOME`, `TACTICIAN_CACHE`,
            `TACTICIAN_EXPERIENCE_URL` and `TACTICIAN_SESSIONS_URL` win over the file.
        overrides: top-level fields that win over both.

    Raises:
        SkillMisconfigured: names the file and the field.
    """
    environment = os.environ if environment is None else environment
    named = path or (
        Path(environment["TACTICIAN_CONFIG"]) if "TACTICIAN_CONFIG" in environment else None
    )
    values = _read(named, environment) if named is not None else {}
    for variable, field in (("TACTICIAN_HOME", "home"), ("TACTICIAN_CACHE", "cache")):
        if variable in environment:
            values[field] = environment[variable]
    for variable, field in (
        ("TACTICIAN_EXPERIENCE_URL", "experience"),
        ("TACTICIAN_SESSIONS_URL", "sessions"),
    ):
        if variable in environment:
            values[field] = dict(values.get(field) or {}) | {"url": environment[variable]}
    values |= {name: value for name, value in overrides.items() if value is not None}
    try:
        return TacticianConfig.model_validate(values)
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise SkillMisconfigured(str(named or "configuration"), problems) from error


def _read(path: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise SkillMisconfigured(str(path), f"cannot be read as YAML: {error}") from error
    if values is None:
        return {}
    if not isinstance(values, dict):
        raise SkillMisconfigured(str(path), "is not a mapping of keys to values")
    return dict(substitute(values, environment, str(path)))
