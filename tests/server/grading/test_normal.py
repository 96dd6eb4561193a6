"""The normal form: two sources that behave differently never share one. g++ says what it reads in CUDA's."""

from __future__ import annotations

import random
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from autograder import languages
from autograder.contract import Language
from server.grading.source_normalization import normal


def cuda(source: str) -> bytes:
    return normal(source.encode(), Language.cuda)


def triton(source: str) -> bytes:
    return normal(source.encode(), Language.triton)


# --- CUDA ------------------------------------------------------------------------------------------------------------

DIFFERENT = [
    # A line goes on behind a backslash, also with blanks behind it; a carriage return ends one.
    ("// \\ \nint a;", "//\nint a;"),
    ("// \\\r\nint a;", "//\r\nint a;"),
    ("// \\\t\v\f \r\nint a;", "//\r\nint a;"),
    ("// a\rint b = 1;", "// a\rint b = 2;"),
    ("// ??/\nint a;", "// ??/\nint b;"),
    ("#define N 4 \\ \n + 1\nint a;", "#define N 4\n + 1\nint a;"),
    ("#define N 4\r+ 1\n", "#define N 4 + 1\n"),
    # Words are joined, not kept apart.
    ("a\\\nb;", "a b;"),
    ("a\\ \nb;", "a b;"),
    # What no quotation mark ends hides the beginning of a comment.
    ("#if 0\n' /*\n#endif\nint a;\n#if 0\n' */\n#endif\n", "#if 0\n' /*\n#endif\nint b;\n#if 0\n' */\n#endif\n"),
    ('#if 0\n" /*\n#endif\nint a;\n#if 0\n" */\n#endif\n', '#if 0\n" /*\n#endif\nint b;\n#if 0\n" */\n#endif\n'),
    # In a raw string nothing is joined and nothing begins.
    ('auto s = R"(a\\\nb)";', 'auto s = R"(ab)";'),
    ('auto s = R"x(/*)" )x"; int a; /* */', 'auto s = R"x(/*)" )x"; int b; /* */'),
    ('auto s = R"(//)"; int a;', 'auto s = R"(//)"; int b;'),
    ('auto s = R\\\n"(a\\\nb)"; int a;', 'auto s = R\\\n"(a\\\nb)"; int b;'),
    ('auto s = xR"(// )"; int a;', 'auto s = xR"(// )"; int b;'),
    ('auto s = R"(1)"_s;', 'auto s = R"(1)" _s;'),
    # A space keeps signs, numbers and literals apart.
    ("y = i++ + n;", "y = i + ++n;"),
    ("y = i+\n+n;", "y = i++n;"),
    ("a && b;", "a & &b;"),
    ("x >>= 1;", "x >> = 1;"),
    ("a->*b;", "a-> *b;"),
    ("y = 1e+5;", "y = 1e +5;"),
    ("y = 1e-5;", "y = 1e- 5;"),
    ("y = 0xE + 1;", "y = 0xE+1;"),
    ("c = L'a';", "c = L 'a';"),
    ('s = "a"_s;', 's = "a" _s;'),
    ("f(T... a);", "f(T.. .a);"),
    ('#if 0\n.R"(" /* )"\n#endif\nint a; /* */', '#if 0\n.R"(" /* )"\n#endif\nint b; /* */'),
    ('...L"a"', '...L "a"'),
    ('"a"L"b"', '"a" L"b"'),
    ("n = 1'000 ;", "n = 1 '000';"),
    ("int éa;", "int é a;"),
    ("int \\u00e9a;", "int \\u00e9 a;"),
    # Lines of the preprocessor.
    ("%:define N 4\n+ 1;", "%:define N 4 + 1\n;"),
    ("#include <a//b.h>\n", "#include <a//c.h>\n"),
    ("#include <a/*b.h>\nint a;\n/* */\n", "#include <a/*b.h>\nint b;\n/* */\n"),
    ('#include "a\\"\nint a;\n', '#include "a\\"\nint b;\n'),
    # What sees where it stands, or turns text into a string.
    # Where the file ends, no line is there to go on.
    ("int a;\\", "int a;"),
    ("int a;\\ ", "int a;"),
    ("int a = __LINE__;", "\nint a = __LINE__;"),
    ("int a = __LI\\\nNE__;", "\nint a = __LI\\\nNE__;"),
    ("int a = __builtin_LINE();", "\nint a = __builtin_LINE();"),
    ("#define P(a, b) a##b\nint a = P(__LI, NE__);", "#define P(a, b) a##b\n\nint a = P(__LI, NE__);"),
    ("#define S(a) #a\nauto s = S(a+b);", "#define S(a) #a\nauto s = S(a + b);"),
    # An assertion that fails is told its line, and whoever defines `__assert_fail` is told it.
    ("void f() { assert(0); }", "\nvoid f() { assert(0); }"),
    ("#include <cassert>\nint a;", "\n#include <cassert>\nint a;"),
    ("#include <assert.h>\nint a;", "\n#include <assert.h>\nint a;"),
    ("void __assert_fail(int line);", "\nvoid __assert_fail(int line);"),
]  # fmt: skip


def test_what_a_compiler_reads_differently_has_another_form() -> None:
    assert [(one, other) for one, other in DIFFERENT if cuda(one) == cuda(other)] == []


ALIKE = [
    ("// it's \\ \nint a;\nint b;", "// \\\n\nint b;"),
    ("int a;\r\nint b; // x\r\n", "int a;\nint b;"),
    ("int a;\rint b;", "int a; int b;"),
    ("thr\\\neadIdx.x", "threadIdx.x"),
    ("th\\ \t\nreadIdx\\\n.x", "threadIdx.x"),
    ('"a\\\nb"', '"ab"'),
    ("/\\\n/ int a;\nint b;", "int b;"),
    ("/\\\n* int a; *\\\n/ int b;", "int b;"),
    ("#define N \\\r\n 4\r\n", "#define N 4\n"),
    ("f<<<1, 1>>>(a);", "f <<<1,1>>> (a) ;"),
    ("y = a + -b;", "y = a+-b;"),
    ("y = 1e-5f;", "y=1e-5f ;"),
    ("a = *p / *q;", "a=*p / * q;"),
    ("a\n  .x;", "a.x;"),
    ('auto s = R"(a\r\nb)";', 'auto  s = R"(a\nb)" ;'),
    ("??/\nint a;", "??/\n\nint a;"),
]


def test_what_a_compiler_reads_alike_has_one_form() -> None:
    assert [(one, other) for one, other in ALIKE if cuda(one) != cuda(other)] == []


def test_a_form_that_was_right_stays_what_it_was() -> None:
    """Pools are named by it."""
    source = (
        "#include <cuda_fp16.h>\n#define N 4 // four\n#define f(x) (x)\n"
        "template <int K> __global__ void k(const float* __restrict__ x, int n) {\n"
        "  const int i = blockIdx.x * blockDim.x + threadIdx.x; // mine\n"
        "  if (i >= n || x[i] == 1e-5f) return; /* \"\" */\n  s[i] += p->a ? 'a' : 1.f / 2.5;\n}\n"
    )
    assert cuda(source) == (
        b"\n# include < cuda_fp16.h >\n\n# define N 4\n\n# define f( x ) ( x )\n"
        b"template < int K > __global__ void k ( const float * __restrict__ x , int n ) { "
        b"const int i = blockIdx.x * blockDim.x + threadIdx.x ; "
        b"if ( i > = n | | x [ i ] = = 1e - 5f ) return ; s [ i ] + = p - > a ? 'a' : 1.f / 2.5 ; } "
    )


PIECES = [
    "a", "b", "L", "R", "_s", "1", "0xE", "1e", "'", '"', "/", "*", "//", "/*", "*/", "\\", "\\\n", "\\ \n", "\n", "\r",
    "\r\n", " ", "\t", "+", "-", "<", ">", ":", "%", "&", "=", ".", "...", "(", ")", "#", "'x'", '"y"', 'R"(', ')"',
    ";", "\n#if 0\n", "\n#endif\n", "\n#define a ", "\n#pragma ", "8'0", ".5",
]  # fmt: skip


READ = re.compile(
    r"""
    (?:u8|[uUL])?R"(\w*)\(.*?\)\1"(?:[A-Za-z_]\w*)?
  | (?:u8|[uUL])?(?: "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )(?:[A-Za-z_]\w*)?
  | \.?[0-9](?:[eEpP][+-]|'?\w|\.)* | \w+ | \.\.\. | ->\* | <<= | >>= | %:%:
  | \+\+ | -- | && | \|\| | << | >> | [=!<>+*/%&|^-]= | -> | :: | \#\# | <[:%] | [:%]> | %: | \.\* | \S
    """,
    re.VERBOSE | re.DOTALL,
)


def read_by_gxx(source: str) -> list[str] | None:
    """The tokens that are left behind the preprocessor; `None` of what it refuses."""
    command = ["g++", "-std=c++17", "-E", "-P", "-w", "-x", "c++", "-"]
    done = subprocess.run(command, input=source.encode(), capture_output=True, check=False)
    return None if done.returncode else [found[0] for found in READ.finditer(done.stdout.decode())]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_sources_of_one_form_are_one_to_a_compiler() -> None:
    """Found by lot among what is hard to read; most of these differ by what a form might leave out."""
    lot = random.Random(7)
    groups: dict[bytes, set[str]] = {}
    for _ in range(60_000):
        source = "".join(lot.choices(PIECES, k=lot.randint(3, 6)))
        groups.setdefault(cuda(source), set()).add(source)
    shared = lot.sample([sorted(group)[:3] for group in groups.values() if len(group) > 1], 120)
    for group in shared:
        first, *others = map(read_by_gxx, group)
        assert all(other == first for other in others), group


# --- Python ----------------------------------------------------------------------------------------------------------

KERNEL = """
@triton.jit
def k(x):
    "DOC"
    {body}
"""


READ_THEMSELVES = [
    "N = len(k.__doc__)",
    "N = len(getattr(k, '__do' + 'c__'))",
    "N = len('{0.__doc__}'.format(k))",
    "import inspect as i\nN = len(i.getsource(k))",
    "from inspect import getsource as g\nN = len(g(k))",
    "N = len(k.src)",
    "N = len(vars(k)['__doc__'])",
    "N = open(__file__).read().count('x')",
    "import sys\nN = sys._getframe().f_lineno",
    "match k:\n    case object(__doc__=text):\n        N = len(text)",
    "N = k.fn.__code__.co_firstlineno",
    # A generator's code has docstrings among its constants, and its lines.
    "def g():\n    'x'\n    yield\nN = len(g().gi_code.co_consts[0])",
    "async def g():\n    pass\nN = g().cr_code.co_firstlineno",
    # Triton says in an error what stood there, and names what it compiled by a hash of it.
    "try:\n    k[1](1)\nexcept Exception as error:\n    N = len(str(error))",
    "class C:\n    def __exit__(self, kind, error, at):\n        self.n = len(str(error))",
    "N = len(k[1](1).metadata[0])",
    # Modules that read sources, take traces, or map any file.
    "import torch._sources as s\nN = len(s.get_source_lines_and_file(k)[0])",
    "import torch\nN = torch.jit.script(k)",
    "from torch import jit\nN = jit.script(k)",
    "import torch as triton\nN = triton.jit.script(k)",
    "import torch\ntriton = torch\nN = triton.jit.script(k)",
    "import torch\ndef f(triton):\n    return triton.jit.script(k)\nN = f(torch)",
    "import torch.jit as j\nN = j.script(k)",
    "from torch import *\nN = jit.script(k)",
    "from torch.jit import script\nN = script(k)",
    "import torch\nmatch torch:\n    case object(jit=j):\n        N = j.script(k)",
    "import torch\nN = torch.from_file('/proc/self/fd/3', size=9)",
    "import sys\nsys.monitoring.use_tool_id(0, 'x')",
    "import faulthandler as f\nf.dump_traceback()",
    "import mine",
    "from . import mine",
]


def test_a_program_that_may_read_itself_is_compared_as_it_is() -> None:
    for reads in READ_THEMSELVES:
        source = KERNEL.format(body="pass") + reads
        for old, new in (("DOC", "DOCS"), ("@", "# more\n@"), ("pass", "pass  #")):
            assert triton(source) != triton(source.replace(old, new)), reads


DO_NOT = [
    "N = 1",
    "src = 1",
    "parse = x.load",
    "y = compiled",
    "from __future__ import annotations\nimport math\nimport torch\nimport triton\nimport triton.language as tl",
    "from triton.language.extra import libdevice\nfrom triton.tools.tensor_descriptor import TensorDescriptor",
    "try:\n    f()\nexcept ValueError:\n    pass",
    "class C:\n    def __init__(self):\n        self.n = 1",
    "from triton import jit, cdiv\n@jit\ndef l(x):\n    pass",
]


def test_docstrings_and_comments_of_one_that_does_not_are_left_out() -> None:
    for reads in DO_NOT:
        source = KERNEL.format(body="pass") + reads
        assert triton(source) == triton(source.replace("DOC", "DOCS").replace("@", "# more\n@")), reads


def test_what_is_long_is_compared_as_it_is() -> None:
    """Its form is worked out by the recorder, for which a tree of a megabyte of source would be too large."""
    long = "a;" * 40_000
    assert triton(f"{long}\n") == f"{long}\n".encode()
    assert cuda(f"{long}\n") == f"{long}\n".encode()


def test_every_staff_kernel_has_a_form() -> None:
    """Honest kernels are written like this: a rule that refuses many of them would be no rule.

    What registers something with torch, for a rung's adapter, is compared as it is: a registry reaches the process.
    """
    files = [path for kind in ("py", "cu") for path in sorted(Path("reference").glob(f"*/solutions/*.{kind}"))]
    files = [path for path in files if not Path("assignments", path.parts[1], "adapter.py").exists()]
    without = []
    for path in files:
        record = languages.of_file(path.name, path.read_text(encoding="utf-8"))
        assert record is not None
        if normal(path.read_bytes(), Language(record.id)) == path.read_bytes():
            without.append(str(path))
    assert len(files) >= 30
    assert without == []


def test_a_line_that_ends_for_some_only_is_compared_as_it_is() -> None:
    """Triton takes a kernel's text by its line's number; a comment before it may have more lines than it seems."""
    for end in "\v\f\x1c\x85\u2028\u2029":
        source = KERNEL.format(body=f"pass  # {end}x")
        assert triton(source) != triton(source.replace("x\n", "y\n")), repr(end)
    assert triton("# a\r" + KERNEL.format(body="x")) != triton("# a\r" + KERNEL.format(body="y"))
