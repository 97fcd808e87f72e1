"""Cutting program text by its grammar: functions, classes, and what stands outside of them."""

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from pydantic import BaseModel, ConfigDict, Field
from tree_sitter import Language, Node, Parser

from ingest.types import Cut, ParsedDocument

_GRAMMARS = {
    "python": ("tree_sitter_python", "language"),
    "javascript": ("tree_sitter_javascript", "language"),
    "typescript": ("tree_sitter_typescript", "language_typescript"),
    "tsx": ("tree_sitter_typescript", "language_tsx"),
    "go": ("tree_sitter_go", "language"),
    "java": ("tree_sitter_java", "language"),
    "rust": ("tree_sitter_rust", "language"),
    "c": ("tree_sitter_c", "language"),
    "cpp": ("tree_sitter_cpp", "language"),
}
_FUNCTIONS = {
    "function_definition", "function_declaration", "generator_function_declaration",
    "method_definition", "method_declaration", "constructor_declaration", "function_item",
    "macro_definition", "compact_constructor_declaration",
}  # fmt: skip
_CLASSES = {
    "class_definition", "class_declaration", "abstract_class_declaration", "class_specifier",
    "interface_declaration", "enum_declaration", "record_declaration", "struct_item", "enum_item",
    "trait_item", "impl_item", "mod_item", "struct_specifier", "namespace_definition",
    "type_declaration", "annotation_type_declaration", "internal_module", "union_item",
}  # fmt: skip
_WRAPPERS = {
    "decorated_definition", "export_statement", "template_declaration", "linkage_specification",
    "preproc_ifdef", "preproc_if", "declaration_list", "ambient_declaration", "ERROR",
}  # fmt: skip
_BLOCKS = {"declaration_list", "preproc_ifdef", "preproc_if", "ERROR"}
"""Wrappers that hold many definitions; what the grammar does not understand among them."""
_LEADING = {
    "comment", "line_comment", "block_comment", "attribute_item", "inner_attribute_item",
    "decorator",
}  # fmt: skip
_MAX_DEPTH = 200


@dataclass(frozen=True, slots=True)
class _Piece:
    start: int
    stop: int
    line: int
    kind: str
    path: tuple[str, ...]


class CodeChunker:
    """Cuts program text."""

    class Config(BaseModel):
        """Sizes in characters."""

        model_config = ConfigDict(frozen=True, extra="forbid")

        max_chars: int = Field(default=1200, ge=200)

    def __init__(self, config: Config) -> None:
        self._config = config

    def cut(self, document: ParsedDocument) -> list[Cut]:
        """Cut a file. A class that is short is one passage, else each of its methods is; what the
        grammar does not understand goes with the module.
        """
        language = str(document.attributes.get("language", ""))
        source = document.text.encode("utf-8", "surrogatepass")
        tree = _parser(language).parse(source)
        pieces = self._pieces(tree.root_node, source, (), tree.root_node.start_byte)
        return [
            Cut(text, piece.path, None, ".".join(piece.path) or document.title, attributes)
            for piece in pieces
            for text, attributes in self._texts(piece, source)
        ]

    def _pieces(
        self, node: Node, source: bytes, path: tuple[str, ...], start: int
    ) -> Iterator[_Piece]:
        """Definitions in order, with what stands between them from `start` on; comments go with
        what follows.
        """
        kind = "class" if path else "module"
        leading: Node | None = None
        for child in _members(node):
            if child.type in _LEADING:
                leading = leading or child
                continue
            defined = _definition(child)
            if defined is not None and len(path) < _MAX_DEPTH:
                begin = leading.start_byte if leading is not None else child.start_byte
                yield from _between(source, start, begin, kind, path)
                yield from self._defined(child, defined, begin, source, path)
                start = child.end_byte
            leading = None
        yield from _between(source, start, node.end_byte, kind, path)

    def _defined(
        self, outer: Node, node: Node, begin: int, source: bytes, path: tuple[str, ...]
    ) -> Iterator[_Piece]:
        inner = (*path, _name(node))
        is_class = node.type in _CLASSES
        body = node.child_by_field_name("body") or _body(node)
        if is_class and body is not None and outer.end_byte - begin > self._config.max_chars:
            yield from self._pieces(body, source, inner, begin)
        else:
            kind = "class" if is_class else "function"
            yield _Piece(begin, outer.end_byte, _line(source, begin), kind, inner)

    def _texts(self, piece: _Piece, source: bytes) -> Iterator[tuple[str, dict[str, str | int]]]:
        """The text in passages of lines; every further one begins with the signature."""
        text = source[piece.start : piece.stop].decode("utf-8", "replace").strip("\n")
        signature = text.lstrip().split("\n", 1)[0][:200] if piece.kind != "module" else ""
        attributes: dict[str, str | int] = {"kind": piece.kind, "line": piece.line}
        if piece.path:
            attributes["symbol"] = ".".join(piece.path)
        held: list[str] = []
        size = 0
        for line in _short_lines(text, self._config.max_chars // 2):
            if held and size + len(line) > self._config.max_chars:
                yield "\n".join(held), attributes
                held, size = ([signature, "…"] if signature else []), len(signature)
            held.append(line)
            size += len(line) + 1
        if any(line.strip() for line in held):
            yield "\n".join(held), attributes


def _short_lines(text: str, longest: int) -> Iterator[str]:
    for line in text.split("\n"):
        for start in range(0, max(len(line), 1), longest):
            yield line[start : start + longest]


def _between(
    source: bytes, start: int, stop: int, kind: str, path: tuple[str, ...]
) -> Iterator[_Piece]:
    if source[start:stop].strip(b" \t\r\n{};,"):
        yield _Piece(start, stop, _line(source, start), kind, path)


def _line(source: bytes, at: int) -> int:
    while at < len(source) and source[at : at + 1] in b" \t\r\n" and source[at : at + 1]:
        at += 1
    return source.count(b"\n", 0, at) + 1


def _members(node: Node) -> Iterator[Node]:
    """Children, those inside of blocks that only group included."""
    for child in node.children:
        if child.type in _WRAPPERS and _definition(child) is None:
            yield from _members(child)
        else:
            yield child


def _definition(node: Node) -> Node | None:
    """The function or class that a node is or wraps; a constant that holds a function counts."""
    if node.type in _FUNCTIONS or node.type in _CLASSES:
        return node
    if node.type in _WRAPPERS - _BLOCKS:
        for child in node.named_children:
            found = _definition(child)
            if found is not None:
                return found
    if node.type in ("lexical_declaration", "variable_declaration"):
        for child in node.named_children:
            value = child.child_by_field_name("value")
            if value is not None and value.type in ("arrow_function", "function_expression"):
                return child
    return None


def _body(node: Node) -> Node | None:
    bodies = ("block", "class_body", "declaration_list", "field_declaration_list", "interface_body")
    return next((c for c in node.named_children if c.type in bodies), None)


def _name(node: Node) -> str:
    """The name that a definition gives; an implementation is called by its type, a method of Go by
    its receiver too.
    """
    for field in ("name", "declarator", "type"):
        named = node.child_by_field_name(field)
        while named is not None and (inner := named.child_by_field_name("declarator")) is not None:
            named = inner
        if named is not None:
            receiver = _text(node.child_by_field_name("receiver")).strip("()").split()
            name = _text(named)[:120]
            return f"{receiver[-1].lstrip('*')}.{name}" if receiver else name
    specs = [c for c in node.named_children if c.type in ("type_spec", "type_alias")]
    return _name(specs[0]) if specs else node.type


def _text(node: Node | None) -> str:
    return "" if node is None or node.text is None else node.text.decode("utf-8", "replace")


@cache
def _parser(language: str) -> Parser:
    module, function = _GRAMMARS[language]
    return Parser(Language(getattr(importlib.import_module(module), function)()))
