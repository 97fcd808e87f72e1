"""API keys: who a request comes from, and what that caller may do. Knows nothing of HTTP.

The configuration holds digests of keys only. A key is 256 random bits, so one round of SHA-256 is
enough to keep it from being guessed; what people choose as passwords has no place here.
"""

import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator

from skills.types import OPERATOR, Caller

_PREFIX = "tac_"
"""Lets scanners for leaked secrets, and people, recognise a key."""


class ApiKey(BaseModel):
    """One key as the configuration describes it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")
    """For people; never compared."""
    sha256: str = Field(pattern=r"^[0-9a-f]{64}$")
    """What `tactician keys new` prints for the key."""
    tenant: str = ""
    roles: tuple[str, ...] = ()
    clearance: bool = False
    """May read passages whose `sensitive_flag` is set."""
    admin: bool = False
    """May change what runs, and see requests of others."""


class CallerSettings(BaseModel):
    """Who may call."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    keys: tuple[ApiKey, ...] = ()
    """Empty: every caller is the operator. Do not listen beyond this machine like that."""

    @model_validator(mode="after")
    def _no_two_alike(self) -> "CallerSettings":
        for field in ("name", "sha256"):
            values = [getattr(key, field) for key in self.keys]
            twice = sorted({value for value in values if values.count(value) > 1})
            if twice:
                raise ValueError(f"{field} must be unique, {twice[0]!r} is not")
        return self


@dataclass(frozen=True, slots=True)
class Principal:
    """A caller that has shown who it is."""

    name: str
    caller: Caller
    admin: bool = False


LOCAL_OPERATOR = Principal("operator", OPERATOR, admin=True)
"""Everyone, as long as no keys are configured."""


class KeyRing:
    """The configured keys."""

    def __init__(self, keys: Iterable[ApiKey]) -> None:
        self._keys = tuple(
            (
                bytes.fromhex(key.sha256),
                Principal(
                    key.name, Caller(key.tenant, tuple(sorted(key.roles)), key.clearance), key.admin
                ),
            )
            for key in keys
        )

    @property
    def is_open(self) -> bool:
        """Whether there are no keys, so that everyone is the operator."""
        return not self._keys

    def principal(self, key: str) -> Principal | None:
        """Who shows this key; None when nobody does.

        Every configured key is compared, each in constant time: how long it takes says nothing.
        """
        shown = hashlib.sha256(key.encode("utf-8", "surrogateescape")).digest()
        found: Principal | None = None
        for digest, principal in self._keys:
            if hmac.compare_digest(digest, shown):
                found = principal
        return found


def new_key() -> tuple[str, str]:
    """A fresh key, and the digest of it that belongs into the configuration."""
    key = _PREFIX + secrets.token_urlsafe(32)
    return key, hashlib.sha256(key.encode()).hexdigest()


def scope_of(caller: Caller) -> dict[str, Any]:
    """What a record keeps of the caller, beside the tenant: enough to ask the same thing again."""
    return {"roles": list(caller.roles), "clearance": caller.clearance}


def recorded_caller(tenant: str, execution: Mapping[str, Any]) -> Caller:
    """The caller of a recorded request; of one recorded without a caller, nobody in particular."""
    scope = execution.get("caller") or {}
    return Caller(tenant, tuple(scope.get("roles", ())), bool(scope.get("clearance")))


def may_see(principal: Principal, recorded: Caller) -> bool:
    """Whether someone may look at a request of that caller: it is their own kind, or all are."""
    return principal.admin or principal.caller == recorded
