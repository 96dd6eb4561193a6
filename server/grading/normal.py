"""A source without what no compiler sees: layout, comments, docstrings. Two that are then the same are one kernel.

Samples of one form are one pool, so two sources that behave differently must never have the same one: with a kernel
hidden in what the form leaves out, a wrong and fast one would lend its times to a slow one. Where it is not certain
that nobody sees what is left out, a source is compared byte by byte. That costs little: whoever wants another pool
renames a variable, as what is compared is text and not meaning (docs/scores.md says what that can gain).

CUDA is read as g++ reads it with `-std=c++17`, which nvcc has preprocess its files too: lines end with a line feed, a
carriage return or both; a backslash at the end of a line joins the next one to it, also with blanks behind it, but not
inside of a raw string; trigraphs are off. `tests/server/grading/test_normal.py` asks it.

A form has no version, and names of pools have its hash in them: so it stays what it is wherever it was right. That is
why `==` is two words in it, and two spaces stand where a space keeps two words apart.
"""

from __future__ import annotations

import ast
import builtins
import re
import warnings
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from autograder.contract import Language
from server.grading.plausible import MOST_BYTES


class _SeenError(ValueError):
    """The source may see what the form would leave out, or compilers may read it in more than one way."""


def normal(source: bytes, language: Language) -> bytes:
    """The source's normal form; of one that cannot be read, is long, or might read itself, the bytes as they are."""
    # The recorder works forms out, and would need a gigabyte for one of 1 MiB.
    if len(source) > MOST_BYTES:
        return source
    try:
        # The judge grades it without the mark.
        text = source.decode().removeprefix("\ufeff")
        return (_python(text) if language is Language.triton else _cuda(text)).encode()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return source


# --- Python ----------------------------------------------------------------------------------------------------------

_READS_ITSELF = frozenset({
    "__doc__", "__file__", "__code__", "__dict__", "__globals__", "__builtins__", "__spec__", "__loader__",
    "__traceback__", "__getattribute__", "__getattr__", "__import__", "__reduce__", "__reduce_ex__",
    "getattr", "vars", "globals", "locals", "eval", "exec", "compile", "open", "help", "attrgetter", "methodcaller",
    "format", "format_map", "vformat", "modules", "_getframe", "_current_frames", "settrace", "setprofile", "f_code",
    "f_lineno", "tb_lineno", "lineno", "findCaller", "asm", "src", "_src", "raw_src", "cache_key", "hash", "parse",
    "starting_line_number", "inspect", "linecache", "tokenize", "traceback", "pydoc", "dis", "ast", "gc", "ctypes",
    "importlib", "pickle", "copyreg", "logging", "warnings", "breakpoint", "*",
    # Of torch and triton: what reads sources, takes traces, maps files, or names a kernel by a hash of its text.
    "package", "utils", "fx", "hub", "export", "overrides", "serialization", "multiprocessing", "testing",
    "profiler", "autograd", "onnx", "library", "ops", "classes", "distributed", "monitor", "from_file",
    "compiler", "runtime", "knobs", "metadata", "packed_metadata", "disasm", "link", "build_extern",
})  # fmt: skip
"""Names by which Python reads its own text, docstrings and lines, a Triton kernel's among them, or reaches such names
without spelling them. It is no wall: whoever finds another way has a hole to report."""
_INNER = ("_", "gi_", "cr_", "ag_", "co_", "f_", "tb_")
"""How the names begin of what is not for everybody, and of what generators, code, frames and tracebacks have."""
_MODULES = frozenset({"__future__", "math", "torch", "triton"})
"""What kernels are written with. Of any other module it is not known what it can read."""
_OWN_METHODS = frozenset({"__init__"})
_JIT = "jit"
"""Triton's and Gluon's compile a kernel; torch's reads a function's source, comments on types among it."""
_COMPILERS = frozenset({"triton", "gluon"})


_OTHER_LINE_ENDS = re.compile("[\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Python compiles none of them as the end of a line, and runners split lines there until they were made to count as it
does (`autograder/runner/source.py`): Triton, which takes a kernel's text by the number of its line, found another one,
and be it in a comment. Nodes of an older release still do."""


def _python(text: str) -> str:
    if _OTHER_LINE_ENDS.search(text):
        raise _SeenError
    with warnings.catch_warnings():
        # Such as an escape that Python does not know: the student's affair.
        warnings.simplefilter("ignore")
        tree = ast.parse(text)
    if any(name in _READS_ITSELF or name.startswith(_INNER) for name in _names(tree)) or any(_reaches(tree)):
        raise _SeenError
    return ast.dump(_Quiet().visit(tree))


def _names(tree: ast.AST) -> Iterator[str]:
    """Those by which a program reaches what is not its own: of variables only what has the name of a built-in."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) if name.startswith("__") or hasattr(builtins, name):
                yield name
            case ast.Attribute(attr=name):
                yield name
            case ast.alias(name=name):
                yield from name.split(".")
            case ast.ImportFrom(module=str(name)) if name != "__future__":
                yield from name.split(".")
            case ast.MatchClass(kwd_attrs=names):
                yield from names


def _reaches(tree: ast.AST) -> Iterator[bool]:
    """Whether a statement reaches another module, or an error: Triton's say what stands in a kernel, and where."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                parts = [item.name.split(".") for item in names]
                yield any(first not in _MODULES or _JIT in rest for first, *rest in parts)
            case ast.ImportFrom(module=name, names=names, level=level):
                first, *rest = str(name).split(".")
                yield level > 0 or first not in _MODULES or _JIT in rest
                yield name not in _COMPILERS and any(item.name == _JIT for item in names)
            case ast.ExceptHandler(name=name):
                yield name is not None
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name.startswith("__") and name not in _OWN_METHODS
            case ast.Attribute(attr=name, value=of) if name == _JIT:
                yield not (isinstance(of, ast.Name) and of.id in _COMPILERS)
            case ast.MatchClass(kwd_attrs=names):
                yield _JIT in names
        yield _renames_a_compiler(node)


def _renames_a_compiler(node: ast.AST) -> bool:
    """Whether one of those names may be another thing's from here on."""
    match node:
        case ast.Name(ctx=ast.Load()) | ast.ImportFrom() | ast.alias(asname=None) | ast.Constant():
            return False
    return any(isinstance(value, str) and value in _COMPILERS for _, value in ast.iter_fields(node))


class _Quiet(ast.NodeTransformer):
    """Leaves out statements that are only a constant: docstrings, and what is used as a comment."""

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        """Nothing, for a constant."""
        return None if isinstance(node.value, ast.Constant) else self.generic_visit(node)


# --- CUDA ------------------------------------------------------------------------------------------------------------

_SPLICE = re.compile(r"\\[ \t\f\v\0]*\n")
_CUDA_TOKEN = re.compile(
    r"""
    (?P<comment> //[^\n]* | /\*.*?\*/ )
  | (?P<space> [ \t\f\v]+ )
  | (?P<line> \n )
  | (?P<raw> (?:u8|[uUL])?R" )
  | (?P<literal> (?:u8|[uUL])?(?: "(?:\\[^\n]|[^"\\\n])*" | '(?:\\[^\n]|[^'\\\n])*' ) )
  | (?P<number> \.?[0-9](?:[eEpP][+-]|'?[A-Za-z0-9_]|[.$])*+ )
  | (?P<word> (?:[A-Za-z0-9_$\x80-\U0010ffff]|\.(?![0-9]))+ )
  | (?P<sign> . )
    """,
    re.VERBOSE | re.DOTALL,
)
_RAW_STRING = re.compile(r'(?P<mark>[A-Za-z0-9_]{0,16})\(.*?\)(?P=mark)"', re.DOTALL)
_SEES_ITSELF = re.compile(
    r"\b(?:__LINE__|__FILE__|__BASE_FILE__|__builtin_\w*(?:LINE|COLUMN|FILE|location)|source_location|"
    r"__PRETTY_FUNCTION__|__STRING|__CONCAT|__has_include\w*|__has_embed|_?incbin|assert|__assert\w*|cassert)\b"
)
"""Words that tell where in its file something stands, or turn text into a string."""
_HEADER = re.compile(r'<(?:[\w.+-]|/(?!/))*>|"(?:[\w.+-]|/(?!/))*"', re.ASCII)
_INCLUDES = (["#", "include"], ["#", "include_next"], ["#", "import"])
_ONE_SIGN = frozenset(
    ["++", "--", "&&", "||", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "->",
     ">*", "::", "<:", ":>", "<%", "%>", "##", ".*", "=>", ":%"]
)  # fmt: skip
"""Neighbours that are one sign, or a part of one, where no space stands between them."""
_EXPONENT = re.compile(r"(?<=[eEpP])([+-])(?=.)")


class _Token(NamedTuple):
    """One word, number, literal or character of a sign; `touches` the one before it."""

    text: str
    kind: str
    touches: bool


def _cuda(text: str) -> str:
    """Tokens with one space between them; an end of line counts where a preprocessor's line ends."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    lines: list[list[_Token]] = [[]]
    for token in _tokens(text, lines):
        if not token.text:
            lines.append([])
        elif token.text == "(" and token.touches and _texts(lines[-1][:4])[:-1] == ["#", "define"]:
            # With a space between them the name would have no parameters.
            name = lines[-1].pop()
            lines[-1].append(name._replace(text=f"{name.text}("))
        else:
            lines[-1].append(token)
    return "".join(_joined(tokens) for tokens in _runs(lines))


def _tokens(text: str, lines: list[list[_Token]]) -> Iterator[_Token]:
    """The tokens; an empty one ends a line.

    Args:
        lines: what was made of them so far.

    Raises:
        _SeenError: the source has to be compared by its bytes.
    """
    kept = _unspliced(text)
    joined = "".join(map(text.__getitem__, kept))
    if _SEES_ITSELF.search(joined):
        raise _SeenError
    at, touches, literal = 0, False, False
    while found := _CUDA_TOKEN.match(joined, at):
        kind, at = str(found.lastgroup), found.end()
        if kind in {"comment", "space"}:
            touches = literal = False
            continue
        _require_one_reading(found, lines[-1], after_literal=literal)
        word = "" if kind == "line" else found[0]
        if kind == "raw":
            body = _raw_string(text, kept[at - 1] + 1, lines[-1])
            word, at = word + body, bisect_left(kept, kept[at - 1] + 1 + len(body))
        yield _Token(word, kind, touches)
        touches, literal = bool(word), kind in {"raw", "literal"}


def _unspliced(text: str) -> list[int]:
    """Where the characters stand that are left when lines are joined that end with a backslash."""
    kept, at = list[int](), 0
    for splice in _SPLICE.finditer(text):
        kept += range(at, splice.start())
        at = splice.end()
    kept += range(at, len(text))
    return kept


def _raw_string(text: str, begin: int, line: list[_Token]) -> str:
    """A raw string from behind its first quotation mark; nothing is joined in it."""
    found = _RAW_STRING.match(text, begin)
    if found is None or ("\n" in found[0] and _texts(line[:1]) == ["#"]):
        raise _SeenError
    return found[0]


def _require_one_reading(found: re.Match[str], line: list[_Token], *, after_literal: bool) -> None:
    """Refuse what compilers do not agree about, and what turns a macro's argument into text or joins words.

    Behind a quotation mark without its partner one may see the beginning of a comment where another sees none; an
    apostrophe behind a number is a part of it for older ones; what follows a string at once may be its suffix, and what
    ends a word with dots in it a string's prefix.
    """
    following = found.string[found.end() : found.end() + 1]
    pair = found[0] + following
    odd = {
        "raw": after_literal,
        "literal": after_literal and found[0][0].isalpha(),
        "number": following == "'",
        "word": following in {"'", '"'} and "." in found[0],
        "sign": found[0] in "\\'\"" or pair in {"%:", "/*"} or (found[0] == "#" and _texts(line[:1]) == ["#"]),
    }
    header = found[0][:1] in {"<", '"'} and _texts(line[:3]) in _INCLUDES
    if odd.get(str(found.lastgroup)) or (header and not _HEADER.match(found.string, found.start())):
        raise _SeenError


def _texts(tokens: list[_Token]) -> list[str]:
    return [token.text for token in tokens]


def _runs(lines: list[list[_Token]]) -> Iterator[list[_Token]]:
    """Preprocessor lines each by itself, and all that stands between two of them as if it were one line."""
    run = list[_Token]()
    for line in lines:
        if _texts(line[:1]) != ["#"]:
            run += line
            continue
        yield run
        yield line
        run = []
    yield run


def _joined(tokens: list[_Token]) -> str:
    if not tokens:
        return ""
    line = _shown(tokens[0])
    for before, token in pairwise(tokens):
        line += _between(before, token) + _shown(token)
    return f"\n{line}\n" if tokens[0].text == "#" else f"{line} "


def _shown(token: _Token) -> str:
    return _EXPONENT.sub(r" \1 ", token.text) if token.kind == "number" else token.text


def _between(before: _Token, token: _Token) -> str:
    """What stands between two tokens: two spaces where they would be another one, were they not kept apart."""
    end, begin = before.text[-1], token.text[0]
    if _is_one_word(before, token):
        return ""
    if token.touches:
        # A suffix of a literal.
        return "" if before.kind in {"raw", "literal"} and token.kind == "word" else " "
    is_exponent = before.kind == "number" and end in "eEpP" and begin in "+-"
    return "  " if is_exponent or end + begin in _ONE_SIGN else " "


def _is_one_word(before: _Token, token: _Token) -> bool:
    """Whether a space between two tokens says nothing: `threadIdx .x` is `threadIdx.x`, and `1. f` is not `1.f`."""
    end, begin = before.text[-1], token.text[0]
    dotted = "." in end + begin and not (end == "." and (begin == "." or begin.isdigit()))
    return dotted and _in_word(end) and _in_word(begin) and before.kind != "number"


def _in_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character in "_.$")
