"""Parsers: bytes of one format to a `ParsedDocument`. One format a module."""
