"""How a call can go wrong, in verdicts and in the student's words."""

from __future__ import annotations

import re
import signal
import sysconfig
from dataclasses import dataclass
from pathlib import Path

import autograder
from autograder import languages
from autograder.contract import Frame, StudentError, Verdict
from autograder.languages.record import ErrorKind
from autograder.protocol import Raised
from autograder.sandbox import Exit

MAX_FRAMES = 20
MAX_MESSAGE = 4000
MAX_LINE = 300
NAMELESS = "an exception"
"""The kind of one whose runner says none."""

_ACCESS = {signal.SIGSEGV, signal.SIGBUS}
_OUT_OF_MEMORY = ("MemoryError", "OutOfMemoryError")
_GPU_ACCESS = ("illegal memory access", "misaligned address", "an illegal instruction", "invalid program counter")
"""What the driver says when a kernel touched what is not mapped. The context is of no use after it."""
_KINDS = languages.error_kinds()
_ROOTS = (
    *(f"{sysconfig.get_path(name)}/" for name in ("purelib", "platlib", "stdlib")),
    f"{Path(autograder.__file__).resolve().parents[1]}/",
)
"""Folders of this installation, the longest first; there may be spaces in them."""
_WORD = re.compile(r"[A-Z][a-z]+")
_PATH = re.compile(r"/[^\s:'\"<>()\[\],;=]+")
_PACKAGES = re.compile(r"(?:site|dist)-packages/|/lib/python3[.\d]*/(?!(?:site|dist)-packages/)")
_ALLOCATION = ("can't allocate memory", "not enough memory", "Cannot allocate memory")


@dataclass(frozen=True)
class Failure:
    """A call, or a load, that did not end as it should.

    Attributes:
        message: one sentence for the student, with its next step.
        ended: the runner is gone, or must go.
        starved: only the backstop ended it: the machine may have been too busy for it.
    """

    verdict: Verdict
    message: str
    error: StudentError | None = None
    ended: bool = True
    starved: bool = False


def from_raised(raised: Raised, source: str | None = None, *, loading: bool = False) -> Failure:
    """An exception that the runner reports.

    Args:
        loading: the file was being loaded; the judge knows, whatever the runner says of it.
        source: the student's file: where it is given, the text of a frame's line is taken from it, not from the runner,
            and frames that are not in it are left out.
    """
    error = StudentError(
        kind=clean(raised.kind, MAX_LINE).strip() or NAMELESS,
        message=clean(raised.message, MAX_MESSAGE),
        frames=tuple(_clean_frame(frame) for frame in _in_file(raised.frames, source)[-MAX_FRAMES:]),
    )
    place = f"line {error.frames[-1].line}: " if error.frames else ""
    named = error.message if _names_its_kind(error) else f"{error.kind}: {error.message}"
    short = f"{place}{named}".splitlines()[0].rstrip(": ")
    if error.kind in _OUT_OF_MEMORY or any(words in error.message for words in _ALLOCATION):
        message = f"{_stop(short)} It asked for more memory than there is."
        return Failure(Verdict.out_of_memory, message, error, ended=False)
    kind = _KINDS.get(error.kind, ErrorKind())
    if kind.verdict == Verdict.illegal_access or any(words in error.message for words in _GPU_ACCESS):
        message = f"{_stop(short)} {_advice(error.message)}".rstrip()
        return Failure(Verdict.illegal_access, message, error, ended=kind.verdict != Verdict.illegal_access)
    if kind.verdict:
        return Failure(Verdict(kind.verdict), f"{_stop(short)} {kind.advice}".rstrip(), error, ended=False)
    if loading:
        return Failure(Verdict.compile_error, f"The file did not load: {_stop(short)}", error)
    return Failure(Verdict.runtime_error, _stop(short), error, ended=False)


def _names_its_kind(error: StudentError) -> bool:
    """Whether the message of an error of ours begins with its kind in words: `a data race: …` of a `DataRace`."""
    words = _WORD.findall(error.kind)
    begins = error.message.partition(":")[0].lower()
    return error.kind in _KINDS and all(word.lower() in begins.split() for word in words)


def _advice(message: str) -> str:
    """What to look at, by what was said of the access."""
    if "misaligned" in message:
        return "A wide load or store begins at a multiple of its own size: look at where the pointer comes from."
    return ""


def from_exit(ending: Exit, during: str) -> Failure:
    """A runner that died `during` something, such as *the call* or *loading*."""
    if ending.out_of_memory:
        return Failure(Verdict.out_of_memory, f"The memory limit was reached in {during}. Use smaller blocks.")
    if ending.output_exceeded:
        return Failure(Verdict.output_limit, f"Too much was printed in {during}. Take the prints out of the loop.")
    if ending.signal is None:
        kind = f"exit status {ending.code}"
        message = f"The process ended itself in {during} with {kind}. Return from the function instead."
        return Failure(Verdict.runtime_error, message, StudentError(kind, ""))
    return _from_signal(ending.signal, during)


def _from_signal(number: int, during: str) -> Failure:
    name = signal_name(number)
    error = StudentError(name, "")
    if number in _ACCESS:
        message = f"Memory outside the arguments was touched in {during} ({name}). Check offsets and masks."
        return Failure(Verdict.illegal_access, message, error)
    if number == signal.SIGSYS:
        return Failure(Verdict.rule_violation, f"A forbidden system call was made in {during}.", error)
    return Failure(Verdict.runtime_error, f"The process was ended by a signal in {during} ({name}).", error)


def violation(message: str) -> Failure:
    """The runner did not keep to the protocol: only code that reaches around its arguments does that."""
    return Failure(Verdict.rule_violation, message)


def out_of_time(during: str, limit_s: float, *, used: bool = False, starved: bool = False) -> Failure:
    """A wait that came to its end.

    Args:
        limit_s: what is said of it: the limit, or by the backstop how long it was.
        used: it lasted longer, and used so much processor time.
    """
    advice = "Look for a loop that does not end, or for too many programs."
    what = f"used {limit_s:.3g} s of processor time" if used else f"did not end within {limit_s:.3g} s"
    message = f"{during.capitalize()} {what} and was stopped. {advice}"
    return Failure(Verdict.time_limit, message, starved=starved)


def out_of_total(total_s: float, *, starved: bool = False) -> Failure:
    """All calls together took too long."""
    advice = "Start fewer programs, or do more work in each."
    message = f"All calls together took more than {total_s:.3g} s. {advice}"
    return Failure(Verdict.time_limit, message, starved=starved)


def not_stopped(during: str, *, starved: bool = False) -> Failure:
    """It answered, and what it began goes on: a thread or a child in a system call that does not end."""
    advice = "Ask the system for less at a time, and leave nothing running."
    message = f"After {during} a process of the submission could not be stopped. {advice}"
    return Failure(Verdict.time_limit, message, starved=starved)


def signal_name(number: int) -> str:
    """`SIGSEGV`, or the number where it has no name."""
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


def clean(text: str, max_chars: int) -> str:
    """Text from a runner without control characters and the node's own paths, cut to `max_chars` characters."""
    kept = "".join(letter if letter.isprintable() or letter in "\n\t" else "�" for letter in text[:max_chars])
    for root in _ROOTS:
        kept = kept.replace(root, "")
    return _PATH.sub(_shown_path, kept) + (" …" if len(text) > max_chars else "")


def _shown_path(found: re.Match[str]) -> str:
    """A path as it is below the packages of any Python; any other as it is."""
    path = found[0]
    inside = max(_PACKAGES.finditer(path), key=re.Match.end, default=None)
    return path if inside is None else path[inside.end() :]


def _in_file(frames: tuple[Frame, ...], source: str | None) -> tuple[Frame, ...]:
    if source is None:
        return frames
    lines = source.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    inside = (frame for frame in frames if 1 <= frame.line <= len(lines))
    return tuple(Frame(frame.line, frame.function, lines[frame.line - 1].strip()) for frame in inside)


def _clean_frame(frame: Frame) -> Frame:
    return Frame(frame.line, clean(frame.function, MAX_LINE), clean(frame.code, MAX_LINE))


def _stop(sentence: str) -> str:
    return sentence if sentence.endswith((".", "!", "?", "…")) else sentence + "."
