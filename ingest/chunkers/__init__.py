"""Chunkers: a `ParsedDocument` to cuts. One way of cutting a module."""
