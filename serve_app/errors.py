"""What can go wrong in serving, beside what `skills.errors` and `policies.errors` name.

ServeError
├── RequestRejected     a field of the request is wrong; the caller can fix it
├── NotAllowed          no key, or a key that does not allow it
├── NotFound            no such request, collection, plan or skill
├── Conflict            things are not as the request takes them to be
├── Overloaded          too many requests at once; try again later
└── ServiceUnavailable  no service is running, or it is not ready
"""


class ServeError(Exception):
    """Something that a caller of the service has to expect; `subject` names the field or part."""

    def __init__(self, subject: str, detail: str) -> None:
        super().__init__(subject, detail)
        self.subject = subject
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.subject}: {self.detail}"


class RequestRejected(ServeError):
    """A field of the request is wrong; the caller can fix it."""


class NotAllowed(ServeError):
    """No key, or a key that does not allow it."""


class NotFound(ServeError):
    """No such request, collection, plan or skill."""


class Conflict(ServeError):
    """Things are not as the request takes them to be: another experiment runs already."""


class Overloaded(ServeError):
    """Too many requests at once; try again later."""


class ServiceUnavailable(ServeError):
    """No service is running, or it is not ready."""
