"""What g++ does not take, where that is no mistake of the student's or the compiler's words would not help.

CUDA's own names that the emulator does not have stand in `gpu_only.txt`. g++ says that it does not know one; the
student is told that it runs on a GPU only. The headers of its libraries stand in `library_headers.txt`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from autograder.emulator.translate import UNCHECKED, MalformedError, UnsupportedError, no_character
from autograder.languages.cuda import headers

REFUSED_HEADERS: Mapping[str, str] = {
    "cuda/": "libcu++",
    "nv/": "libcu++",
    "cub/": "CUB",
    "thrust/": "Thrust",
    "cutlass/": "CUTLASS",
    "cute/": "CuTe",
    "cooperative_groups/": "this part of cooperative groups",
    "cuda_awbarrier": "barriers in shared memory",
    "cuda_fp4": "floats of 4 bits",
    "cuda_fp6": "floats of 6 bits",
    "cuda_fp8": "floats of 8 bits",
    "cuda_": "this part of CUDA",
    "cudaTypedefs": "the driver API",
    "cudaProfiler": "the profiler",
    "texture_": "textures",
    "surface_": "surfaces",
    "nvtx3/": "marks for the profiler",
    "nvToolsExt": "marks for the profiler",
    "cublas": "cuBLAS",
    "cudnn": "cuDNN",
    "cufft": "cuFFT",
    "curand": "cuRAND",
    "cusolver": "cuSOLVER",
    "cusparse": "cuSPARSE",
    "nccl": "NCCL",
    "nvrtc": "code that is compiled while it runs",
}
"""What begins so is a header of CUDA's that the emulator does not have."""
LIBRARIES: Mapping[str, str] = {
    "cub/": "cub|Cub[A-Z]\\w*|CUB_\\w+",
    "thrust/": "thrust|THRUST_\\w+",
    "cutlass/": "cutlass|CUTLASS_\\w+",
    "cute/": "cute|CUTE_\\w+",
    "cublas": "cublas\\w+|CUBLAS(?:LT)?_\\w+",
    "cudnn": "cudnn\\w+|CUDNN_\\w+",
    "cufft": "cufft\\w+|CUFFT_\\w+",
    "curand": "curand\\w*|CURAND_\\w+",
    "cusolver": "cusolver\\w+|CUSOLVER_\\w+",
    "cusparse": "cusparse\\w+|CUSPARSE_\\w+",
    "nccl": "nccl\\w+|NCCL_\\w+",
    "nvrtc": "nvrtc\\w+|NVRTC_\\w+",
    "nvtx3/": "nvtx\\w*|NVTX_\\w+",
    "nvToolsExt": "nvtx\\w*|NVTX_\\w+",
    "cuda_fp8": "",
}
"""Those of them whose names are known by how they look, or stand in `gpu_only.txt`: a file may include those of
`library_headers.txt` if it does not use them, and is refused where it does. No other header begins so."""
_NAMES = Path(__file__).with_name("gpu_only.txt")
_HEADERS = Path(__file__).with_name("library_headers.txt")
_DRIVER = re.compile(r"cu[A-Z]\w*|CU[a-z]\w*|CU_\w+")

_ERROR = re.compile(r"^(?P<file>[^\n:]+):(?P<line>\d+):(?:\d+:)? (?:fatal )?error: (?P<text>.*)$", re.MULTILINE)
_NO_HEADER = re.compile(r"(\S+): No such file or directory")
_NO_CHARACTER = re.compile(r"extended character (.) is not valid")
_POISONED = re.compile(r'attempt to use poisoned "')
_UNKNOWN = re.compile(
    "not declared|not been declared|no declaration|no arguments to|does not name a (?:template )?type"
    "|is not a member|has no member|is not a (?:class|type|template|namespace)|was not found"
)
_QUOTED = re.compile(r"'([^']*)'")
_WORD = re.compile(r"[A-Za-z_](?:\w|\\[uU][\da-fA-F]+)*")
# Cyrillic and Greek letters on the left.
_ALIKE = str.maketrans(
    "\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u0458\u0455\u0501\u0410\u0412\u0415\u041a\u041c\u041d\u041e"
    "\u0420\u0421\u0422\u0425\u0406\u0408\u0405\u03bf\u03bd\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d"
    "\u039f\u03a1\u03a4\u03a5\u03a7",
    "aeopcyxijsdABEKMHOPCTXIJSovABEZHIKMNOPTYX",
)
_ESCAPE = re.compile(r"\\[uU]([\da-fA-F]{4,8})")


def raise_for(output: str, name: str, source: str) -> None:
    """Raise what the first error comes to, if it is one of these.

    Args:
        output: g++'s errors.
        name: by which they call the student's file.
        source: the student's file.

    Raises:
        UnsupportedError: for what only a GPU has.
        MalformedError: for a header that nobody has, or a character that is no C++.
    """
    _raise_for_cutlass(output, name)
    # "variable or field declared void" hides what comes next: a parameter's type that g++ does not know.
    errors = (error for error in _ERROR.finditer(output) if error["file"] == name)
    found = next((error for error in errors if "declared void" not in error["text"]), None)
    if found is None:
        return
    line, text = int(found["line"]), found["text"]
    if header := _NO_HEADER.search(text):
        _raise_for_header(header[1], line)
    if _POISONED.search(text):
        raise UnsupportedError(line, UNCHECKED)
    if letter := _NO_CHARACTER.search(text):
        raise MalformedError(line, no_character(letter[1]))
    if _UNKNOWN.search(text):
        words = [word for quoted in _QUOTED.findall(text) for word in _WORD.findall(quoted)]
        _raise_for_names(words, line)
        _raise_for_alike(words, source)


def _raise_for_cutlass(output: str, name: str) -> None:
    """What of CUTLASS needs more than CuTe's algebra does not compile by itself, whatever the student makes of it."""
    first = _ERROR.search(output)
    if first is None or not headers.folder() or not first["file"].startswith(f"{headers.folder()}/cutlass/"):
        return
    before = output[: first.start()]
    included = re.search(rf"\bfrom {re.escape(name)}:(\d+)", before)
    if included and "required from" not in before:
        header = Path(first["file"]).relative_to(headers.folder())
        raise UnsupportedError(int(included[1]), f"CUTLASS (<{header}>)")


def unused_header(output: str, name: str) -> str:
    """The library's header that g++ did not find, if that is its first error: an empty file can take its place."""
    found = next((error for error in _ERROR.finditer(output) if error["file"] == name), None)
    header = _NO_HEADER.search(found["text"]) if found else None
    return header[1] if header and header[1] in library_headers() else ""


def _raise_for_header(header: str, line: int) -> None:
    for start, what in REFUSED_HEADERS.items():
        if header.startswith(start) and (start not in LIBRARIES or header in library_headers()):
            raise UnsupportedError(line, f"{what} (<{header}>)")
    only = "A submission is one file: include everything it needs in that file."
    raise MalformedError(line, f"there is no header `{header}` here. {only}")


def _raise_for_names(words: list[str], line: int) -> None:
    for word in words:
        if what := families().get(word) or _library(word) or ("the driver API" if _DRIVER.fullmatch(word) else ""):
            raise UnsupportedError(line, f"`{word}` ({what})")
        if (plain := _ESCAPE.sub(lambda code: chr(int(code[1], 16)), word)) != word:
            raise MalformedError(line, f"`{plain}` is not declared. It has {_foreign(plain)}.")


def _library(word: str) -> str:
    start = next((start for start, names in LIBRARIES.items() if re.fullmatch(names, word)), "")
    absent = f"; {headers.ABSENT}" if start == "cute/" and not headers.folder() else ""
    return f"{REFUSED_HEADERS[start]}{absent}" if start else ""


def _raise_for_alike(words: list[str], source: str) -> None:
    """A name that is declared with letters which only look like these."""
    for found in re.finditer(r"\w+", source):
        if not found[0].isascii() and found[0].translate(_ALIKE) in words:
            line = 1 + source.count("\n", 0, found.start())
            raise MalformedError(
                line, f"`{found[0]}` is not `{found[0].translate(_ALIKE)}`: it has {_foreign(found[0])}."
            )


def _foreign(word: str) -> str:
    letters = [letter for letter in dict.fromkeys(word) if not letter.isascii()]
    names = " and ".join(f"U+{ord(letter):04X} ({unicodedata.name(letter, '').lower()})" for letter in letters)
    return f"letters that are not ASCII: {names}"


@cache
def families() -> Mapping[str, str]:
    """Names that only a GPU has, each with what it is for."""
    return dict(_named(_NAMES.read_text(encoding="utf-8")))


@cache
def library_headers() -> frozenset[str]:
    """Headers of libraries that only a GPU has."""
    return frozenset(name for name, _ in _named(_HEADERS.read_text(encoding="utf-8")))


def _named(text: str) -> Iterator[tuple[str, str]]:
    what = ""
    for line in text.splitlines():
        if line.startswith("["):
            what = line.strip("[]")
        elif not line.startswith("#"):
            yield from ((name, what) for name in line.split())
