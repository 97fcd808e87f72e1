"""Development and test queries, told apart by a hash of their id: stable when queries are added."""

import hashlib
from typing import Literal

Split = Literal["dev", "test"]


def split_of(query_id: str, *, test_share: float = 0.5, salt: str = "") -> Split:
    """Which side a query is on.

    Args:
        query_id: unique within its data set.
        test_share: expected share of test queries, in [0, 1].
        salt: another salt is another split; a data set's name keeps equal ids of two sets apart.
    """
    digest = hashlib.blake2b(f"{salt}\0{query_id}".encode(), digest_size=8).digest()
    return "test" if int.from_bytes(digest) < test_share * 2**64 else "dev"
