"""A source without what no compiler sees: layout, comments, docstrings. Two that are then the same are one kernel.

Renaming a variable makes another kernel: what is compared is text, not meaning, and a kernel under another name draws
its own samples (docs/scores.md says what that can gain).
"""

from __future__ import annotations

import ast
import re
import warnings
from itertools import pairwise

from autograder.contract import Language

_CUDA_TOKEN = re.compile(
    r"""
    (?P<comment> //(?:\\\n|[^\n])* | /\*.*?(?:\*/|\Z) )
  | (?P<space> (?:[ \t\r\f\v]|\\\n)+ )
  | (?P<line> \n )
  | (?P<text>
        (?:u8|[uUL])?R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
      | (?:u8|[uUL])?"(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'
      | \.?[0-9](?:'?[A-Za-z0-9_]|[.$])* | [A-Za-z0-9_.$]+ | . )
    """,
    re.VERBOSE | re.DOTALL,
)


def normal(source: bytes, language: Language) -> bytes:
    """The source's normal form; of one that cannot be read, the bytes as they are."""
    try:
        # The judge grades it without the mark.
        text = source.decode().removeprefix("\ufeff")
        return (_python(text) if language is Language.triton else _cuda(text)).encode()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


def _python(text: str) -> str:
    with warnings.catch_warnings():
        # Such as an escape that Python does not know: the student's affair.
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    return ast.dump(_Quiet().visit(tree))


class _Quiet(ast.NodeTransformer):
    """Leaves out statements that are only a constant: docstrings, and what is used as a comment."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Nothing, for a constant."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


def _cuda(text: str) -> str:
    """Tokens with one space between them; an end of line counts where a preprocessor's line ends."""
    lines: list[list[str]] = [[]]
    touches = False
    for found in _CUDA_TOKEN.finditer(text):
        if found["line"]:
            lines.append([])
        elif touches and found["text"] == "(" and _defines(lines[-1]):
            # With a space between them the name would have no parameters.
            lines[-1][-1] += "("
        elif found["text"]:
            lines[-1].append(found["text"])
        touches = bool(found["text"])
    return "".join(_joined(tokens) for tokens in lines if tokens)


def _defines(tokens: list[str]) -> bool:
    """Whether the last of these is the name of a macro."""
    return tokens[:-1] == ["#", "define"]


def _joined(tokens: list[str]) -> str:
    line = tokens[0]
    for before, token in pairwise(tokens):
        line += token if _is_one_word(before, token) else f" {token}"
    return f"\n{line}\n" if tokens[0] == "#" else f"{line} "


def _is_one_word(before: str, token: str) -> bool:
    """Whether a space between two tokens says nothing: `threadIdx .x` is `threadIdx.x`, and `1. f` is not `1.f`."""
    end, begin = before[-1], token[0]
    return "." in end + begin and _in_word(end) and _in_word(begin) and not before.lstrip(".")[:1].isdigit()


def _in_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in "_.$")
