"""The stores and encoders that skills share inside one process, built when first asked for.

Also the one place that turns `class_path` + `init_params` into an object: skills, stores and
encoders are all
described that way, and all are built as `cls(cls.Config(**init_params), resources)`.
"""

import importlib
import threading
from pathlib import Path
from typing import Any, Protocol, cast

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from skills.encoders.encoder import TextEncoder, TokenEncoder
from skills.errors import SkillMisconfigured
from skills.stores.store import KeywordStore, VectorStore


class Component(BaseModel):
    """How to build one object."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    class_path: str
    """`package.module.Class`; the class has a pydantic model `Config` and takes `(config,
    resources)`."""
    init_params: dict[str, Any] = Field(default_factory=dict)


def _embedded_stores() -> dict[str, Component]:
    return {"default": Component(class_path="skills.stores.qdrant_edge.QdrantEdgeStore")}


def _embedded_encoders() -> dict[str, Component]:
    return {"default": Component(class_path="skills.encoders.e5.E5Encoder")}


class ResourceSettings(BaseModel):
    """Which stores and encoders there are, by the names that manifests use."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    home: Path
    """Where embedded stores keep their data."""
    cache: Path
    """Where models that are built on this machine are kept; may be deleted at any time."""
    stores: dict[str, Component] = Field(default_factory=_embedded_stores)
    encoders: dict[str, Component] = Field(default_factory=_embedded_encoders)


class Configurable(Protocol):
    """A class that `build` can build."""

    Config: type[BaseModel]

    def __init__(self, config: Any, resources: "Resources") -> None: ...


def load_class(class_path: str) -> type[Configurable]:
    """Import a class that can be built from a `Component`.

    Raises:
        SkillMisconfigured: no such module or class, or a class without `Config`; the detail keeps
        the import error.
    """
    module_name, _, class_name = class_path.rpartition(".")
    try:
        cls = getattr(importlib.import_module(module_name), class_name)
    except (ImportError, AttributeError, ValueError) as error:
        raise SkillMisconfigured(class_path, f"cannot be imported: {error}") from error
    if not (isinstance(cls, type) and issubclass(getattr(cls, "Config", object), BaseModel)):
        raise SkillMisconfigured(class_path, "is no class with a pydantic model named `Config`")
    return cast("type[Configurable]", cls)


def build(component: Component, resources: "Resources") -> object:
    """Build the object that a component describes.

    Raises:
        SkillMisconfigured: the class cannot be imported, or `init_params` do not fit its `Config`.
    """
    cls, config = configured(component)
    return cls(config, resources)


def configured(component: Component) -> tuple[type[Configurable], BaseModel]:
    """The class of a component and its checked parameters. Raises like `build`."""
    cls = load_class(component.class_path)
    try:
        return cls, cls.Config.model_validate(component.init_params)
    except ValidationError as error:
        problems = "; ".join(
            f"init_params.{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()
        )
        raise SkillMisconfigured(component.class_path, problems) from error


class Resources:
    """Builds each named store and encoder once and hands out the same one afterwards."""

    def __init__(self, settings: ResourceSettings) -> None:
        self.settings = settings
        self._built: dict[tuple[str, str], object] = {}
        self._lock = threading.RLock()

    def store(self, name: str = "default") -> object:
        """The store of this name; which protocols it has is up to its class."""
        return self._get("store", name, self.settings.stores)

    def vector_store(self, name: str = "default") -> VectorStore:
        """The store of this name, when it finds vectors."""
        return cast("VectorStore", self._having("nearest", self.store(name), name))

    def keyword_store(self, name: str = "default") -> KeywordStore:
        """The store of this name, when it matches words, or the one beside it that does."""
        store = self.store(name)
        return cast("KeywordStore", self._having("match", getattr(store, "words", store), name))

    def encoder(self, name: str = "default") -> TextEncoder:
        """The encoder of this name."""
        encoder = self._get("encoder", name, self.settings.encoders)
        return cast("TextEncoder", self._having("encode", encoder, name))

    def token_encoder(self, name: str = "default") -> TokenEncoder:
        """The encoder of this name, when it has token vectors."""
        encoder = self._get("encoder", name, self.settings.encoders)
        return cast("TokenEncoder", self._having("encode_tokens", encoder, name))

    def _get(self, kind: str, name: str, known: dict[str, Component]) -> object:
        with self._lock:
            if (kind, name) not in self._built:
                if name not in known:
                    there = ", ".join(sorted(known)) or "none"
                    raise SkillMisconfigured(
                        f"{kind} {name!r}", f"is not configured; there are: {there}"
                    )
                self._built[kind, name] = build(known[name], self)
            return self._built[kind, name]

    @staticmethod
    def _having(verb: str, thing: object, name: str) -> object:
        if not hasattr(thing, verb):
            raise SkillMisconfigured(name, f"{type(thing).__name__} cannot `{verb}`")
        return thing
