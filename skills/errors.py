"""What can go wrong in a skill.

    SkillError                 something a caller of a skill has to expect
    ├── SkillTimeout           did not finish within its budget
    ├── SkillUnavailable       the back end is down, unreachable, or its breaker is open
    ├── SkillRejected          overloaded: the queue is full
    ├── SkillFailed            raised, or answered something that is not a result
    ├── RequestInvalid         the request itself cannot be served (unknown collection, bad filter)
    └── SkillMisconfigured     a manifest, plan or environment variable is wrong

All fields are positional and reach `Exception.__init__`: the classes cross process borders by
pickle.
"""


class SkillError(Exception):
    """Something a caller of a skill has to expect."""

    def __init__(self, subject: str, detail: str) -> None:
        super().__init__(subject, detail)
        self.subject = subject
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.subject}: {self.detail}"


class SkillTimeout(SkillError):
    """Did not finish within its budget."""


class SkillUnavailable(SkillError):
    """The back end is down, unreachable, or its breaker is open."""


class SkillRejected(SkillError):
    """Overloaded: the queue is full."""


class SkillFailed(SkillError):
    """Raised, or answered something that is not a result."""


class RequestInvalid(SkillError):
    """The request cannot be served as it is; `subject` names the field."""


class SkillMisconfigured(SkillError):
    """A manifest, a plan or an environment variable is wrong; `subject` names the file or skill."""
