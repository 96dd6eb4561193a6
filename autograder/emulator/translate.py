"""Rewrite what of CUDA C++ is no C++: launches, shared memory, inline PTX. Errors go on to name the file's own lines.

It reads what `g++ -E` made of the file: macros are expanded, and what no condition lets through is gone. A tokenizer,
not a parser: it knows strings, preprocessor lines and brackets. What it rewrites:

    kernel<T><<<grid, block, bytes, stream>>>(a, b);     a call of `launch`, each argument evaluated once
                                                         (`kernel` may be a variable that points to one)
    __global__ void __launch_bounds__(256) kernel() {    what follows is a call first, which tells the emulator what
                                                         was launched, and for how many threads it was written
    __shared__ float tile[32][33];                       a static variable that is poisoned when a block begins
    extern __shared__ float tile[];                      a pointer to the launch's dynamic shared memory
    cudaLaunchKernel((void*)kernel, …)                   the same without the cast
    asm volatile("…" : …);                               a call that says what cannot run here, where it is reached
"""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import ClassVar

_SPLICE = r"\\[ \t\f\v\0]*\n"
"""What joins the next line to this one. g++ takes it as such with blanks in it too, and warns."""
_ESCAPED = rf"\\(?:{_SPLICE})*+[^\n]"
"""A backslash and its character, which may stand on the next line."""
_NAMED = r"\\(?: u[\da-fA-F]{4} | U[\da-fA-F]{8} )"
"""How g++ writes a letter of a name that is not one of ASCII's."""
_TOKEN = re.compile(
    rf"""
      (?P<directive>
        ^ (?: [ \t] | /\*.*?\*/ )*+ (?: \# | %: )
        (?: "(?:[^"\\\n]|{_SPLICE}|{_ESCAPED})*+" | /\*.*?\*/ | [^\n\\/] | {_SPLICE} | {_ESCAPED} | /(?![/*]) )*+
      )
    | (?P<comment> //(?:[^\n\\]|{_SPLICE}|\\)*+ | /\*.*?\*/ )
    | (?P<raw> (?:u8|[uUL])?R"(?P<mark>[^\s()\\]{{0,16}})\(.*?\)(?P=mark)" )
    | (?P<text> (?:u8|[uUL])?(?: "(?:[^"\\\n]|{_SPLICE}|{_ESCAPED})*+" | '(?:[^'\\\n]|{_SPLICE}|{_ESCAPED})*+' ) )
    | (?P<word> (?: [^\W\d] | {_NAMED} )(?: \w | {_NAMED} )*+ )
    | (?P<number> \.?\d(?:[eEpP][+-]|'?[\w.])* )
    | (?P<launch> <<< | >>> )
    | (?P<space> \n | [^\S\n]+ )
    | (?P<letter> {_NAMED} | [^\x00-\x7f] )
    | (?P<other> :: | . )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SILENT = frozenset({"space", "comment"})
_BETWEEN_WORDS = re.compile(rf"/\*.*?\*/|{_SPLICE}", re.DOTALL)
_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = frozenset(_OPEN.values())

CHECKS = ("thread", "alignment", "bounds")
"""What the compiler has looked at, by its names."""
UNCHECKED = "what is not to be checked"
UNCHECKED_WORDS = (
    "no_sanitize", "__no_sanitize__", "no_sanitize_address", "__no_sanitize_address__",
    "no_address_safety_analysis", "__no_address_safety_analysis__",
    "no_sanitize_undefined", "__no_sanitize_undefined__",
    "no_sanitize_thread", "__no_sanitize_thread__", "no_sanitize_coverage", "__no_sanitize_coverage__",
    "CUDA_EMULATOR_UNCHECKED",
)  # fmt: skip
"""By which a function says that its accesses are not to be looked at; in macros too. The compiler refuses all but our
own (`unchecked.h`): a macro may put them together from pieces."""

REFUSED_WORDS: Mapping[str, str] = {
    "__cluster_dims__": "thread-block clusters (__cluster_dims__)",
    **dict.fromkeys(UNCHECKED_WORDS, UNCHECKED),
}
ASSEMBLY = frozenset({"asm", "__asm", "__asm__"})
PTX = "inline PTX"
MACRO = "CUDA_EMULATOR"
"""Defined where the emulator compiles."""
ENTRY_FILE = "<entry>"
"""What errors call the text that follows the student's file."""

_NULL = frozenset({"NULL", "__null"})
_ESCAPE = re.compile(r"\\[uU]([\da-fA-F]+)")
_UNCHECKED = re.compile(rf"\b(?:{'|'.join(UNCHECKED_WORDS)})\b")
_PRECOMPILED = re.compile(r"pch_preprocess")
_OF_LINES = re.compile(r"(?:#|%:)\s*(?:line\b|\d)")
_MARKER = re.compile(r'# (\d+) "((?:[^"\\]|\\.)*)"((?: \d)*)')
_MARKERS = re.compile(rf"^{_MARKER.pattern}$", re.MULTILINE)
_ENTERS, _RETURNS = "1", "2"
"""What a marker says where a header begins, and where the file that includes it goes on."""
_QUALIFIERS = frozenset({"volatile", "__volatile__", "__volatile", "inline", "goto"})
_STORAGE = frozenset({"extern", "static", "volatile"})
_BEFORE_A_STATEMENT = frozenset({"{", "}", ";", ")", ":", "else", "do"})
_NOT_CHECKED = "__attribute__((no_sanitize({})))".format(", ".join(f'"{check}"' for check in CHECKS))
_KERNEL = "__attribute__((noinline, noclone))"
"""The address of its code says which kernel a thread runs: none may become a part of its launch, or two of itself."""
_TO_VOID = r"(?:const )?void (?:const )?\*"
_CAST = re.compile(rf"\( (?:\( {_TO_VOID} \)|(?:reinterpret|static)_cast < {_TO_VOID} >)")
"""Of the first argument of a call, each token behind a space."""
_MOST_EMPTY_LINES = 8
_ALIKE = {
    **dict.fromkeys("\u201c\u201d\u201e", '"'), **dict.fromkeys("\u2018\u2019", "'"),
    **dict.fromkeys("\u2013\u2014\u2212", "-"), "\u00d7": "*", "\u00f7": "/",
}  # fmt: skip
"""What looks like a sign of C++, or was put in its place by an editor."""


class UnsupportedError(Exception):
    """The file needs something that runs on a GPU only; `line` counts from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {not_here(what)}")
        self.line = line
        self.what = what


class MalformedError(Exception):
    """A launch or a shared variable that cannot be read; `line` counts from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what}")
        self.line = line
        self.what = what


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of the source: `kind` is a group of the tokenizer, `line` where it begins."""

    kind: str
    text: str
    line: int


def not_here(what: str) -> str:
    """What a student is told of what only a GPU has."""
    where = f"It can on a GPU lane: put it between #ifndef {MACRO} and #else, and what runs here before #endif."
    return f"{what} cannot run on the CPU lane. {where}"


def with_its_own_lines(source: str) -> str:
    """The file without the directives by which it would say that its lines are other ones, or another file's."""
    kept = (
        "\n" * token.text.count("\n") if token.kind == "directive" and _says_a_line(token.text) else token.text
        # To g++ a carriage return ends a line too, also one behind a backslash.
        for token in _tokens(source.replace("\r\n", "\n").replace("\r", "\n"))
    )
    return "".join(kept)


def _says_a_line(directive: str) -> bool:
    plain = _BETWEEN_WORDS.sub(lambda found: " " if found[0].startswith("/*") else "", directive)
    return bool(_OF_LINES.match(plain.strip()))


def translate(preprocessed: str, name: str) -> str:
    """C++ that g++ compiles as a preprocessed file.

    Args:
        preprocessed: what `g++ -E -fpch-preprocess` made of the student's file, with its markers of lines.
        name: of the student's file, in the markers.

    Raises:
        UnsupportedError: it needs something that only a GPU has.
        MalformedError: a launch, a shared variable or a character that cannot be read.
    """
    begin = preprocessed.index(f'# 1 "{name}"\n')
    if _PRECOMPILED.search(preprocessed, begin):
        raise MalformedError(1, "the file names a precompiled header; there are none but the emulator's own")
    tokens = list(_own_tokens(preprocessed, begin))
    for token in tokens:
        _refuse(token)
    return preprocessed[:begin] + _written(_Rewriter(tokens).rewritten(), name)


def _tokens(source: str) -> Iterator[Token]:
    line = 1
    for match in _TOKEN.finditer(source):
        text = match.group()
        yield Token(_kind(match), text, line)
        line += text.count("\n")


def _kind(match: re.Match[str]) -> str:
    return "raw" if match.lastgroup == "mark" else str(match.lastgroup)


def _own_tokens(text: str, at: int) -> Iterator[Token]:
    """The student's, from `at` on, each with its line; a header is one token, with the marker behind it."""
    line = 1
    while (match := _TOKEN.match(text, at)) is not None:
        at = match.end()
        token = Token(_kind(match), match.group(), line)
        marker = _MARKER.fullmatch(token.text) if token.kind == "directive" else None
        if marker is None:
            yield token
            line += token.text.count("\n")
            continue
        if marker[2] == ENTRY_FILE:
            yield Token("header", text[match.start() :], line)
            return
        if _ENTERS in marker[3].split() and marker[2].startswith("/"):
            marker = _behind_a_header(text, at)
            yield Token("header", text[match.start() : marker.end()], int(marker[1]))
            at = marker.end()
        # The marker's own line ends first.
        line = int(marker[1]) - 1


def _behind_a_header(text: str, at: int) -> re.Match[str]:
    """The marker where the file goes on that included the header which begins at `at`."""
    depth = 1
    for marker in _MARKERS.finditer(text, at):
        flags = marker[3].split()
        depth += (_ENTERS in flags) - (_RETURNS in flags)
        if depth == 0:
            return marker
    raise MalformedError(1, "a header without an end")


def _refuse(token: Token) -> None:
    if token.kind == "word" and token.text in REFUSED_WORDS:
        raise UnsupportedError(token.line, REFUSED_WORDS[token.text])
    if token.kind == "directive" and _UNCHECKED.search(token.text):
        raise UnsupportedError(token.line, UNCHECKED)
    if token.kind in {"word", "letter"}:
        for letter in _ESCAPE.sub(lambda found: chr(int(found[1], 16)), token.text):
            if letter != "_" and not letter.isalnum():
                raise MalformedError(token.line, no_character(letter))


def no_character(letter: str) -> str:
    """What a student is told of a character that no C++ has outside of strings and comments."""
    name = unicodedata.name(letter, "a character without a name")
    plain = _ALIKE.get(letter) or unicodedata.normalize("NFKC", letter)
    instead = f" Write {'a space' if plain == ' ' else plain}" if plain.isascii() and plain.isprintable() else ""
    return f"the character U+{ord(letter):04X} ({name.lower()}) is not valid in C++.{instead or ' Remove it'}."


def _written(tokens: list[Token], name: str) -> str:
    """Each on its line."""
    # The file begins before a header that it includes.
    out, at = [f'# 1 "{name}"\n'], 1
    for token in tokens:
        if token.kind == "space":
            out.append(token.text.replace("\n", ""))
            continue
        if token.kind == "header":
            out.append(f"\n{token.text}\n")
            at = token.line
            continue
        if token.line != at or token.kind == "directive":
            near = at < token.line <= at + _MOST_EMPTY_LINES and token.kind != "directive"
            out.append("\n" * (token.line - at) if near else f'\n# {token.line} "{name}"\n')
        out.append(token.text)
        at = token.line + token.text.count("\n")
        if token.kind == "directive":
            out.append("\n")
            at += 1
    return "".join(out)


class _Rewriter:
    """One walk over the tokens; `_at` is the next one."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._out: list[Token] = []
        self._depth = 0
        """Of braces; those of a namespace or an `extern "C"` block do not count."""
        self._transparent: list[bool] = []
        self._head_ends = 0
        """Where the last `__global__` function's body begins, or its declaration ends."""
        self._calls: dict[int, str] = {}
        """What has to follow some of the tokens, by their index."""

    def rewritten(self) -> list[Token]:
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.text == "<<<":
                self._launch()
            elif token.kind == "word" and token.text in self._rewrites:
                self._rewrites[token.text](self)
            else:
                self._follow(token)
        return self._out

    def _write(self, text: str, line: int) -> None:
        self._out.append(Token("made", text, line))

    def _follow(self, token: Token) -> None:
        """Copy it, and know whether what comes next stands inside of a function."""
        if token.text == "{":
            self._transparent.append(self._opens_a_namespace())
            self._depth += not self._transparent[-1]
        elif token.text == "}" and self._transparent:
            self._depth -= not self._transparent.pop()
        self._out.append(token)
        if self._at in self._calls:
            self._write(self._calls[self._at], token.line)
        self._at += 1

    def _opens_a_namespace(self) -> bool:
        words = []
        for token in reversed(self._tokens[: self._at]):
            if self._ends_a_declaration(token) or token.text == ")":
                break
            if token.kind not in _SILENT:
                words.append(token.text)
        return "namespace" in words or (len(words) == 2 and words[1] == "extern")  # noqa: PLR2004  (extern "C")

    # --- kernels -----------------------------------------------------------------------------------------------------

    def _kernel(self) -> None:
        self._write(_KERNEL, self._tokens[self._at].line)
        self._at += 1
        if self._at <= self._head_ends:
            return
        begin = end = self._at - 1
        while begin > 0 and not self._ends_a_declaration(self._tokens[begin - 1]):
            begin -= 1
        depth = 0
        while end < len(self._tokens) and (depth or self._tokens[end].text not in {"{", ";"}):
            depth += (self._tokens[end].text in _OPEN) - (self._tokens[end].text in _CLOSE)
            end += 1
        self._head_ends = end
        if end < len(self._tokens) and self._tokens[end].text == "{":
            bounds = _launch_bounds(self._tokens[begin:end])
            self._calls[end] = f" ::cuda_emulator::kernel_begins({bounds});"

    def _ends_a_declaration(self, token: Token) -> bool:
        return token.text in {";", "{", "}"} or token.kind in {"directive", "header"}

    def _bounds(self) -> None:
        """They are told by the kernel's first call."""
        line = self._tokens[self._at].line
        self._at += 1
        self._in_parentheses(line, "__launch_bounds__ comes with numbers in parentheses")

    def _not_inlined(self) -> None:
        """A word of CUDA's; in an attribute it is the compiler's own."""
        before = next((token.text for token in reversed(self._out) if token.kind not in _SILENT), "")
        if before not in {"(", ","}:
            self._tokens[self._at] = replace(self._tokens[self._at], text="__attribute__((noinline))")
        self._follow(self._tokens[self._at])

    # --- inline PTX --------------------------------------------------------------------------------------------------

    def _assembly(self) -> None:
        """A statement says what it cannot do where it is reached; one of no instructions does nothing."""
        line = self._tokens[self._at].line
        before = next((token.text for token in reversed(self._out) if token.kind not in _SILENT), "")
        if self._depth == 0 or before not in _BEFORE_A_STATEMENT:
            raise UnsupportedError(line, PTX)
        self._at += 1
        while (token := self._next_meaning()) is not None and token.text in _QUALIFIERS:
            self._skip_to_meaning()
            self._at += 1
        inside = self._in_parentheses(line, "inline PTX without parentheses")
        instructions = itertools.takewhile(lambda token: token.text not in {":", "::"}, inside)
        empty = all(token.kind in _SILENT or not token.text.strip('" \t') for token in instructions)
        self._write("(void)0" if empty else f'::cuda_emulator::gpu_only("{PTX}", {line})', line)

    # --- shared memory -----------------------------------------------------------------------------------------------

    def _shared(self) -> None:
        line = self._tokens[self._at].line
        before_it = self._take_declaration(line)
        words = {token.text for token in before_it}
        volatile = "volatile " if "volatile" in words else ""
        self._at += 1
        declaration = self._until(";", line, "a __shared__ variable has no semicolon at its end")
        # `float __shared__ tile[32]` is the same as with the words exchanged.
        declaration = [token for token in before_it if token.text not in _STORAGE] + declaration
        text = "".join(token.text for token in declaration)
        if "extern" in words or self._starts("extern", declaration):
            self._dynamic(declaration, line, volatile)
            return
        names = list(_declared(declaration))
        if not names:
            raise MalformedError(line, "a __shared__ variable without a name")
        if any(token.text == "=" for token in declaration):
            raise MalformedError(line, f"{names[0]} is __shared__ and cannot have an initial value")
        begins = "".join(
            f" static ::cuda_emulator::SharedOwner {name}_owner_;"
            f' ::cuda_emulator::shared_begins({name}, {name}_owner_, "{name}", {line});'
            for name in names
        )
        # `alignas` stands before everything else in a declaration, or does not stand.
        alignment = re.match(r"\s*alignas\s*\((?:[^()]|\([^()]*\))*\)", text)
        before = alignment[0] if alignment else ""
        self._write(f"{before} static {volatile}{text[len(before) :].lstrip()};{begins}".lstrip(), line)

    def _starts(self, word: str, declaration: list[Token]) -> bool:
        first = next((token for token in declaration if token.kind not in _SILENT), None)
        return first is not None and first.text == word

    def _dynamic(self, declaration: list[Token], line: int, volatile: str) -> None:
        names = list(_declared(declaration))
        if len(names) != 1:
            raise MalformedError(line, "extern __shared__ declares one array")
        kind = volatile + _type_of(declaration, names[0])
        # A pointer, not an array: the compiler would not have accesses to a global array looked at. Its value is an
        # address that is known when the file is linked, so it is there before anything runs.
        static = "static " if self._depth == 0 else ""
        memory = "::cuda_emulator::dynamic_shared + ::cuda_emulator::shared_margin_bytes"
        self._write(f"{static}{kind}* const {names[0]} = reinterpret_cast<{kind}*>({memory});", line)

    def _take_declaration(self, line: int) -> list[Token]:
        """Remove the words before `__shared__` from what was written: where the variable lives, its type."""
        taken: list[Token] = []
        while self._out:
            if self._out[-1].text == ">":
                self._take_template_arguments(taken, line)
            elif self._out[-1].kind in {"word", *_SILENT} or self._out[-1].text == "::":
                taken.append(self._out.pop())
            else:
                break
        while taken and taken[-1].kind in _SILENT:
            self._out.append(taken.pop())
        return taken[::-1]

    # --- launches ----------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        line = self._tokens[self._at].line
        taken = self._callee(line)
        callee = "".join(token.text for token in taken).strip()
        self._at += 1
        configuration = self._until(">>>", line, "a launch has <<< without >>>")
        arguments = self._in_parentheses(line, "after >>> come the kernel's arguments in parentheses")
        # The launch's own parameters would make an integer of it, which no pointer is initialised from.
        arguments = [replace(one, text="nullptr") if one.text in _NULL else one for one in arguments]
        name = callee.partition("<")[0].strip()
        # Only the literal itself is both a number and a null pointer: it stands in the call, where it is not passed on.
        parameters, passed, arguments = _without_zeros(arguments)
        # A variable that points to the kernel is captured. It lies in the host's memory, which no thread may read else.
        body = f"[=]({parameters}) {_NOT_CHECKED} {{ {callee}({passed}); }}"
        self._write(f'::cuda_emulator::launch("{name}", {line}, ::cuda_emulator::Configuration(', taken[0].line)
        self._out += configuration
        self._write(f"), {body}", line)
        if any(token.kind not in _SILENT for token in arguments):
            self._write(", ", line)
            self._out += _Rewriter(arguments).rewritten()
        self._write(")", arguments[-1].line if arguments else line)

    def _launch_by_call(self) -> None:
        """Without the cast to `void*`, by which the emulator could not know what arguments the kernel takes."""
        self._follow(self._tokens[self._at])
        ahead = [index for index in range(self._at, len(self._tokens)) if self._tokens[index].kind not in _SILENT][:9]
        cast = _CAST.match(" ".join(self._tokens[index].text for index in ahead))
        if cast is not None:
            self._write("(", self._tokens[self._at].line)
            self._at = ahead[cast[0].count(" ")] + 1

    def _callee(self, line: int) -> list[Token]:
        """Take the kernel's name, with its template arguments, back from what was written."""
        taken: list[Token] = []
        self._take_space(taken)
        if self._out and self._out[-1].text in {">", ">>>"}:
            self._take_template_arguments(taken, line)
        expect_name = True
        while self._out:
            token = self._out[-1]
            if (expect_name and token.kind == "word") or (not expect_name and token.text == "::"):
                taken.append(self._out.pop())
                expect_name = not expect_name
            else:
                break
        if all(token.kind != "word" for token in taken):
            raise MalformedError(line, "before <<< a launch needs the name of a kernel, or of a variable with one")
        return taken[::-1]

    def _take_space(self, taken: list[Token]) -> None:
        while self._out and self._out[-1].kind in _SILENT:
            taken.append(self._out.pop())

    def _take_template_arguments(self, taken: list[Token], line: int) -> None:
        depth = 0
        while self._out:
            token = self._out.pop()
            taken.append(token)
            depth += token.text.count(">") - (token.text == "<")
            if depth == 0:
                self._take_space(taken)
                return
        raise MalformedError(line, "the template arguments before <<< have no beginning")

    # --- walking -----------------------------------------------------------------------------------------------------

    def _until(self, end: str, line: int, trouble: str) -> list[Token]:
        """The tokens up to `end` outside of all brackets; `_at` is behind it then."""
        taken: list[Token] = []
        depth = 0
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            self._at += 1
            if token.text == end and depth == 0:
                return taken
            depth += (token.text in _OPEN) - (token.text in _CLOSE)
            if depth < 0:
                break
            taken.append(token)
        raise MalformedError(line, trouble)

    def _in_parentheses(self, line: int, trouble: str) -> list[Token]:
        """The tokens in the parentheses that come next; `_at` is behind them then."""
        after = self._next_meaning()
        if after is None or after.text != "(":
            raise MalformedError(line, trouble)
        self._skip_to_meaning()
        self._at += 1
        return self._until(")", line, f"{trouble}: they are not closed")

    def _next_meaning(self) -> Token | None:
        rest = itertools.islice(self._tokens, self._at, None)
        return next((token for token in rest if token.kind not in _SILENT), None)

    def _skip_to_meaning(self) -> None:
        while self._tokens[self._at].kind in _SILENT:
            self._at += 1

    _rewrites: ClassVar[Mapping[str, Callable[[_Rewriter], None]]] = {
        "__global__": _kernel,
        "__launch_bounds__": _bounds,
        "__noinline__": _not_inlined,
        "__shared__": _shared,
        "cudaLaunchKernel": _launch_by_call,
        **dict.fromkeys(ASSEMBLY, _assembly),
    }


def _without_zeros(arguments: list[Token]) -> tuple[str, str, list[Token]]:
    """The parameters of the lambda that calls a kernel, what it passes on, and a launch's arguments for it.

    An argument that is the literal 0 is written into the call, and is left out of the arguments.
    """
    split = _arguments(arguments)
    texts = ["".join(token.text for token in one if token.kind not in _SILENT) for one in split]
    if "0" not in texts:
        return "auto... arguments_", "arguments_...", arguments
    names = ["0" if text == "0" else f"argument_{index}_" for index, text in enumerate(texts)]
    given = [one for one, text in zip(split, texts, strict=True) if text != "0"]
    comma = [Token("other", ",", arguments[0].line)]
    joined = [token for one in given for token in (*one, *comma)][: -len(comma)]
    return ", ".join(f"auto {name}" for name in names if name != "0"), ", ".join(names), joined


def _arguments(tokens: list[Token]) -> list[list[Token]]:
    """What stands between the commas outside of all brackets; nothing where a `<` may be one or may be less-than."""
    split, depth, behind = [list[Token]()], 0, 0
    for index, token in enumerate(tokens):
        if depth == 0 and index >= behind and token.text in {"<", ">"}:
            behind = _behind_template_arguments(tokens, index)
            if not behind:
                return []
        depth += (token.text in _OPEN) - (token.text in _CLOSE)
        if depth == 0 and index >= behind and token.text == ",":
            split.append([])
        else:
            split[-1].append(token)
    return split


def _behind_template_arguments(tokens: list[Token], begin: int) -> int:
    """The index behind the `>` of the `<` at `begin`, 0 if no call or name follows, as after `static_cast<int>`."""
    depth = 0
    for index in range(begin, len(tokens)):
        depth += (tokens[index].text == "<") - (tokens[index].text == ">")
        if depth <= 0:
            after = next((token.text for token in tokens[index + 1 :] if token.kind not in _SILENT), "")
            return index + 1 if depth == 0 and index > begin and after in {"(", "{", "::"} else 0
    return 0


def _launch_bounds(head: list[Token]) -> str:
    """The arguments of `__launch_bounds__`; nothing where they may be other ones in the body."""
    groups = list(_in_parentheses(head))
    bounds = [inside for before, inside in groups if before == "__launch_bounds__"]
    if len(bounds) != 1:
        return ""
    parameters = {name for before, inside in groups if before != "__launch_bounds__" for name in _declared(inside)}
    if any(token.text in parameters for token in bounds[0]):
        return ""
    return "".join(" " if token.kind in _SILENT else token.text for token in bounds[0])


def _in_parentheses(tokens: list[Token]) -> Iterator[tuple[str, list[Token]]]:
    """What stands in each pair of outer parentheses, behind the word or sign that stands before them."""
    before, inside, depth = "", list[Token](), 0
    for token in tokens:
        depth -= token.text == ")"
        if depth > 0:
            inside.append(token)
        elif token.text == ")":
            yield before, inside
            inside = []
        elif token.text != "(" and token.kind not in _SILENT:
            before = token.text
        depth += token.text == "("


def _declared(declaration: list[Token]) -> Iterator[str]:
    """The names that a declaration declares: the last word before `[`, `,`, `=` or the end, outside of brackets."""
    depth, name = 0, ""
    for token in declaration:
        if token.kind in _SILENT:
            continue
        if depth == 0 and token.text in {"[", ",", "="} and name:
            yield name
            name = ""
        depth += (token.text in _OPEN) + (token.text == "<") - (token.text in _CLOSE) - (token.text == ">")
        if depth == 0 and token.kind == "word":
            name = token.text
    if name and depth == 0:
        yield name


def _type_of(declaration: list[Token], name: str) -> str:
    """What stands before the name, less what says where the variable lives and how it is aligned."""
    words: list[str] = []
    skip = 0
    for index, token in enumerate(declaration):
        if token.kind == "word" and token.text == name and not skip:
            break
        if skip:
            skip += (token.text == "(") - (token.text == ")")
            skip -= token.text == ")" and skip == 1
            continue
        if token.text in {"__align__", "alignas"}:
            skip = 1 if declaration[index + 1].text == "(" else 0
            continue
        if token.text in {"extern", "static"}:
            continue
        words.append(token.text if token.kind not in _SILENT else " ")
    return "".join(words).strip()
