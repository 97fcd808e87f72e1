"""Another process that reads or writes a collection, for tests that kill it or run it alongside.

Every generation of the collection has the same passages; their text says which generation it is.
"""

import asyncio
import sys
import time
from pathlib import Path

from skills.stores.qdrant_edge import QdrantEdgeStore
from tests.contract.store_passages import VECTORS, indexed, passage, resources, words

PASSAGES = 60


def open_store(home):
    return QdrantEdgeStore(QdrantEdgeStore.Config(), resources(Path(home)))


def write_generation(writer, generation):
    name = f"generation{chr(97 + generation % 26)}{generation}"
    for i in range(PASSAGES):
        given = passage(f"p{i}", f"word {name}", document=f"d{i}", attributes={"at": generation})
        writer.upsert([indexed(given, str(generation))])


def say(line):
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def hang_before_commit(home):
    writer = open_store(home).writer("c", VECTORS)
    write_generation(writer, 1)
    say("written")
    time.sleep(600)


def commit_for_ever(home):
    store = open_store(home)
    for generation in range(1000):
        writer = store.writer("c", VECTORS)
        write_generation(writer, generation)
        writer.commit()
        say(generation)


async def generations_found(store, version=""):
    (ranking,) = await store.match([words("word", top_k=1000, version=version)])
    assert isinstance(ranking, list), ranking
    assert len(ranking) == PASSAGES, len(ranking)
    return {hit.passage.metadata.attributes["at"] for hit in ranking}


async def read_until_generation(home, last):
    store = open_store(home)
    seen, reads = set(), 0
    while last not in seen:
        found = await generations_found(store)
        assert len(found) == 1, f"one search saw generations {found}"
        seen |= found
        reads += 1
    say(f"{len(seen)} {reads}")


async def hold(home):
    store = open_store(home)
    info = await store.info("c")
    say(info.version)
    await asyncio.to_thread(sys.stdin.readline)
    say(sorted(await generations_found(store, info.version)))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["hang", home]:
            hang_before_commit(home)
        case ["commit", home]:
            commit_for_ever(home)
        case ["read", home, last]:
            asyncio.run(read_until_generation(home, int(last)))
        case ["hold", home]:
            asyncio.run(hold(home))
