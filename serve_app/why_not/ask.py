"""The question as a gateway answers it."""

from policies.experience.record import ExperienceRecord
from serve_app.errors import NotFound
from serve_app.gateway import Gateway
from serve_app.why_not.investigation import Investigation
from serve_app.why_not.recorded import Recorded
from serve_app.why_not.search import Place
from serve_app.why_not.types import WhyNot
from skills.errors import RequestInvalid
from skills.stores.store import CollectionInfo


async def why_not(
    gateway: Gateway, record: ExperienceRecord, wanted: str, *, tells_forbidden: bool
) -> WhyNot:
    """Why the response to a recorded request does not hold a passage or document.

    Asks the recorded query again as the recorded caller, on the version of the request, or on the
    current one when that is gone.

    Raises:
        RequestRejected: the query was not kept.
        NotFound: its plan or its collection is gone.
    """
    recorded = Recorded.of(record)
    plan = gateway.graph.plans.get(recorded.plan)
    if plan is None:
        raise NotFound("plan", f"plan {recorded.plan!r}, which served the request, is gone")
    info = await _info(gateway, recorded)
    place = Place(gateway.graph.executor, gateway.collections, info)
    return await Investigation(place, recorded, plan, wanted).run(tells_forbidden=tells_forbidden)


async def _info(gateway: Gateway, recorded: Recorded) -> CollectionInfo:
    for version in (recorded.version, ""):
        try:
            return await gateway.collections.info(recorded.collection, version)
        except RequestInvalid as error:
            gone = error
    raise NotFound("collection", gone.detail) from gone
