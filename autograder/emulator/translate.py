"""Rewrite what of CUDA C++ is no C++: launches and shared memory. Lines stay where they are, so that errors name them.

A tokenizer, not a parser: it knows comments, strings, preprocessor lines and brackets. What it rewrites:

    kernel<T><<<grid, block, bytes, stream>>>(a, b);     a call of `launch`, each argument evaluated once
                                                         (`kernel` may be a variable that points to one)
    __global__ void __launch_bounds__(256) kernel() {    what follows is a call first, which tells the emulator what
                                                         was launched, and for how many threads it was written
    __shared__ float tile[32][33];                       a static variable that is poisoned when a block begins
    extern __shared__ float tile[];                      a pointer to the launch's dynamic shared memory

What cannot run here is refused by name, with its line, except where the file itself keeps it for GPUs: in what
`#ifndef CUDA_EMULATOR` begins, or `#else` after `#ifdef CUDA_EMULATOR`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

_SPLICE = r"\\[ \t\f\v\0]*\n"
"""What joins the next line to this one. g++ takes it as such with blanks in it too, and warns."""
_ESCAPED = rf"\\(?:{_SPLICE})*+[^\n]"
"""A backslash and its character, which may stand on the next line."""
_TOKEN = re.compile(
    rf"""
      (?P<directive>
        ^ (?: [ \t] | /\*.*?\*/ )*+ \#
        (?: "(?:[^"\\\n]|{_SPLICE}|{_ESCAPED})*+" | /\*.*?\*/ | [^\n\\/] | {_SPLICE} | {_ESCAPED} | /(?![/*]) )*+
      )
    | (?P<comment> //(?:[^\n\\]|{_SPLICE}|\\)*+ | /\*.*?\*/ )
    | (?P<raw> (?:u8|[uUL])?R"(?P<mark>[^\s()\\]{{0,16}})\(.*?\)(?P=mark)" )
    | (?P<text> (?:u8|[uUL])?(?: "(?:[^"\\\n]|{_SPLICE}|{_ESCAPED})*+" | '(?:[^'\\\n]|{_SPLICE}|{_ESCAPED})*+' ) )
    | (?P<word> [A-Za-z_]\w* )
    | (?P<number> \.?\d(?:[eEpP][+-]|'?[\w.])* )
    | (?P<launch> <<< | >>> )
    | (?P<space> \n | [^\S\n]+ )
    | (?P<other> :: | . )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)
_SILENT = frozenset({"space", "comment"})
_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = frozenset(_OPEN.values())

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
    "asm": "inline PTX",
    "__asm": "inline PTX",
    "__asm__": "inline PTX",
    "cudaLaunchKernel": "cudaLaunchKernel (write kernel<<<…>>>(…))",
    "cudaLaunchKernelEx": "launches with attributes",
    "cudaLaunchCooperativeKernel": "cooperative launches",
    "__cluster_dims__": "thread-block clusters",
    "__pipeline_memcpy_async": "asynchronous copies",
    "tex1Dfetch": "textures",
    "tex2D": "textures",
    **dict.fromkeys(UNCHECKED_WORDS, "what is not to be checked"),
}
REFUSED_HEADERS: Mapping[str, str] = {
    "cuda/": "libcu++",
    "cub/": "CUB",
    "thrust/": "Thrust",
    "cutlass/": "CUTLASS",
    "cute/": "CuTe",
    "cuda_pipeline": "asynchronous copies",
    "cudaTypedefs": "the driver API",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
}
MACRO = "CUDA_EMULATOR"
"""Defined where the emulator compiles."""

_BETWEEN_WORDS = re.compile(rf"/\*.*?\*/|{_SPLICE}", re.DOTALL)
_UNCHECKED = re.compile(rf"\b(?:{'|'.join(UNCHECKED_WORDS)})\b")
_INCLUDE = re.compile(r"#\s*include\s*[<\"]([^>\"]+)[>\"]")


class UnsupportedError(Exception):
    """The file needs something that runs on a GPU only; `line` counts from 1."""

    def __init__(self, line: int, what: str) -> None:
        super().__init__(f"line {line}: {what} cannot run on the CPU lane. It can on a GPU lane.")
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


def translate(source: str) -> str:
    """C++ that g++ compiles with the emulator's headers; every line keeps its number, and ends with a line feed.

    Raises:
        UnsupportedError: it needs something that only a GPU has.
        MalformedError: a launch or a shared variable that cannot be read.
    """
    # To g++ a carriage return ends a line too, also one behind a backslash.
    tokens = list(_tokens(source.replace("\r\n", "\n").replace("\r", "\n")))
    for token in _for_the_emulator(tokens):
        _refuse(token)
    return "".join(_Rewriter(tokens).rewritten())


def _tokens(source: str) -> Iterator[Token]:
    line = 1
    for match in _TOKEN.finditer(source):
        text = match.group()
        yield Token(str(match.lastgroup if match.lastgroup != "mark" else "raw"), text, line)
        line += text.count("\n")


def _for_the_emulator(tokens: Iterable[Token]) -> Iterator[Token]:
    """Those that are not in a branch for GPUs only."""
    branches: list[bool | None] = []
    """Of each condition that is open: whether this branch of it is for GPUs only; nothing is known of other ones."""
    for token in tokens:
        if token.kind == "directive":
            _follow_branches(token.text, branches)
        if True not in branches:
            yield token


def _follow_branches(directive: str, branches: list[bool | None]) -> None:
    words = _BETWEEN_WORDS.sub(_space_or_nothing, directive).replace("#", "# ", 1).split()[1:]
    match words[:1]:
        case ["ifndef"] | ["ifdef"]:
            ours = words[1:2] == [MACRO]
            branches.append(words[0] == "ifndef" if ours else None)
        case ["if"]:
            condition = "".join(words[1:]).replace("(", "").replace(")", "")
            branches.append({f"!defined{MACRO}": True, f"defined{MACRO}": False}.get(condition))
        case ["else"] if branches:
            before = branches.pop()
            branches.append(None if before is None else not before)
        case ["elif"] if branches:
            branches[-1] = None
        case ["endif"] if branches:
            branches.pop()


def _space_or_nothing(found: re.Match[str]) -> str:
    """To a compiler a comment is a space, and a continued line is one line."""
    return " " if found[0].startswith("/*") else ""


def _refuse(token: Token) -> None:
    if token.kind == "word" and token.text in REFUSED_WORDS:
        raise UnsupportedError(token.line, REFUSED_WORDS[token.text])
    if token.kind == "directive" and (word := _UNCHECKED.search(token.text)):
        raise UnsupportedError(token.line, REFUSED_WORDS[word[0]])
    if token.kind == "directive" and (include := _INCLUDE.search(token.text)):
        for start, what in REFUSED_HEADERS.items():
            if include[1].startswith(start):
                raise UnsupportedError(token.line, what)


class _Rewriter:
    """One walk over the tokens; `_at` is the next one."""

    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0
        self._out: list[str] = []
        self._depth = 0
        """Of braces; those of a namespace or an `extern "C"` block do not count."""
        self._transparent: list[bool] = []
        self._head_ends = 0
        """Where the last `__global__` function's body begins, or its declaration ends."""
        self._calls: dict[int, str] = {}
        """What has to follow some of the tokens, by their index."""

    def rewritten(self) -> list[str]:
        while self._at < len(self._tokens):
            token = self._tokens[self._at]
            if token.kind == "word" and token.text == "__shared__":
                self._shared()
            elif token.text == "<<<":
                self._launch()
            else:
                self._follow(token)
                self._out.append(token.text + self._calls.get(self._at, ""))
                self._at += 1
        return self._out

    def _follow(self, token: Token) -> None:
        """Know whether what comes next stands inside of a function, and where a kernel begins."""
        if token.text == "__global__" and self._at >= self._head_ends:
            self._kernel()
        elif token.text == "{":
            self._transparent.append(self._opens_a_namespace())
            self._depth += not self._transparent[-1]
        elif token.text == "}" and self._transparent:
            self._depth -= not self._transparent.pop()

    def _opens_a_namespace(self) -> bool:
        words = []
        for token in reversed(self._tokens[: self._at]):
            if token.text in {";", "}", "{", ")"} or token.kind == "directive":
                break
            if token.kind not in _SILENT:
                words.append(token.text)
        return "namespace" in words or (len(words) == 2 and words[1] == "extern")  # noqa: PLR2004  (extern "C")

    # --- kernels -----------------------------------------------------------------------------------------------------

    def _kernel(self) -> None:
        begin = end = self._at
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
        return token.text in {";", "{", "}"} or token.kind == "directive"

    # --- shared memory -----------------------------------------------------------------------------------------------

    def _shared(self) -> None:
        line = self._tokens[self._at].line
        before_it = self._take_back({"extern", "static", "volatile"})
        volatile = "volatile " if "volatile" in before_it else ""
        self._at += 1
        declaration = self._until(";", line, "a __shared__ variable has no semicolon at its end")
        text = "".join(token.text for token in declaration)
        if "extern" in before_it or self._starts("extern", declaration):
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
        self._out.append(f"{before} static {volatile}{text[len(before) :].lstrip()};{begins}".lstrip())

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
        self._out.append(f"{static}{kind}* const {names[0]} = reinterpret_cast<{kind}*>({memory});")
        self._out.append("\n" * sum(token.text.count("\n") for token in declaration))

    def _take_back(self, words: set[str]) -> set[str]:
        """Remove those of `words` that stand at the end of what was written, and say which did."""
        taken: set[str] = set()
        for index in range(len(self._out) - 1, -1, -1):
            if self._out[index].isspace():
                continue
            if self._out[index] not in words:
                break
            taken.add(self._out.pop(index))
        return taken

    # --- launches ----------------------------------------------------------------------------------------------------

    def _launch(self) -> None:
        line = self._tokens[self._at].line
        callee = self._callee(line)
        self._at += 1
        configuration = self._until(">>>", line, "a launch has <<< without >>>")
        after = self._next_meaning()
        if after is None or after.text != "(":
            raise MalformedError(line, "after >>> come the kernel's arguments in parentheses")
        gap = self._skip_to_meaning()
        self._at += 1
        arguments = self._until(")", line, "the arguments of a launch have no closing parenthesis")
        inside = _Rewriter(arguments).rewritten()
        passed = "".join(inside)
        comma = ", " if passed.strip() else ""
        config = "".join(token.text for token in configuration)
        name = callee.partition("<")[0].strip()
        # A variable that points to the kernel is captured. It lies in the host's memory, which no thread may read else.
        body = f"[=](auto... arguments_) CUDA_EMULATOR_UNCHECKED {{ {callee.strip()}(arguments_...); }}"
        self._out.append(
            f'::cuda_emulator::launch("{name}", {line}, ::cuda_emulator::Configuration({config}), '
            f"{body}{gap}{comma}{passed})"
        )

    def _callee(self, line: int) -> str:
        """Take the kernel's name, with its template arguments, back from what was written."""
        taken: list[str] = []
        while self._out and self._out[-1].isspace():
            taken.append(self._out.pop())
        if self._out and self._out[-1] == ">":
            self._take_template_arguments(taken, line)
        expect_name = True
        while self._out:
            text = self._out[-1]
            if expect_name and re.fullmatch(r"[A-Za-z_]\w*", text):
                taken.append(self._out.pop())
                expect_name = False
            elif not expect_name and text == "::":
                taken.append(self._out.pop())
                expect_name = True
            else:
                break
        callee = "".join(reversed(taken))
        if not re.search(r"\w", callee):
            raise MalformedError(line, "before <<< a launch needs the name of a kernel, or of a variable with one")
        return callee

    def _take_template_arguments(self, taken: list[str], line: int) -> None:
        depth = 0
        while self._out:
            text = self._out.pop()
            taken.append(text)
            depth += (text == ">") - (text == "<")
            if depth == 0:
                while self._out and self._out[-1].isspace():
                    taken.append(self._out.pop())
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

    def _next_meaning(self) -> Token | None:
        rest = self._tokens[self._at :]
        return next((token for token in rest if token.kind not in _SILENT), None)

    def _skip_to_meaning(self) -> str:
        gap = ""
        while self._tokens[self._at].kind in _SILENT:
            gap += self._tokens[self._at].text
            self._at += 1
        return gap


def _launch_bounds(head: list[Token]) -> str:
    """The arguments of `__launch_bounds__`; nothing where they may be other ones in the body, or may not be there."""
    groups = list(_in_parentheses(head))
    bounds = [inside for before, inside in groups if before == "__launch_bounds__"]
    if len(bounds) != 1 or any(token.kind == "directive" for token in head):
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
