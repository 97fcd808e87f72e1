"""Indexing: sources, chunkers, enrichment, embedding, sinks (Ray Data)."""
