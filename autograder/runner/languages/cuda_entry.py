"""How a `.cu` file is called: its launcher's C++ signature, and the text that the harness compiles behind the file.

A launcher is an ordinary C++ function of the entry's name: pointers to device memory in the manifest's order, sizes and
strides as `int64_t`, numbers by value, the stream last. A file may have one template for all types or an overload for
each. The harness adds one C function that takes everything as 64 bits and calls whichever of the file's functions fits:

    kernel_ladder_takes(s)      whether the file has a launcher for the s-th signature, counted through all functions
    kernel_ladder_call(words)   words[0] is s; the others are addresses, integers and doubles' bits in order. words[0]
                                becomes 0, or 1 where something went wrong, which `kernel_ladder_error` then says
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator, Mapping, Sequence
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
// A template is made for every type of the cases, also where the file's own headers only name it.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
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
// The linker leads every launch here (--wrap): it is counted, and of a ghost nothing more.
struct KernelLadderLaunch {
  const char* kernel;
  dim3 grid;
  uint64_t calls;
};
static KernelLadderLaunch kernel_ladder_launches[64];
static unsigned kernel_ladder_count = 0;
static bool kernel_ladder_ghost = false;
static bool kernel_ladder_record(const void* function, dim3 grid) {
  const char* name = "";
  cudaFuncGetName(&name, function);
  for (unsigned i = 0; i < kernel_ladder_count; ++i) {
    KernelLadderLaunch& known = kernel_ladder_launches[i];
    const bool same = known.grid.x == grid.x && known.grid.y == grid.y && known.grid.z == grid.z;
    if (same && known.kernel == name) return ++known.calls, !kernel_ladder_ghost;
  }
  if (kernel_ladder_count < 64) kernel_ladder_launches[kernel_ladder_count++] = {name, grid, 1};
  return !kernel_ladder_ghost;
}
#define KL_WRAP(name, Function)                                                                                     \
  extern "C" cudaError_t __real_##name(Function, dim3, dim3, void**, size_t, cudaStream_t);                         \
  extern "C" cudaError_t __wrap_##name(Function f, dim3 grid, dim3 block, void** a, size_t bytes, cudaStream_t s) { \
    return kernel_ladder_record((const void*)f, grid) ? __real_##name(f, grid, block, a, bytes, s) : cudaSuccess;   \
  }
KL_WRAP(__cudaLaunchKernel, cudaKernel_t)
KL_WRAP(__cudaLaunchKernel_ptsz, cudaKernel_t)
KL_WRAP(cudaLaunchKernel, const void*)
KL_WRAP(cudaLaunchCooperativeKernel, const void*)
extern "C" {
cudaError_t __real_cudaLaunchKernelExC(const cudaLaunchConfig_t*, const void*, void**);
cudaError_t __wrap_cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* f, void** a) {
  return kernel_ladder_record(f, config->gridDim) ? __real_cudaLaunchKernelExC(config, f, a) : cudaSuccess;
}
void kernel_ladder_set_ghost(int ghost) { kernel_ladder_ghost = ghost != 0; }
void kernel_ladder_forget() { kernel_ladder_count = 0; }
bool kernel_ladder_launched(unsigned number, const char** kernel, unsigned* grid, uint64_t* calls) {
  if (number >= kernel_ladder_count) return false;
  const KernelLadderLaunch& launch = kernel_ladder_launches[number];
  *kernel = launch.kernel, *calls = launch.calls;
  grid[0] = launch.grid.x, grid[1] = launch.grid.y, grid[2] = launch.grid.z;
  return true;
}
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
LAUNCHERS
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

_LAUNCHER = """
template <class... T>
auto kernel_ladder_fits_ENTRY(int) -> decltype((void)ENTRY(std::declval<T>()...), 1) { return 1; }
template <class... T>
int kernel_ladder_fits_ENTRY(long) { return 0; }
template <class... T>
auto kernel_ladder_run_ENTRY(int, T... a) -> decltype((void)ENTRY(a...)) { ENTRY(a...); }
template <class... T>
void kernel_ladder_run_ENTRY(long, T...) {}
"""

WRAPPED = (
    "__cudaLaunchKernel", "__cudaLaunchKernel_ptsz", "cudaLaunchKernel", "cudaLaunchCooperativeKernel",
    "cudaLaunchKernelExC",
)  # fmt: skip
"""The runtime's functions that launch; on a GPU lane `ld --wrap` leads each to the text's own."""


def text(load: Load) -> str:
    """The C++ that follows the student's file."""
    takes, calls = [], []
    of_all = [(one.entry, signature) for one in load.each() for signature in one.signatures]
    for number, (entry, signature) in enumerate(of_all):
        types = [*map(_type, signature), "cudaStream_t"]
        values = [*(_value(word, place) for place, word in enumerate(signature, start=1)), "(cudaStream_t)0"]
        takes.append(f"    case {number}: return kernel_ladder_fits_{entry}<{', '.join(types)}>(0);")
        calls.append(f"      case {number}: kernel_ladder_run_{entry}(0, {', '.join(values)}); break;")
    launchers = "".join(_LAUNCHER.replace("ENTRY", one.entry) for one in load.each())
    made = _TEXT.replace("TAKES", "\n".join(takes)).replace("CALLS", "\n".join(calls))
    return made.replace("LAUNCHERS", launchers)


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
    message = (
        f"No function `{load.entry}` accepts the arguments of a case. The launcher is {wanted}, with T for {types}."
    )
    raise SubmissionError("entry", "WrongSignature", message)


def launchers(load: Load, takes: Callable[[int], Any]) -> Iterator[tuple[Load, Words]]:
    """Each function that the file has to define, as the only one, with what makes words of its arguments.

    Args:
        takes: the compiled file's `kernel_ladder_takes`.

    Raises:
        SubmissionError: the file has no launcher for one of them.
    """
    first = 0
    for one in load.each():
        found = taken(one, lambda number, first=first: takes(first + number))
        yield one, Words(one, found, first)
        first += len(one.signatures)


class Words:
    """Turns a call's arguments into the words of `kernel_ladder_call`.

    Args:
        first: number of its first signature among those of all functions of the file.
    """

    def __init__(self, load: Load, takes: Sequence[int], first: int = 0) -> None:
        self._load = load
        self._first = first
        self._by_dtypes = {dtypes(load.signatures[number]): number for number in takes}
        self._known: dict[tuple[Any, ...], int] = {}

    def of(self, arguments: Sequence[Any]) -> list[int]:
        """The signature's number, then one word for each argument.

        Raises:
            SubmissionError: the file has no launcher for tensors of these types.
        """
        given = tuple([value.dtype for value in arguments if is_tensor(value)])
        number = self._known.get(given)
        if number is None:
            number = self._known[given] = self._found(given)
        return [self._first + number, *map(_word, self._load.signatures[number], arguments)]

    def _found(self, given: tuple[Any, ...]) -> int:
        names = tuple(str(dtype).removeprefix("torch.") for dtype in given)
        if names in self._by_dtypes:
            return self._by_dtypes[names]
        kinds = ", ".join(dict.fromkeys(TYPES.get(name, name) for name in names))
        message = (
            f"The file has no `{self._load.entry}` for tensors of {kinds}. Make the launcher a template over its type, "
            "or add an overload."
        )
        raise SubmissionError("call", "MissingOverload", message)


def is_tensor(value: object) -> bool:
    """Whether an argument is a tensor; the others are numbers."""
    return not isinstance(value, int | float)


def _word(word: str, value: Any) -> int:
    """A tensor's address, an integer, or a double's bits."""
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
