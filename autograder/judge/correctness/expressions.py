"""An author's expression over tensors, worked out node by node: `torch.where(x < 0, 0 * x, out)`."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

from autograder.assignment import ARITHMETIC

_OPERATORS: Mapping[type[ast.AST], Callable[[Any, Any], Any]] = {
    **ARITHMETIC,
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.Eq: operator.eq,
}

_SIGNS: Mapping[type[ast.AST], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Invert: operator.invert}
Of = Callable[[ast.expr | None], Any]
"""What a part of a node comes to."""


def evaluate(text: str, names: Mapping[str, Any]) -> Any:
    """What an expression comes to: names, numbers, operators, calls, attributes and indices, and nothing else.

    Raises:
        ValueError: something else stands in it, or a name that there is not.
        RuntimeError, IndexError, TypeError: torch's own, where tensors do not fit.
    """
    return _value(ast.parse(text, mode="eval").body, names)


def _value(node: ast.expr, names: Mapping[str, Any]) -> Any:
    make = _NODES.get(type(node))
    if make is None:
        raise ValueError(f"{ast.unparse(node)!r} is nothing that an expression may hold")
    return make(node, lambda part: _value(part, names) if part is not None else None, names)


def _name(node: ast.Name, _: Of, names: Mapping[str, Any]) -> Any:
    if node.id not in names:
        raise ValueError(f"there is no {node.id!r}")
    return names[node.id]


def _compared(node: ast.Compare, of: Of, _: Mapping[str, Any]) -> Any:
    return _OPERATORS[type(node.ops[0])](of(node.left), of(node.comparators[0]))


def _attribute(node: ast.Attribute, of: Of, _: Mapping[str, Any]) -> Any:
    if node.attr.startswith("_"):
        raise ValueError(f"{node.attr!r} is private")
    return getattr(of(node.value), node.attr)


def _called(node: ast.Call, of: Of, _: Mapping[str, Any]) -> Any:
    return of(node.func)(*map(of, node.args), **{one.arg: of(one.value) for one in node.keywords if one.arg})


_NODES: Mapping[type[ast.expr], Callable[[Any, Of, Mapping[str, Any]], Any]] = {
    ast.Constant: lambda node, *_: node.value,
    ast.Name: _name,
    ast.UnaryOp: lambda node, of, _: _SIGNS[type(node.op)](of(node.operand)),
    ast.BinOp: lambda node, of, _: _OPERATORS[type(node.op)](of(node.left), of(node.right)),
    ast.Compare: _compared,
    ast.Attribute: _attribute,
    ast.Call: _called,
    ast.Subscript: lambda node, of, _: of(node.value)[of(node.slice)],
    ast.Slice: lambda node, of, _: slice(of(node.lower), of(node.upper), of(node.step)),
    ast.Tuple: lambda node, of, _: tuple(map(of, node.elts)),
}
