"""The gateway's view of drift: what the recorder has noticed, for metrics and `/readyz`."""

import asyncio
import logging

from policies.drift.book import DriftBook
from policies.errors import PolicyError
from serve_app.config import TacticianConfig
from serve_app.gateway import Gateway
from serve_app.parts.orchestrator import drift_book

log = logging.getLogger(__name__)

LOOK_EVERY_S = 10.0


async def follow_drift(gateway: Gateway, config: TacticianConfig) -> None:
    """Keep a gateway informed until cancelled."""
    try:
        book = await asyncio.to_thread(drift_book, config)
    except PolicyError as error:
        log.warning("drift not followed", extra={"why": str(error)})
        return
    while True:
        await look_at_drift(gateway, book)
        await asyncio.sleep(LOOK_EVERY_S)


async def look_at_drift(gateway: Gateway, book: DriftBook) -> None:
    """Tell a gateway what is known now; what cannot be read changes nothing."""
    try:
        gateway.drift = await asyncio.to_thread(book.read)
    except PolicyError as error:
        log.warning("drift not followed", extra={"why": str(error)})
