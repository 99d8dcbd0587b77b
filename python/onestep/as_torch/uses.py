"""What of torch a program uses, by its syntax tree: the program is read, never run."""
from __future__ import annotations

import ast
from pathlib import Path


class _Visitor(ast.NodeVisitor):
    """Collects dotted names under torch, and the attributes of everything else (possible tensor methods)."""

    def __init__(self) -> None:
        self.aliases: dict[str, str] = {}
        self.names: dict[str, int] = {}
        self.attributes: dict[str, int] = {}
        self.local_imports: list[str] = []

    def _use(self, name: str, line: int) -> None:
        self.names.setdefault(name, line)

    def visit_Import(self, node: ast.Import) -> None:
        for alias in node.names:
            top = alias.name.split(".")[0]
            if top != "torch":
                self.local_imports.append(alias.name)
                continue
            self._use(alias.name, node.lineno)
            self.aliases[alias.asname or top] = alias.name if alias.asname else top

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        module = node.module or ""
        inside_torch = node.level == 0 and module.split(".")[0] == "torch"
        if not inside_torch:
            self.local_imports.append(module)
            self.local_imports.extend(f"{module}.{a.name}".lstrip(".") for a in node.names)
            return
        for alias in node.names:
            name = module if alias.name == "*" else f"{module}.{alias.name}"
            self._use(name, node.lineno)
            self.aliases[alias.asname or alias.name] = name

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """An argument hides what is imported under its name."""
        outside = self.aliases
        own = {argument.arg for argument in ast.walk(node.args) if isinstance(argument, ast.arg)}
        self.aliases = {alias: name for alias, name in outside.items() if alias not in own}
        self.generic_visit(node)
        self.aliases = outside

    def visit_Attribute(self, node: ast.Attribute) -> None:
        parts: list[str] = []
        inner: ast.expr = node
        while isinstance(inner, ast.Attribute):
            parts.append(inner.attr)
            inner = inner.value
        if isinstance(inner, ast.Name) and inner.id in self.aliases:
            self._use(".".join([self.aliases[inner.id], *reversed(parts)]), node.lineno)
            return
        for attr in parts:
            self.attributes.setdefault(attr, node.lineno)
        self.visit(inner)


def _local_file(name: str, roots: list[Path]) -> Path | None:
    for root in roots:
        base = root.joinpath(*name.split("."))
        for file in (base.with_suffix(".py"), base / "__init__.py"):
            if file.is_file():
                return file
    return None


def uses_of(program: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The dotted torch names and the other attributes that `program` and the modules beside it use, each with FILE:LINE."""
    names: dict[str, str] = {}
    attributes: dict[str, str] = {}
    waiting, seen = [program], set()
    while waiting:
        file = waiting.pop()
        if file in seen:
            continue
        seen.add(file)
        visitor = _Visitor()
        visitor.visit(ast.parse(file.read_bytes(), str(file)))
        for found, known in ((visitor.names, names), (visitor.attributes, attributes)):
            for name, line in found.items():
                known.setdefault(name, f"{file}:{line}")
        roots = [program.parent, file.parent, file.parent.parent]
        waiting.extend(f for f in (_local_file(n, roots) for n in visitor.local_imports if n) if f)
    return names, attributes
