"""What Elasticsearch refuses: whatever it does not know."""


class Refused(Exception):
    def __init__(self, status, kind, reason):
        super().__init__(reason)
        self.status = status
        self.body = {"error": {"type": kind, "reason": reason}, "status": status}


def known(given, allowed, what):
    unknown = set(given) - set(allowed)
    if unknown:
        raise Refused(400, "parsing_exception", f"[{what}] unknown field {sorted(unknown)}")
