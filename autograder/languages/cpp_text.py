"""What is said of a source in C++'s syntax: whether it plausibly compiles, and its form for compilers.

It is read as g++ reads it with `-std=c++17`, which nvcc has preprocess its files too: lines end with a line feed, a
carriage return or both; a backslash at the end of a line joins the next one to it, also with blanks behind it, but not
inside of a raw string; trigraphs are off. `tests/server/grading/test_normal.py` asks it.

In a form `==` is two words, and two spaces stand where a space keeps two words apart.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

_SPLICE = re.compile(r"\\[ \t\f\v\0]*\n")
_TOKEN = re.compile(
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
_HEADERS = frozenset({
    "algorithm", "array", "cassert", "cfloat", "climits", "cmath", "cstddef", "cstdint", "cstdio", "limits", "numeric",
    "stdint.h", "stdio.h", "math.h", "float.h", "assert.h", "tuple", "type_traits", "utility", "vector",
    "cooperative_groups.h", "cooperative_groups/memcpy_async.h", "cooperative_groups/reduce.h", "mma.h",
    "cute/tensor.hpp",
})  # fmt: skip
"""What kernels and their launchers include, beside headers of CUDA's own."""
_REACHES = re.compile(
    r"cuda_emulator\w*|CUDA_EMULATOR_\w*|__tsan\w*|__attribute\w*|__builtin_\w*|_Pragma|dlm?(?:open|v?sym|addr1?|_iterate_phdr)|"
    r"syscall|system|mmap|mprotect|munmap|ptrace|process_vm_\w+|f?open\w*|freopen|popen|fork|vfork|exec[lv]\w*|clone|pthread\w*|"
    r"atexit|signal|sigaction|w?memp?(?:cpy|move|set)|str(?:n?cpy|cat|dup)|setjmp|longjmp|copy_n|copy_backward|"
    r"move_backward|environ|getenv|setenv"
)
"""Words by which C++ moves memory past the emulator's look, or reaches the process that it runs in."""
_OF_STD = re.compile(r"\bstd\s*:\s*:\s*(?:copy|move\s*\(.*,)|\b(?:using\s+namespace|=)\s+std\b|\busing\s+std\b")
"""The same by the names of C++'s library."""
_ONE_SIGN = frozenset(
    ["++", "--", "&&", "||", "<<", ">>", "==", "!=", "<=", ">=", "+=", "-=", "*=", "/=", "%=", "&=", "|=", "^=", "->",
     ">*", "::", "<:", ":>", "<%", "%>", "##", ".*", "=>", ":%"]
)  # fmt: skip
"""Neighbours that are one sign, or a part of one, where no space stands between them."""
_EXPONENT = re.compile(r"(?<=[eEpP])([+-])(?=.)")


class _SeenError(ValueError):
    """The source may see what the form would leave out, or compilers may read it in more than one way."""


class _Token(NamedTuple):
    """One word, number, literal or character of a sign; `touches` the one before it."""

    text: str
    kind: str
    touches: bool


def shown_name(filename: str) -> str:
    """A plain name for the student's file: names come from students, and this one is written to a folder."""
    name = re.sub(r"[^\w.-]", "_", filename, flags=re.ASCII)
    return name if re.match(r"\w", name) else f"_{name}"


def names_before_bracket(text: str, name: str) -> bool:
    """Whether the name stands before a bracket somewhere."""
    return re.search(rf"\b{re.escape(name)}\s*\(", text) is not None


def reaches(text: str) -> str:
    """What in the source may reach the process that it runs in, or move memory unseen; `""` if nothing is seen.

    No wall: it says whose counters a person looks at before they give points.
    """
    try:
        text = normal_form(text)
    except ValueError:
        text = re.sub(r"//[^\n]*", "", text)
    if "##" in text or "\\u" in text or "\\U" in text:
        return "it puts words together from pieces"
    for header in re.findall(r"#\s*(?:include|import|include_next)\b\s*([^\n]*)", text):
        name = re.sub(r'[<>"\s]', "", header)
        if name not in _HEADERS and not re.fullmatch(r"cuda[\w/]*(?:\.h)?", name):
            return f"it includes {name[:80]}"
    word = next((word for word in re.findall(r"[A-Za-z_]\w*", text) if _REACHES.fullmatch(word)), "")
    word = word or ("std" if _OF_STD.search(text) else "")
    return f"it uses `{word[:80]}`" if word else ""


def normal_form(text: str) -> str:
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
    while found := _TOKEN.match(joined, at):
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
