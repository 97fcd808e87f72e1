import pickle

import pytest

import ingest.errors
import policies.errors
import skills.errors


def classes(module):
    return [c for c in vars(module).values() if isinstance(c, type) and issubclass(c, Exception)]


@pytest.mark.parametrize(
    "cls", classes(skills.errors) + classes(policies.errors) + classes(ingest.errors)
)
def test_every_error_survives_a_process_border(cls):
    error = pickle.loads(pickle.dumps(cls("keyword", "no answer in 300 ms")))
    assert (cls, "keyword", "no answer in 300 ms") == (type(error), error.subject, error.detail)
