"""What the options before the command say, for every command."""

from dataclasses import dataclass
from typing import Annotated

import typer

from serve_app.client import TacticianClient
from serve_app.config import TacticianConfig
from serve_app.running_service import running_service
from serve_app.service import url_of

CollectionOption = Annotated[str, typer.Option("--collection", "-c", help="Collection name.")]


@dataclass(frozen=True, slots=True)
class Settings:
    """The configuration, and the service that was named, if any."""

    config: TacticianConfig
    url: str = ""
    api_key: str = ""

    def client(self) -> TacticianClient:
        """A client of the named service, or of the one that runs on this home."""
        running = running_service(self.config.home)
        url = self.url or (running.url if running else url_of(self.config))
        return TacticianClient(url, api_key=self.api_key)


def settings_of(context: typer.Context) -> Settings:
    """What `tactician.main` has put there."""
    settings = context.find_object(Settings)
    if settings is None:
        raise RuntimeError("the command was called without the tactician application")
    return settings
