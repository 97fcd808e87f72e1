"""What can go wrong in ingestion.

IngestError
├── IngestRejected         the request cannot be served: no such path, bad collection, bad setting
├── SourceUnavailable      a source cannot be listed or read
├── DocumentUnreadable     one document cannot be turned into passages; becomes a dead letter
│   ├── DocumentRefused    it is dangerous: a bomb, an escape, an absurd nesting
│   └── ParserStopped      its parser took too long or too much memory and was killed
└── SinkFailed             a store did not take the passages

All fields are positional and reach `Exception.__init__`: the classes cross process borders by
pickle.
"""


class IngestError(Exception):
    """Something that a caller of `ingest` has to expect; `subject` names the path, document or
    setting.
    """

    def __init__(self, subject: str, detail: str) -> None:
        super().__init__(subject, detail)
        self.subject = subject
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.subject}: {self.detail}"


class IngestRejected(IngestError):
    """The request cannot be served as it is."""


class SourceUnavailable(IngestError):
    """A source cannot be listed or read."""


class DocumentUnreadable(IngestError):
    """One document cannot be turned into passages; `detail` is what the dead letter says."""


class DocumentRefused(DocumentUnreadable):
    """The document is dangerous to open: a bomb, an escape, an absurd nesting."""


class ParserStopped(DocumentUnreadable):
    """The parser of the document took too long or too much memory and was killed."""


class SinkFailed(IngestError):
    """A store did not take the passages."""
