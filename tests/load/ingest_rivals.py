"""Ingestion beside Haystack and LlamaIndex: the same files, encoder and splitter, in the same run.

    python -m venv rivals
    rivals/bin/pip install . psutil haystack-ai llama-index-core
    rivals/bin/python -m tests.load.ingest_rivals ../shared/data/cmrc2018-zh [--files 100]

Text files of three passages each go from a folder to a store that can be searched. The others read
with their own converter, call this project's splitter and encoder through their own interfaces,
with a thread a core for the encoder, and write to their own store in memory; they neither enrich
nor detect formats, nor do they make a keyword index or anything durable. All take turns; elapsed
and CPU seconds are summed over the rounds. Fails when one of them is faster.
"""

import argparse
import itertools
import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from platformdirs import user_cache_dir

from ingest.chunkers.section import SectionChunker
from ingest.formats import Format
from ingest.parsers.parser import RawDocument, parser_of
from ingest.request import IngestRequest
from ingest.run import run
from skills.encoders.e5 import E5Encoder
from skills.resources import Resources, ResourceSettings

PASSAGES_A_FILE = 3


class Shared:
    """The splitter and the encoder that all use."""

    def __init__(self, cache: Path) -> None:
        self.chunker = SectionChunker(SectionChunker.Config())
        settings = ResourceSettings(home=cache, cache=cache)
        config = E5Encoder.Config(threads=os.cpu_count() or 1)
        self.encoder = E5Encoder(config, Resources(settings))

    def split(self, text: str) -> list[str]:
        parsed = parser_of(Format.TEXT)(RawDocument("file:///a.txt", "a.txt", text.encode()))
        return [cut.text for cut in self.chunker.cut(parsed)]

    def embed(self, texts: list[str]) -> list[list[float]]:
        return self.encoder.encode(texts, "passage").tolist()


def tactician(cache: Path, home: Path) -> Callable[[Path], int]:
    resources = Resources(ResourceSettings(home=home, cache=cache))
    resources.encoder().encode(["warm"], "passage")
    numbers = itertools.count()

    def ingest(folder: Path) -> int:
        name = f"round-{next(numbers)}"
        request = IngestRequest((str(folder),), name, resources.settings, execution="inline")
        return run(request, resources=resources).passages

    return ingest


def haystack(shared: Shared) -> Callable[[Path], int]:
    from haystack import Document, Pipeline, component
    from haystack.components.converters import TextFileToDocument
    from haystack.components.writers import DocumentWriter
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    @component
    class Splitter:
        @component.output_types(documents=list[Document])
        def run(self, documents: list[Document]):
            return {
                "documents": [
                    Document(content=text, meta=each.meta)
                    for each in documents
                    for text in shared.split(each.content)
                ]
            }

    @component
    class Embedder:
        @component.output_types(documents=list[Document])
        def run(self, documents: list[Document]):
            done: list[Document] = []
            for batch in _batches(documents, 32):
                vectors = shared.embed([each.content for each in batch])
                done += map(_embedded, batch, vectors)
            return {"documents": done}

    def ingest(folder: Path) -> int:
        store = InMemoryDocumentStore()
        pipeline = Pipeline()
        parts = {
            "converter": TextFileToDocument(),
            "splitter": Splitter(),
            "embedder": Embedder(),
            "writer": DocumentWriter(store),
        }
        for name, part in parts.items():
            pipeline.add_component(name, part)
        names = list(parts)
        for before, after in itertools.pairwise(names):
            pipeline.connect(before, after)
        pipeline.run({"converter": {"sources": sorted(folder.iterdir())}})
        return store.count_documents()

    return ingest


def llama_index(shared: Shared) -> Callable[[Path], int]:
    from llama_index.core import SimpleDirectoryReader
    from llama_index.core.base.embeddings.base import BaseEmbedding
    from llama_index.core.ingestion import IngestionPipeline
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.schema import TextNode
    from llama_index.core.vector_stores import SimpleVectorStore

    class Splitter(NodeParser):
        def _parse_nodes(self, nodes, show_progress=False, **kwargs):
            return [
                TextNode(text=text, metadata=node.metadata)
                for node in nodes
                for text in shared.split(node.get_content())
            ]

    class Embedding(BaseEmbedding):
        def _get_text_embedding(self, text):
            return shared.embed([text])[0]

        def _get_text_embeddings(self, texts):
            return shared.embed(texts)

        def _get_query_embedding(self, query):
            return shared.embed([query])[0]

        async def _aget_query_embedding(self, query):
            return self._get_query_embedding(query)

    def ingest(folder: Path) -> int:
        pipeline = IngestionPipeline(
            transformations=[Splitter(), Embedding(embed_batch_size=32)],
            vector_store=SimpleVectorStore(),
            disable_cache=True,
        )
        return len(pipeline.run(documents=SimpleDirectoryReader(str(folder)).load_data()))

    return ingest


def _embedded(document, vector: list[float]):
    return replace(document, embedding=vector)


def _batches(items: list, size: int):
    for at in range(0, len(items), size):
        yield items[at : at + size]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    parser.add_argument("--files", type=int, default=100)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--cache", type=Path, default=Path(user_cache_dir("tactician")))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as home:
        _write(options.folder / "corpus.jsonl", Path(folder), options.files)
        spent = _measure(options, Path(folder), Path(home))
    _report(spent)


def _measure(options: argparse.Namespace, folder: Path, home: Path) -> dict[str, list]:
    shared = Shared(options.cache)
    systems = {
        "haystack": haystack(shared),
        "tactician": tactician(options.cache, home),
        "llama_index": llama_index(shared),
    }
    spent: dict[str, list] = {name: [0.0, 0.0, 0] for name in systems}
    for turn in range(options.rounds):
        for name, ingest in list(systems.items())[:: -1 if turn % 2 else 1]:
            cpu, started = _cpu_s(), time.perf_counter()
            spent[name][2] = ingest(folder)
            spent[name][0] += time.perf_counter() - started
            spent[name][1] += _cpu_s() - cpu
    return spent


def _report(spent: dict[str, list]) -> None:
    own = spent["tactician"]
    shown = {
        name: {
            "passages": passages,
            "elapsed_s": round(elapsed, 1),
            "cpu_s": round(cpu, 1),
            "times_our_elapsed": round(elapsed / own[0], 2),
            "times_our_cpu": round(cpu / own[1], 2),
        }
        for name, (elapsed, cpu, passages) in spent.items()
    }
    print(json.dumps(shown, indent=1))
    if any(elapsed < own[0] for elapsed, _, _ in spent.values()):
        sys.exit("another system is faster")


def _write(corpus: Path, folder: Path, files: int) -> None:
    with corpus.open(encoding="utf-8") as lines:
        texts = [json.loads(line)["text"] for _, line in zip(range(files * 3), lines, strict=False)]
    for number in range(files):
        own = texts[number * PASSAGES_A_FILE :][:PASSAGES_A_FILE]
        (folder / f"{number:05d}.txt").write_text("\n\n".join(own), encoding="utf-8")


def _cpu_s() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


if __name__ == "__main__":
    main()
