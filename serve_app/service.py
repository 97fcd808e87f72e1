"""Starts the graph on a local Ray cluster (or the one that `RAY_ADDRESS` names) and stops it again.

The switches of Ray Serve are read when Ray is imported, in every process: `prepare_environment`
must run first, so
Ray is imported inside the functions here.
"""

import contextlib
import logging
import math
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
from pathlib import Path

import httpx

from serve_app import telemetry
from serve_app.config import Scaling, TacticianConfig
from serve_app.errors import ServiceUnavailable
from serve_app.running_service import HomeClaim, claimant

APPLICATION = "tactician"
SKILL_APPLICATIONS = "tactician-skill."
"""Prefix of the applications of skills that were applied while the service ran."""
READY_TIMEOUT_S = 180.0
OBJECT_STORE_BYTES = 80_000_000
"""Ray's minimum: results travel by value, only ingestion uses the object store."""


def prepare_environment(config: TacticianConfig) -> None:
    """Set the switches of Ray and Ray Serve, unless the environment has them already."""
    on = {True: "1", False: "0"}
    haproxy = config.http.haproxy and sys.platform == "linux"
    proxy_files = _proxy_files()
    wanted = {
        "RAY_USAGE_STATS_ENABLED": "0",
        # Ray runs its workers at niceness 15: any other program on the machine would come first.
        "RAY_worker_niceness": "0",
        "RAY_SERVE_ENABLE_HA_PROXY": on[haproxy],
        "RAY_SERVE_THROUGHPUT_OPTIMIZED": on[config.http.throughput_optimized],
        # Behind these switches Serve logs to files only; an operator looks at the console first.
        "RAY_SERVE_LOG_TO_STDERR": "1",
        "RAY_SERVE_HAPROXY_NBTHREAD": "1",
        "RAY_SERVE_HAPROXY_METRICS_PORT": str(free_port()),
        "RAY_SERVE_HAPROXY_STATS_PORT": str(free_port()),
        # Its files would else be the same for every service of the machine.
        "RAY_SERVE_HAPROXY_CONFIG_FILE_LOC": str(proxy_files / "haproxy.cfg"),
        "RAY_SERVE_HAPROXY_SOCKET_PATH": str(proxy_files / "admin.sock"),
        "RAY_SERVE_HAPROXY_SERVER_STATE_BASE": str(proxy_files),
        "RAY_SERVE_HAPROXY_SERVER_STATE_FILE": str(proxy_files / "server-state"),
        # A driver without an event loop cannot use handles when the router shares the main loop.
        "RAY_SERVE_RUN_ROUTER_IN_SEPARATE_LOOP": "0",
        "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
        **telemetry.serve_environment(),
    }
    for name, value in wanted.items():
        os.environ.setdefault(name, value)


def _proxy_files() -> Path:
    """Where this process's HAProxy keeps its files; short, for a socket path has at most 107
    bytes.
    """
    return Path(tempfile.gettempdir()) / f"tactician-{os.getpid()}"


def free_port() -> int:
    """A TCP port that nobody listens on right now."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def url_of(config: TacticianConfig) -> str:
    """Where a client on this machine reaches the service."""
    host = "127.0.0.1" if config.http.host in {"0.0.0.0", "::"} else config.http.host  # noqa: S104
    return f"http://{host}:{config.http.port}"


def port_is_free(host: str, port: int) -> bool:
    """Whether the service could listen there."""
    with socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, port))
        except OSError:
            return False
    return True


class Service:
    """A graph that this process has started."""

    def __init__(self, config: TacticianConfig) -> None:
        self.config = config
        self.url = url_of(config)
        self._claim: HomeClaim | None = None
        self._deployed = False

    def start(self) -> None:
        """Start the cluster and the application, and wait until queries can be answered.

        Raises:
            ServiceUnavailable: another service runs on this home, the port is taken, or it is not
            ready in time.
        """
        self._claim = HomeClaim.take(self.config.home)
        if not port_is_free(self.config.http.host, self.config.http.port):
            detail = "the port is taken by another program; choose one with --port"
            raise ServiceUnavailable(f"port {self.config.http.port}", detail)
        prepare_environment(self.config)
        self._deploy()
        wait_until_ready(self.url, READY_TIMEOUT_S)
        self._claim.write_down(self.url, os.environ.get("TACTICIAN_LOG", ""))

    def wait(self) -> None:
        """Return at SIGINT or SIGTERM."""
        stop = threading.Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: stop.set())
        while not stop.wait(0.5):
            pass

    def stop(self) -> None:
        """Stop the application and the cluster that `start` has started; nothing when `start` was
        refused because another service runs on this home.
        """
        if self._claim is None:
            return
        try:
            self._leave_cluster()
        finally:
            shutil.rmtree(_proxy_files(), ignore_errors=True)
            self._claim.release()
            self._claim = None

    def _leave_cluster(self) -> None:
        """A cluster of our own ends with its driver; on one that `RAY_ADDRESS` names, the
        application would stay.
        """
        import ray
        from ray import serve

        if not ray.is_initialized():
            return
        try:
            if self._deployed and os.environ.get("RAY_ADDRESS"):
                for name in serve.status().applications:
                    if name == APPLICATION or name.startswith(SKILL_APPLICATIONS):
                        serve.delete(name)
        finally:
            ray.shutdown()

    def _deploy(self) -> None:
        import ray
        from ray import serve

        from serve_app.deployments.app import build

        logging.getLogger("ray.serve").setLevel(logging.WARNING)
        connect: dict[str, object] = {"log_to_driver": False, "logging_level": logging.WARNING}
        if not os.environ.get("RAY_ADDRESS"):
            connect |= {
                "num_cpus": _logical_cpus(self.config),
                "include_dashboard": False,
                "object_store_memory": OBJECT_STORE_BYTES,
            }
        if not ray.is_initialized():
            ray.init(**connect)
        serve.start(
            http_options={"host": self.config.http.host, "port": self.config.http.port},
            proxy_location="HeadOnly",
        )
        self._deployed = True
        serve.run(build(self.config), name=APPLICATION, route_prefix="/")


def wait_until_ready(url: str, timeout_s: float) -> None:
    """Poll `/readyz`.

    Raises:
        ServiceUnavailable: not ready in time; the detail has the reasons it gave last.
    """
    until = time.monotonic() + timeout_s
    last = "no answer"
    while time.monotonic() < until:
        with contextlib.suppress(httpx.HTTPError, ValueError):
            answer = httpx.get(f"{url}/readyz", timeout=5)
            if answer.status_code == 200:
                return
            last = answer.text
        time.sleep(0.1)
    raise ServiceUnavailable(url, f"not ready after {timeout_s:.0f} s: {last}")


def stop_running(config: TacticianConfig, timeout_s: float = 60.0) -> bool:
    """Stop the service that runs on this home, or is being started. False when there was none.

    Raises:
        ServiceUnavailable: it is still there after `timeout_s`.
    """
    pid = claimant(config.home)
    if pid is None:
        return False
    os.kill(pid, signal.SIGTERM)
    until = time.monotonic() + timeout_s
    while claimant(config.home) == pid:
        if time.monotonic() > until:
            detail = f"process {pid} did not stop in {timeout_s:.0f} s"
            raise ServiceUnavailable(str(config.home), detail)
        time.sleep(0.1)
    return True


def _logical_cpus(config: TacticianConfig) -> int:
    """Enough logical CPUs for every replica there may be; Ray only counts them."""
    from serve_app.catalogue import current
    from serve_app.graph import is_inline, part_names
    from serve_app.parts import SKILL

    catalogue = current(config)
    registry = catalogue.registry
    booked = config.parts.gateway.num_cpus * config.parts.gateway.max_replicas
    for name in part_names(catalogue):
        if is_inline(name, config, registry):
            continue
        if name.startswith(SKILL):
            asked = registry[name.removeprefix(SKILL)].resources
            booked += asked.num_cpus * asked.max_replicas
        else:
            scaling: Scaling = getattr(config.parts, name)
            booked += scaling.num_cpus * scaling.max_replicas
    return max(os.cpu_count() or 1, math.ceil(2 * booked))
