"""OpenTelemetry: names of spans and attributes, and how a trace crosses from one part to the next.

Inside Ray Serve the tracer provider is Serve's own (`span_processors` tells it where to export
to); outside Serve
`set_up` makes one. Query and passage text never enter a span unless `TACTICIAN_TRACE_CONTENT` is
on.
"""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import cache

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import INVALID_SPAN, Span, SpanKind, Status, StatusCode
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

AttributeValue = str | int | float | bool

SPAN_RETRIEVE = "tactician.retrieve"
SPAN_ANSWER = "tactician.answer"
SPAN_CALL = "tactician.call {part}"

REQUEST_ID = "tactician.request_id"
CALLER = "tactician.caller"
"""A keyed digest of tenant, roles and clearance."""
COLLECTION = "tactician.collection"
INDEX_VERSION = "tactician.index_version"
PLAN = "tactician.plan"
POLICY_VERSION = "tactician.policy_version"
PROPENSITY = "tactician.propensity"
PART = "tactician.part"
BATCH_SIZE = "tactician.batch_size"
NUM_HITS = "tactician.hits"
MISSING = "tactician.missing"
QUERY_TEXT = "tactician.query"

_propagator = TraceContextTextMapPropagator()
_tracer = trace.get_tracer("tactician")


def export_wanted() -> bool:
    """Whether the standard OpenTelemetry variables name a receiver."""
    return bool(
        os.environ.get("OTEL_EXPORTER_OTLP_ENDPOINT")
        or os.environ.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
    )


@cache
def content_wanted() -> bool:
    """Whether an operator has allowed query text in spans; read once, like all of the
    environment.
    """
    return os.environ.get("TACTICIAN_TRACE_CONTENT", "").lower() in {"1", "true", "on"}


def span_processors() -> list[SpanProcessor]:
    """What Ray Serve asks for by `RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH`: OTLP, with a short
    delay.

    The delay is short because a killed replica loses what it has not sent.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return [BatchSpanProcessor(OTLPSpanExporter(), schedule_delay_millis=500)]


def set_up() -> None:
    """Export spans of a process outside Ray Serve, when a receiver is configured."""
    if export_wanted() and not isinstance(trace.get_tracer_provider(), TracerProvider):
        provider = TracerProvider()
        for processor in span_processors():
            provider.add_span_processor(processor)
        trace.set_tracer_provider(provider)


def serve_environment() -> dict[str, str]:
    """What the environment of Ray Serve needs for tracing: empty without a receiver.

    The environment and not `tracing_config`: with the latter the caller's `traceparent` was ignored
    (Ray 2.60).
    """
    if not export_wanted():
        return {}
    return {
        "RAY_SERVE_TRACING_EXPORTER_IMPORT_PATH": "serve_app.telemetry:span_processors",
        "RAY_SERVE_TRACING_SAMPLING_RATIO": os.environ.get("OTEL_TRACES_SAMPLER_ARG", "1.0"),
    }


def recording() -> bool:
    """Whether this process has a tracer provider at all."""
    return isinstance(trace.get_tracer_provider(), TracerProvider)


def current_traceparent() -> str:
    """The current span as a W3C `traceparent`; empty when nothing is recorded."""
    if not trace.get_current_span().get_span_context().trace_flags.sampled:
        return ""
    carrier: dict[str, str] = {}
    _propagator.inject(carrier)
    return carrier.get("traceparent", "")


@contextmanager
def span(name: str, attributes: Mapping[str, AttributeValue] | None = None) -> Iterator[Span]:
    """A span below the current one; an exception marks it as failed and goes on."""
    if not recording():
        yield INVALID_SPAN
        return
    with _tracer.start_as_current_span(name, attributes=attributes) as opened:
        yield opened


def open_remote(
    name: str, traceparent: str, attributes: Mapping[str, AttributeValue]
) -> Span | None:
    """Start a span below one of another part; the caller ends it. None when that part records
    nothing.
    """
    if not traceparent:
        return None
    parent: Context = _propagator.extract({"traceparent": traceparent}, context=Context())
    return _tracer.start_span(name, context=parent, kind=SpanKind.SERVER, attributes=attributes)


def close_remote(opened: Span | None, error: Exception | None) -> None:
    """End a span of `open_remote`, failed when there is an error."""
    if opened is None:
        return
    if error is not None:
        opened.set_status(Status(StatusCode.ERROR, type(error).__name__))
    opened.end()
