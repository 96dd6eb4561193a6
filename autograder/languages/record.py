"""What is to be said of a language, once: `Language` has a field for everything that some part of the course asks."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal

_ID = re.compile(r"[a-z][a-z0-9_]{0,23}")
_ENDING = re.compile(r"\.[a-z0-9_]{1,15}")
_DOTTED = re.compile(r"[a-z_][\w.]*:\w+")
_CPU = "cpu"
HARNESS = "harness"
"""The extra of this package that every node has installed."""


@dataclass(frozen=True)
class ErrorKind:
    """What an error of this kind means beside its own words, where that is not the verdict of any error.

    Attributes:
        verdict: the verdict it gets in a call, as `contract.Verdict` spells it; `""` for that of any error. The harness
            raises such an error before harm is done: the runner goes on.
        advice: a sentence for the student that follows the error's own words.
        at_launch: compile checks say it of a kernel that compiled and that the device would not launch.
    """

    verdict: Literal["", "illegal_access", "wrong_answer"] = ""
    advice: str = ""
    at_launch: bool = False


@dataclass(frozen=True)
class Record:
    """One language.

    What is named as `module:name` is imported where it is used, and nowhere else: a record itself imports the standard
    library only.

    Attributes:
        id: what databases, packets, manifests and receipts call it; also the name of its folder.
        title: what people read.
        order: its place in lists; the first is taken where nobody says a language.
        endings: of its files, each with its dot; the first is given to new ones.
        recognised_by: a pattern that is found in a file of it, where it shares an ending with others.
        editor_mode: what the editor of the pages colours it by; unknown modes stay plain.
        lexer: one of Pygments' by an alias, or a class as `module:name`; colours listings and reads for similarity.
        cpu_lane: what runs it on the CPU lane, or why nothing does and where else to go, as a sentence.
        cpu_loader, gpu_loader: class with the interface `runner.languages.Loader`, by lane; `""` where it is not run.
        normal_form: a source without what no compiler of it sees; raises `ValueError` where a source may see that.
        declares: whether a source plausibly compiles and defines a function of this name.
        error_kinds: kinds of errors that its loaders and compile checks raise, beside Python's own exceptions.
        compiler: function without arguments that imports what compiles it for devices that are not there, and returns
            what serves a runner's channel; `""` where nothing compiles it.
        compiles_for: vendors whose devices it makes code for, as `compile_checks.targets` names them.
        compile_s: seconds that compile checks of one submission may compile for.
        brings_compiler: its compiler is a part of what every node that grades it has installed.
        compiled_at_load: all of its kernels are compiled when a source is loaded, otherwise when they are launched.
        precompiles: its compiler fills packs before a runner of a GPU lane calls anything (`cache_warmup`).
        name_in_code: what its compiler calls the file, from the name that was handed in.
        warm: a judge has its toolchain ready before the first job.
        environment: variables of a runner that calls it on the CPU lane.
        driver_environment: variables of the judge's own that its runners on a GPU lane have too.
        kept_environment: how the names of variables begin that a node leaves to its judge.
        packages: what has to be installed with Python, by distribution's name and version as pip reads it.
        extra: of this package, by which pip installs them: `harness`, or one of its own where a node may do without.
        in_images: its packages may be in images that this project's scripts make.
        optional: packages that a source may use beside, by the extra that installs them: a node without them grades the
            language, and refuses by name what needs them.
        system: what has to be installed beside Python, as Debian names it.
        counted_by: what counts a call of it on the CPU lane (`autograder.counters`); `""` where nothing does.
        calls_libraries: its entries can do an exercise by a library's call, and then staff are shown it.
        reaches: what in a source may reach what counts, or do work that is not counted; `""` where nothing is seen.
        imports: modules whose absence makes local grading of it impossible.
    """

    id: str
    title: str
    order: int
    endings: tuple[str, ...]
    editor_mode: str
    lexer: str
    normal_form: Callable[[str], str]
    declares: Callable[[str, str], bool]
    cpu_lane: str
    cpu_loader: str = ""
    gpu_loader: str = ""
    recognised_by: str = ""
    error_kinds: Mapping[str, ErrorKind] = field(default_factory=dict)
    compiler: str = ""
    compiles_for: tuple[str, ...] = ("nvidia",)
    compile_s: float = 0.0
    brings_compiler: bool = False
    compiled_at_load: bool = False
    precompiles: bool = False
    name_in_code: Callable[[str], str] = str
    counted_by: str = ""
    calls_libraries: bool = True
    reaches: Callable[[str], str] = lambda _: ""
    warm: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    driver_environment: tuple[str, ...] = ()
    kept_environment: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    extra: str = HARNESS
    in_images: bool = True
    optional: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    system: tuple[str, ...] = ()
    imports: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuse a record that could not be looked up, or that names nothing that can be imported."""
        dotted = filter(None, (self.cpu_loader, self.gpu_loader, self.compiler))
        wrong = [
            *([self.id] if not _ID.fullmatch(self.id) else []),
            *(ending for ending in self.endings if not _ENDING.fullmatch(ending)),
            *(name for name in dotted if not _DOTTED.fullmatch(name)),
        ]
        if wrong or not self.endings:
            raise ValueError(f"the record of the language {self.id!r} is wrong: {', '.join(wrong) or 'no ending'}")

    def refused(self, lane: str) -> str:
        """Why a source is not graded on a lane, with the next step; `""` where it is."""
        if self.loader(lane):
            return ""
        return f"{self.title} does not run on the lane {lane}. {self.cpu_lane if lane == _CPU else ''}".rstrip()

    @property
    def all_packages(self) -> tuple[str, ...]:
        """Those without which it is not graded, and the optional ones."""
        return (*self.packages, *(package for packages in self.optional.values() for package in packages))

    @property
    def extension(self) -> str:
        """The ending of its new files, without the dot."""
        return self.endings[0].removeprefix(".")

    def loader(self, lane: str) -> str:
        """The loader on a lane, `""` where it is not run there."""
        return self.cpu_loader if lane == _CPU else self.gpu_loader
