"""The rules of this house that no general tool knows. `make check` runs them; tests/architecture tests each.

A rule is a function from a `Tree` to the places where it is broken. `python scripts/house_rules.py [FOLDER]` prints
those places and the length of our functions, and exits 1 if there are any.
"""

from __future__ import annotations

import ast
import io
import re
import statistics
import subprocess
import sys
import tokenize
import tomllib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from autograder import languages
from autograder.contract import Verdict

PACKAGES = ("autograder", "broker", "client", "server", "worker")
MAX_FUNCTION_LINES = 60
ANY_LANGUAGE = "*"

# A broad except swallows what it was not meant for; these are the edges where everything has to be caught.
BROAD_EXCEPT_ALLOWED: dict[str, str] = {
    "autograder/runner": "around the untrusted call",
    "autograder/compile_checks": "around the untrusted call",
    "autograder/judge": "around the job",
    "autograder/profiling": "around the untrusted call, in a child of a fork",
    "autograder/sandbox/shut_in.py": "a child of a fork must not return into its parent's code",
    "worker": "around the job",
    "server/recorder": "around the job",
    "server/dispatcher": "around the job",
    "server/messages/sender.py": "around the job",
    "server/operations/doctor.py": "around a check: one that breaks must not keep the others from being made",
    "server/written/markdown.py": "around a converter that raises whatever its parser met",
}
# Where the name of a language stands beside its record: files or folders, which names, and why.
LANGUAGES_NAMED: dict[str, tuple[tuple[str, ...], str]] = {
    "autograder/languages/": ((ANY_LANGUAGE,), "the records"),
    "autograder/runner/languages/": ((ANY_LANGUAGE,), "the loaders, which the records name"),
    "autograder/emulator/": (("cuda",), "what the CPU lane makes of one language"),
    "autograder/compile_checks/absent.py": (("triton", "cuda"), "a part of one language's compiler"),
    "autograder/compile_checks/cuda_compiler.py": (("cuda",), "a part of one language's compiler"),
    "autograder/compile_checks/cuda_session.py": (("cuda",), "a compiler, which a record names"),
    "autograder/compile_checks/cute_session.py": (("cute_dsl",), "a compiler, which a record names"),
    "autograder/compile_checks/tirx_session.py": (("tirx", "cuda"), "a compiler, which a record names"),
    "autograder/compile_checks/dry.py": (("triton", "cuda"), "a part of one language's compiler"),
    "autograder/compile_checks/dry_library.py": (("cuda",), "a part of one language's compiler"),
    "autograder/compile_checks/faults.py": (("triton",), "a part of one language's compiler"),
    "autograder/compile_checks/launches.py": (("triton",), "a part of one language's compiler"),
    "autograder/compile_checks/precompile.py": (("triton", "cuda"), "a part of one language's compiler"),
    "autograder/compile_checks/triton_session.py": (("triton",), "a compiler, which a record names"),
    "autograder/compile_checks/machine_code.py": (("triton",), "its package has the tools that read machine code"),
    "autograder/compile_checks/targets.py": (("triton",), "a capability as its compiler writes it"),
    "autograder/gpu/": (("cuda",), "CUDA the driver"),
    "autograder/judge/protocol/gpu.py": (("cuda",), "torch.cuda"),
    "autograder/profiling/": (("cuda",), "CUDA's profiler, torch.cuda"),
    "autograder/judge/timing/overhead_baseline.py": (("cuda",), "a device of torch's"),
    "autograder/judge/probes/work_findings.py": (("triton",), "how torch.compile names its kernels"),
    "autograder/runner/trace.py": (("cuda",), "the CUDA that torch was built with"),
    "autograder/sandbox/": (("cuda",), "CUDA the driver"),
    "worker/judge.py": (("cuda",), "variables of CUDA the driver"),
    "worker/lanes.py": (("cuda",), "torch.cuda"),
    "worker/node.py": (("cuda",), "a variable of CUDA the driver"),
    "worker/nvml.py": (("cuda",), "a function of NVML"),
    "worker/canary/": ((ANY_LANGUAGE,), "students' files, as it were; the manifest says their language"),
    "server/lexing/lexers.py": (("cuda",), "Pygments' lexer"),
    "server/pages/advice.py": (("triton", "cuda"), "advice to whoever writes kernels: what a thing is called where"),
    "server/pages/components.py": (("triton",), "a piece of code to look at"),
}
EXEC_ALLOWED = ("autograder/runner",)
FORBIDDEN_IMPORTS = ("pickle", "marshal", "shelve", "dill", "cloudpickle", "joblib")
FORBIDDEN_CALLS = ("torch.load", "os.system", "os.popen", "yaml.load", "eval", "numpy.load")
MANIFEST_CLASSES = (
    "Assignment",
    "Argument",
    "Layout",
    "Case",
    "Draw",
    "Family",
    "Tolerance",
    "Limits",
    "Points",
    "Requirement",
    "RunRequirement",
    "LanePolicy",
    "Cost",
    "Function",
    "Mutant",
)
WRITTEN_IN_THE_SINGULAR = {
    ("Assignment", "arguments"),
    ("Assignment", "cases"),
    ("Assignment", "functions"),
    ("Assignment", "lanes"),
    ("Assignment", "requirements"),
    ("Assignment", "run_requirements"),
}
PROBLEM_MAY_IMPORT = ("__future__", "collections", "math", "torch")

# Put together from parts, so that this file does not break its own rule.
HOSTS = tuple(
    ".".join(parts)
    for parts in (("pypi", "org"), ("pythonhosted", "org"), ("npmjs", "org"), ("npmjs", "com"), ("download", "pytorch"))
)
MACHINE_PATHS = tuple(f"/{name}/" for name in ("work", "root", "opt/wheels", "home/user"))
UNFINISHED = tuple("TO-DO FIX-ME X-XX".replace("-", "").split())
NAMED_IN_DOCS = re.compile(
    rf"`((?:{'|'.join(PACKAGES)}|assignments|deploy|docs|reference|scripts|tests|web)/[\w./-]+)`"
)
MADE_LATER = ("deploy/site/", "web/static/dist/")
"""What docs name and no commit has."""
COMMON_MODULE_NAMES = {"__init__", "__main__", "conftest"}
MOST_MODULES_OF_ONE_NAME = 3
# Words that were given up, each with the one that is used; whole words, in prose and in names of files.
GIVEN_UP = {
    "accounting": "reconciliation",
    "bests": "leaderboard entries",
    "borne out": "consistent with",
    "by lot": "drawn",
    "keeper": "supervisor",
    "quiet block": "A/A check",
    "retimes": "remeasure requests",
    "settling": "recompute",
    "spares": "saves",
}
FIRST_WORDS_OF_VERDICTS = {verdict.value.split("_")[0] for verdict in Verdict}
HONEST_HALF = "passed_honest.py"
"""No attack: the right kernel that several attacks carry, to be graded at all."""
# Some of these are meant not to parse.
STUDENTS_FILES = re.compile(r"scripts/demo/|reference/[^/]+/submissions/|tests/hostile/(?!test_|conftest)")
BINARY = {".png", ".ico", ".woff2", ".gz", ".tar", ".bin", ".jpg"}


@dataclass(frozen=True)
class Problem:
    """A place where a rule is broken."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.message}"


@dataclass(frozen=True)
class Tree:
    """A checkout."""

    root: Path

    @cached_property
    def files(self) -> tuple[str, ...]:
        """What git tracks, or would track; every file where there is no repository."""
        if (self.root / ".git").exists():
            command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
            names = subprocess.run(command, cwd=self.root, check=True, capture_output=True, text=True).stdout.split(
                "\0"
            )
            return tuple(sorted({name for name in names if name and (self.root / name).is_file()}))
        return tuple(sorted(p.relative_to(self.root).as_posix() for p in self.root.rglob("*") if p.is_file()))

    def python(self, *folders: str) -> Iterator[tuple[str, Sequence[ast.AST]]]:
        """The Python files of ours under `folders`, each with all its nodes; what stands for a student's is none."""
        for name in self.files:
            if STUDENTS_FILES.match(name):
                continue
            if name.endswith(".py") and name.startswith(tuple(f"{folder}/" for folder in folders)):
                yield name, self._nodes(name)

    def _nodes(self, name: str) -> Sequence[ast.AST]:
        """Walked once, for all rules: parsing and walking is most of what they take."""
        if name not in self._walked:
            self._walked[name] = tuple(ast.walk(ast.parse(self.text(name), name)))
        return self._walked[name]

    @cached_property
    def _walked(self) -> dict[str, Sequence[ast.AST]]:
        return {}

    def text(self, name: str) -> str:
        """A file's text, empty where there is no such file."""
        path = self.root / name
        return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""

    def lines(self) -> Iterator[tuple[str, int, str]]:
        """Every line of every text file."""
        for name in self.files:
            if Path(name).suffix not in BINARY:
                for number, line in enumerate(self.text(name).splitlines(), start=1):
                    yield name, number, line


Rule = Callable[[Tree], Iterator[Problem]]


def commit_stands_in_one_place(tree: Tree) -> Iterator[Problem]:
    """One request or task is one transaction: `commit()` stands in server/db.py only."""
    for name, nodes in tree.python(*PACKAGES):
        for node in nodes:
            called = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "commit"
            if called and name != "server/db.py":
                yield Problem(name, _line(node), "commit() stands in server/db.py and nowhere else")


def broad_excepts_stand_at_the_edges(tree: Tree) -> Iterator[Problem]:
    """Everything is caught in two places only: around the untrusted call and around the job."""
    for name, nodes in tree.python(*PACKAGES, "scripts"):
        if name.startswith(tuple(BROAD_EXCEPT_ALLOWED)):
            continue
        for node in nodes:
            # One that ends by raising the same again swallows nothing.
            if isinstance(node, ast.ExceptHandler) and _is_broad(node.type) and not _raises_again(node):
                yield Problem(name, node.lineno, "catches everything; name what can happen here")


def _is_broad(node: ast.expr | None) -> bool:
    if isinstance(node, ast.Tuple):
        return any(_is_broad(item) for item in node.elts)
    return node is None or ast.unparse(node) in ("Exception", "BaseException")


def _raises_again(node: ast.ExceptHandler) -> bool:
    last = node.body[-1]
    return isinstance(last, ast.Raise) and last.exc is None


def nothing_foreign_is_executed(tree: Tree) -> Iterator[Problem]:
    """No pickle, no torch.load, no shell, no eval: what crosses a boundary is data."""
    for name, nodes in tree.python(*PACKAGES, "scripts", "assignments", "reference"):
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom):
                for imported in sorted(_imported(node) & set(FORBIDDEN_IMPORTS)):
                    yield Problem(name, node.lineno, f"imports {imported}, which runs what it reads")
            if isinstance(node, ast.Call):
                yield from _forbidden_call(name, node)


def _forbidden_call(name: str, node: ast.Call) -> Iterator[Problem]:
    called = ast.unparse(node.func)
    if called in FORBIDDEN_CALLS or (called == "exec" and not name.startswith(EXEC_ALLOWED)):
        yield Problem(name, node.lineno, f"calls {called}")
    for keyword in node.keywords:
        if keyword.arg == "shell" and not (isinstance(keyword.value, ast.Constant) and keyword.value.value is False):
            yield Problem(name, node.lineno, "starts a shell; give a list of arguments")


def functions_are_short(tree: Tree) -> Iterator[Problem]:
    """No function has more than 60 lines."""
    for name, line, length in function_lengths(tree):
        # A migration is one long list of tables; it is generated.
        if not name.startswith("server/migrations/versions/") and length > MAX_FUNCTION_LINES:
            yield Problem(name, line, f"a function of {length} lines, at most {MAX_FUNCTION_LINES}")


def function_lengths(tree: Tree, *folders: str) -> Iterator[tuple[str, int, int]]:
    """File, line and number of lines of every function of the packages."""
    for name, nodes in tree.python(*(folders or (*PACKAGES, "scripts"))):
        for node in nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield name, node.lineno, (node.end_lineno or node.lineno) - node.lineno + 1


def problems_import_torch_only(tree: Tree) -> Iterator[Problem]:
    """`assignments/*/problem.py` is plain torch (and the abstract types it names), so that it runs everywhere."""
    for name, nodes in tree.python("assignments"):
        for node in nodes:
            if name.endswith("/problem.py") and isinstance(node, ast.Import | ast.ImportFrom):
                for imported in sorted(_imported(node) - set(PROBLEM_MAY_IMPORT)):
                    yield Problem(name, node.lineno, f"imports {imported}; a problem imports torch only")


def reference_is_imported_by_nobody(tree: Tree) -> Iterator[Problem]:
    """`reference/` is staff only; its files are read as text."""
    for name, nodes in tree.python(*PACKAGES, "scripts", "assignments", "reference", "tests"):
        for node in nodes:
            if isinstance(node, ast.Import | ast.ImportFrom) and "reference" in _imported(node):
                yield Problem(name, node.lineno, "imports reference")


def _imported(node: ast.Import | ast.ImportFrom) -> set[str]:
    if isinstance(node, ast.Import):
        return {alias.name.split(".")[0] for alias in node.names}
    return set() if node.level else {(node.module or "").split(".")[0]}


def variables_are_documented(tree: Tree) -> Iterator[Problem]:
    """Every `LADDER_` variable that something reads is listed in docs/configuration.md."""
    documented = set(re.findall(r"LADDER_[A-Z][A-Z_]*", tree.text("docs/configuration.md")))
    used = {f"LADDER_{field.upper()}": ("server/config.py", 1) for field in _fields(tree, "server/config.py", "Config")}
    for name, number, line in tree.lines():
        if name.startswith((*PACKAGES, "Makefile", "scripts")) and not name.endswith(".md"):
            for variable in re.findall(r"LADDER_[A-Z][A-Z_]*[A-Z]", line):
                used.setdefault(variable, (name, number))
    for variable, (name, number) in sorted(used.items()):
        if variable not in documented:
            yield Problem(name, number, f"docs/configuration.md does not mention {variable}")


def manifest_keys_are_documented(tree: Tree) -> Iterator[Problem]:
    """Every key that an assignment's files may have stands in docs/authoring.md as `key`."""
    documented = set(re.findall(r"`([a-z_0-9]+)`", tree.text("docs/authoring.md")))
    for cls in MANIFEST_CLASSES:
        for field in _fields(tree, "autograder/assignment.py", cls):
            # A list of tables is named in the singular: `[[case]]`.
            key = field.removesuffix("s") if (cls, field) in WRITTEN_IN_THE_SINGULAR else field
            if key not in documented:
                yield Problem("docs/authoring.md", 1, f"does not explain the key `{key}` ({cls})")


def _fields(tree: Tree, name: str, cls: str) -> Iterator[str]:
    for node in ast.walk(ast.parse(tree.text(name))):
        if isinstance(node, ast.ClassDef) and node.name == cls:
            for item in node.body:
                if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
                    yield item.target.id


def no_machine_is_named(tree: Tree) -> Iterator[Problem]:
    """No file names a registry's host or a path of one machine: whoever installs has their own."""
    for name, number, line in tree.lines():
        for word in (*HOSTS, *MACHINE_PATHS):
            at = line.find(word)
            if at >= 0 and not (word.startswith("/") and at > 0 and (line[at - 1].isalnum() or line[at - 1] in "._-}")):
                yield Problem(name, number, f"names {word}")


def nothing_is_left_undone(tree: Tree) -> Iterator[Problem]:
    """What is not done is an issue, not a comment."""
    pattern = re.compile(rf"\b({'|'.join(UNFINISHED)})\b")
    for name, number, line in tree.lines():
        if pattern.search(line) and not name.endswith((".md", "package-lock.json")):
            yield Problem(name, number, "left undone; file an issue instead")


def migrations_go_both_ways(tree: Tree) -> Iterator[Problem]:
    """Every migration can be taken back."""
    for name, nodes in tree.python("server/migrations/versions"):
        ways = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
        for way in ("upgrade", "downgrade"):
            body = [node for node in ways[way].body if not _is_idle(node)] if way in ways else []
            if not body:
                yield Problem(name, 1, f"has no {way}()")


def _is_idle(node: ast.stmt) -> bool:
    return isinstance(node, ast.Pass) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))


def hostile_files_are_in_the_table(tree: Tree) -> Iterator[Problem]:
    """Every attack is named in tests/hostile/table.toml, the normative table."""
    table = "tests/hostile/table.toml"
    rows = set(_strings(tomllib.loads(tree.text(table))))
    for name in tree.files:
        verdict = Path(name).name.split("_")[0]
        attack = verdict in FIRST_WORDS_OF_VERDICTS and Path(name).name != HONEST_HALF
        if not name.startswith("tests/hostile/") or not attack:
            continue
        if not rows & {name, Path(name).name, Path(name).stem, name.removeprefix("tests/hostile/")}:
            yield Problem(name, 1, f"is not in {table}")


def _strings(value: object) -> Iterator[str]:
    """Every string and every key of a parsed table; a file's name is among them."""
    if isinstance(value, str):
        yield value
    if isinstance(value, dict):
        yield from (str(key) for key in value)
        yield from (text for item in value.values() for text in _strings(item))
    if isinstance(value, list):
        yield from (text for item in value for text in _strings(item))


def languages_are_named_by_their_records(tree: Tree) -> Iterator[Problem]:
    """Code that names a language has to be changed for the next one: it asks the record instead."""
    named: dict[str, set[str]] = {}
    for name, line, word in _languages_in(tree):
        place = next((place for place in LANGUAGES_NAMED if name == place or name.startswith(place)), "")
        if place:
            named.setdefault(place, set()).update({word, ANY_LANGUAGE})
        if not place or not {word, ANY_LANGUAGE} & set(LANGUAGES_NAMED[place][0]):
            yield Problem(name, line, f"names the language {word}; ask its record (autograder/languages)")
    for place, (words, _) in LANGUAGES_NAMED.items():
        there = any(name == place or name.startswith(place) for name in tree.files)
        for word in (word for word in words if there and word not in named.get(place, set())):
            yield Problem(place, 1, f"is allowed to name the language {word} and does not")


def _languages_in(tree: Tree) -> Iterator[tuple[str, int, str]]:
    """File, line and language of every name of one in our code: not in comments and docstrings."""
    ids = [record.id for record in languages.ALL]
    for name, nodes in tree.python(*PACKAGES):
        prose = {line for node in nodes if _is_prose(node) for line in _lines_of(node)}
        for token in tokenize.generate_tokens(io.StringIO(tree.text(name)).readline):
            if token.type != tokenize.COMMENT and token.start[0] not in prose:
                yield from ((name, token.start[0], word) for word in ids if word in token.string.lower())
    for name in tree.files:
        if name.startswith(("web/src/", "web/templates/")):
            for number, line in enumerate(tree.text(name).splitlines(), start=1):
                is_comment = line.lstrip().startswith(("//", "*", "/*"))
                yield from ((name, number, word) for word in ids if not is_comment and word in line.lower())


def _is_prose(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _lines_of(node: ast.AST) -> range:
    return range(_line(node), (getattr(node, "end_lineno", None) or _line(node)) + 1)


def module_names_are_told_apart(tree: Tree) -> Iterator[Problem]:
    """At most three modules of the packages have one name."""
    places: dict[str, list[str]] = {}
    for name in tree.files:
        if name.startswith(tuple(f"{package}/" for package in PACKAGES)) and name.endswith(".py"):
            places.setdefault(Path(name).stem, []).append(name)
    for stem, names in places.items():
        if stem not in COMMON_MODULE_NAMES and len(names) > MOST_MODULES_OF_ONE_NAME:
            yield Problem(names[-1], 1, f"is one of {len(names)} modules called {stem}")


def given_up_words_stay_given_up(tree: Tree) -> Iterator[Problem]:
    """Docs, handouts, pages and names of modules use the glossary's word."""
    pattern = re.compile(rf"\b({'|'.join(GIVEN_UP)})\b", re.IGNORECASE)
    for name in tree.files:
        stem = Path(name).stem
        if name.endswith(".py") and stem in GIVEN_UP:
            yield Problem(name, 1, f"say {GIVEN_UP[stem]}, not {stem}")
    for name, number, line in tree.lines():
        if name.endswith((".md", ".html")) and (found := pattern.search(line)):
            word = found[1].lower()
            yield Problem(name, number, f"say {GIVEN_UP[word]}, not {word}")


def files_named_in_docs_exist(tree: Tree) -> Iterator[Problem]:
    """A file or folder that a page names in backticks, by its path from the root and with its ending, is there."""
    there = {*tree.files, *(f"{folder}/" for name in tree.files for folder in Path(name).parents)}
    for name, number, line in tree.lines():
        for path in NAMED_IN_DOCS.findall(line) if name.endswith(".md") else ():
            is_whole = path.endswith("/") or Path(path).suffix
            if is_whole and path not in there and not path.startswith(MADE_LATER):
                yield Problem(name, number, f"there is no {path}")


RULES: tuple[Rule, ...] = (
    commit_stands_in_one_place,
    broad_excepts_stand_at_the_edges,
    nothing_foreign_is_executed,
    functions_are_short,
    problems_import_torch_only,
    reference_is_imported_by_nobody,
    variables_are_documented,
    manifest_keys_are_documented,
    no_machine_is_named,
    nothing_is_left_undone,
    migrations_go_both_ways,
    hostile_files_are_in_the_table,
    languages_are_named_by_their_records,
    module_names_are_told_apart,
    given_up_words_stay_given_up,
    files_named_in_docs_exist,
)


def _line(node: ast.AST) -> int:
    return getattr(node, "lineno", 1)


def main(arguments: list[str]) -> int:
    """Check the checkout in the folder given, or in this one."""
    tree = Tree(Path(arguments[0] if arguments else ".").resolve())
    problems = [problem for rule in RULES for problem in rule(tree)]
    for problem in problems:
        print(problem)
    lengths = [length for _, _, length in function_lengths(tree)]
    if lengths:
        print(f"{len(lengths)} functions, median {statistics.median(lengths):g} lines, longest {max(lengths)}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
