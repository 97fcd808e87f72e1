"""Which chunker cuts which kind of document: manifests of this package, of installed plug-ins, and
of directories that the configuration names; the later one wins.
"""

from collections.abc import Iterable
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, cast

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from ingest.chunkers.chunker import Chunker
from ingest.errors import IngestRejected
from skills.errors import SkillMisconfigured
from skills.resources import load_class

CATALOG = Path(__file__).parent / "catalog"
ENTRY_POINTS = "tactician.chunkers"


class ChunkerManifest(BaseModel):
    """One chunker, as its YAML file describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    chunker_id: str = Field(pattern=r"^[a-z][a-z0-9_]{0,63}$")
    class_path: str
    """A class with a pydantic model `Config` that takes `(config)` and has `cut`."""
    description: str = Field(min_length=1)
    source_types: tuple[str, ...] = Field(min_length=1)
    """Values of `PassageMetadata.source_type` that it cuts; `*` takes what no other one does."""
    init_params: dict[str, Any] = Field(default_factory=dict)


def load_chunkers(directories: Iterable[Path] = ()) -> tuple[ChunkerManifest, ...]:
    """Read all manifests.

    Raises:
        IngestRejected: a file is wrong; names the file and the key.
    """
    places = [CATALOG, *_installed(), *directories]
    found: dict[str, ChunkerManifest] = {}
    for directory in places:
        for path in sorted(directory.glob("*.yaml")):
            manifest = _load(path)
            found.pop(manifest.chunker_id, None)
            found[manifest.chunker_id] = manifest
    return tuple(found.values())


class Chunkers:
    """Builds each chunker when the first document of its kind comes."""

    def __init__(self, manifests: Iterable[ChunkerManifest]) -> None:
        self._by_type = {t: m for m in manifests for t in m.source_types}
        self._built: dict[str, Chunker] = {}

    def of(self, source_type: str) -> Chunker:
        """The chunker of a kind of document.

        Raises:
            IngestRejected: none takes it, or its class or parameters are wrong.
        """
        manifest = self._by_type.get(source_type) or self._by_type.get("*")
        if manifest is None:
            raise IngestRejected(source_type, "no chunker takes this kind of document")
        if manifest.chunker_id not in self._built:
            self._built[manifest.chunker_id] = _build(manifest)
        return self._built[manifest.chunker_id]


def _build(manifest: ChunkerManifest) -> Chunker:
    try:
        cls: Any = load_class(manifest.class_path)
        chunker = cls(cls.Config.model_validate(manifest.init_params))
    except (SkillMisconfigured, ValidationError) as error:
        raise IngestRejected(f"chunker {manifest.chunker_id!r}", str(error)) from error
    if not hasattr(chunker, "cut"):
        raise IngestRejected(f"chunker {manifest.chunker_id!r}", "has no method `cut`")
    return cast("Chunker", chunker)


def _load(path: Path) -> ChunkerManifest:
    try:
        return ChunkerManifest.model_validate(yaml.safe_load(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise IngestRejected(str(path), f"cannot be read as YAML: {error}") from error
    except ValidationError as error:
        problems = "; ".join(f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise IngestRejected(str(path), problems) from error


def _installed() -> list[Path]:
    """Directories of installed packages: an entry point names a module beside its YAML files."""
    return [Path(str(p.load().__file__)).parent for p in entry_points(group=ENTRY_POINTS)]
