"""How a `.cu` file is called: its launcher's C++ signature, and the text that the harness compiles behind the file.

A launcher is an ordinary C++ function of the entry's name: pointers to device memory in the manifest's order, sizes and
strides as `int64_t`, numbers by value, the stream last. A file may have one template for all types or an overload for
each. The harness adds one C function that takes everything as 64 bits and calls whichever of the file's functions fits:

    kernel_ladder_takes(s)      whether the file has a launcher for the s-th signature
    kernel_ladder_call(words)   words[0] is s; the others are addresses, integers and doubles' bits in order. words[0]
                                becomes 0, or 1 where something went wrong, which `kernel_ladder_error` then says
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from autograder.protocol import Load
from autograder.runner.report import SubmissionError

TYPES: Mapping[str, str] = {
    "float64": "double", "float32": "float", "float16": "__half", "bfloat16": "__nv_bfloat16",
    "int64": "int64_t", "int32": "int32_t", "int8": "int8_t", "uint8": "uint8_t", "bool": "bool",
}  # fmt: skip
"""What a tensor's elements are in C++, by torch's name."""

INTEGER = "integer"
SCALAR = "scalar"
"""What a signature says of a size or a stride, and of a number; of a tensor it says `input` or `output`."""

_TEXT = """
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <utility>
#ifdef CUDA_EMULATOR
static const char* kernel_ladder_status() { return nullptr; }
#else
static const char* kernel_ladder_status() {
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
#endif
static char kernel_ladder_text[1000];
static void kernel_ladder_say(const char* format, const char* text) {
  std::snprintf(kernel_ladder_text, sizeof kernel_ladder_text, format, text);
}
static double kernel_ladder_number(int64_t word) {
  double number;
  std::memcpy(&number, &word, sizeof number);
  return number;
}
template <class... T>
auto kernel_ladder_fits(int) -> decltype((void)ENTRY(std::declval<T>()...), 1) { return 1; }
template <class... T>
int kernel_ladder_fits(long) { return 0; }
template <class... T>
auto kernel_ladder_run(int, T... a) -> decltype((void)ENTRY(a...)) { ENTRY(a...); }
template <class... T>
void kernel_ladder_run(long, T...) {}
extern "C" {
const char* kernel_ladder_error() { return kernel_ladder_text; }
int kernel_ladder_takes(int signature) {
  switch (signature) {
TAKES
  }
  return 0;
}
void kernel_ladder_call(int64_t* words) {
  kernel_ladder_text[0] = 0;
  try {
    switch (words[0]) {
CALLS
    }
    if (const char* status = kernel_ladder_status()) kernel_ladder_say("%s", status);
  } catch (const std::exception& error) {
    kernel_ladder_say("an exception left the launcher: %s", error.what());
  } catch (...) {
    kernel_ladder_say("an exception left the launcher%s", "");
  }
  words[0] = kernel_ladder_text[0] != 0;
}
}
"""


def text(load: Load) -> str:
    """The C++ that follows the student's file."""
    takes, calls = [], []
    for number, signature in enumerate(load.signatures):
        types = [*map(_type, signature), "cudaStream_t"]
        values = [_value(word, place) for place, word in enumerate(signature, start=1)]
        takes.append(f"    case {number}: return kernel_ladder_fits<{', '.join(types)}>(0);")
        calls.append(f"      case {number}: kernel_ladder_run(0, {', '.join([*values, '(cudaStream_t)0'])}); break;")
    made = _TEXT.replace("TAKES", "\n".join(takes)).replace("CALLS", "\n".join(calls))
    return made.replace("ENTRY", load.entry)


def declaration(load: Load) -> str:
    """The launcher as a student writes it, with `T` for the types of the cases."""
    first = load.signatures[0] if load.signatures else ()
    varies = {place for place in range(len(first)) if len({signature[place] for signature in load.signatures}) > 1} or {
        place for place, word in enumerate(first) if _is_tensor(word)
    }
    parts = [
        (_type(word).replace(TYPES[word.split()[1]], "T") if place in varies else _type(word)) + f" {name}"
        for place, (word, name) in enumerate(zip(first, load.arguments, strict=True))
    ]
    return f"void {load.entry}({', '.join([*parts, 'cudaStream_t stream'])})"


def dtypes(signature: Sequence[str]) -> tuple[str, ...]:
    """The dtypes of a signature's tensors, in order."""
    return tuple(word.split()[1] for word in signature if _is_tensor(word))


def taken(load: Load, takes: Any) -> tuple[int, ...]:
    """Which signatures the file has a launcher for.

    Args:
        takes: the compiled file's `kernel_ladder_takes`.

    Raises:
        SubmissionError: for none.
    """
    found = tuple(number for number in range(len(load.signatures)) if takes(number))
    if found:
        return found
    wanted = f"`{declaration(load)}`"
    types = " and ".join(sorted({name for signature in load.signatures for name in dtypes(signature)}))
    if not re.search(rf"\b{load.entry}\b", load.source):
        message = f"The file defines no launcher {wanted}, with T for {types}."
        raise SubmissionError("entry", "MissingEntry", message)
    message = f"No function `{load.entry}` takes what a case gives it. The launcher is {wanted}, with T for {types}."
    raise SubmissionError("entry", "WrongSignature", message)


def missing(load: Load, given: Sequence[str]) -> SubmissionError:
    """A case's types for which the file has no launcher."""
    kinds = ", ".join(dict.fromkeys(TYPES.get(name, name) for name in given))
    message = (
        f"The file has no `{load.entry}` for tensors of {kinds}. Make the launcher a template over its type, or add an "
        "overload."
    )
    return SubmissionError("call", "MissingOverload", message)


def word_of(word: str, value: Any) -> int:
    """An argument as the 64 bits that `kernel_ladder_call` takes; a tensor's address, an integer, a double's bits."""
    if _is_tensor(word):
        return int(value.data_ptr())
    if word.startswith(f"{SCALAR} float"):
        return int(_DOUBLE.unpack(_DOUBLE_BITS.pack(value))[0])
    return int(value)


_DOUBLE_BITS, _DOUBLE = struct.Struct("<d"), struct.Struct("<q")


def _is_tensor(word: str) -> bool:
    return word.startswith(("input ", "output "))


def _value(word: str, place: int) -> str:
    if word.startswith(f"{SCALAR} float"):
        return f"({_type(word)})kernel_ladder_number(words[{place}])"
    return f"({_type(word)})words[{place}]"


def _type(word: str) -> str:
    if word == INTEGER:
        return "int64_t"
    role, dtype = word.split()
    plain = TYPES[dtype]
    return {"input": f"const {plain}*", "output": f"{plain}*"}.get(role, plain)
