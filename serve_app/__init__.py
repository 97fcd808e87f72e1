"""Serving: HTTP, console, CLI; execution, answers; Ray Serve deployments; telemetry."""
