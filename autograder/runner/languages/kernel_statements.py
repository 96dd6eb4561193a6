"""Statements of a kernel mean what they mean on a GPU, where triton's interpreter takes them for plain Python.

The variable of a loop is a scalar with a type. `min`, `max`, `and`, `or` and `not` are taken element by element, and a
block of several elements is no condition. A kernel sees the variables of the function that it is defined in.
"""

from __future__ import annotations

import ast
import builtins
import functools
import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import triton.language as tl
from triton.runtime import interpreter

from autograder.runner.languages import kernel_names
from autograder.runner.languages.kernel_language import scalar

_interpreter: Any = interpreter


def install() -> None:
    """Change the interpreter of this process, before any kernel is defined."""
    tl.range = tl.core.range = loop
    names = {
        "_kernel_range": loop,
        "_kernel_min": functools.partial(_extreme, builtins.min, getattr(tl.core, "builtin_min", tl.minimum)),
        "_kernel_max": functools.partial(_extreme, builtins.max, getattr(tl.core, "builtin_max", tl.maximum)),
        "_kernel_and": functools.partial(_logical, "logical_and", False),
        "_kernel_or": functools.partial(_logical, "logical_or", True),
        "_kernel_not": _not,
        "_kernel_condition": _condition,
        "_kernel_again": _again,
        "_kernel_all": _all,
        "_kernel_assigned": _assigned,
        "_kernel_callee": kernel_names.callee,
        "_kernel_refused": kernel_names.refuse,
    }
    # A kernel that was rewritten finds what the interpreter's own module has.
    vars(interpreter).update(names)
    rewriter: Any = interpreter.FunctionRewriter
    rewriter._find_def = _first_definition  # noqa: SLF001
    rewriter._transform_ast = _with_names_known(rewriter._transform_ast)  # noqa: SLF001
    rewriter._compile_and_exec = _compile_with_what_it_sees  # noqa: SLF001
    rewriter.rewrite_ast = _with_source(rewriter.rewrite_ast)


def _first_definition(self: Any, lines: list[str]) -> int:
    """From 1; what follows may be a text that speaks of another."""
    del self
    return next(number for number, line in enumerate(lines, 1) if line.strip().startswith("def "))


def _with_source(rewrite: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The interpreter runs a kernel that has no text as it is; triton refuses it."""

    def rewritten(self: Any) -> Any:
        try:
            inspect.getsourcelines(self.fn)
        except OSError:
            raise ValueError("@jit functions should be defined in a Python file") from None
        return rewrite(self)

    return rewritten


def _with_names_known(transform: Callable[[Any, str], ast.Module]) -> Callable[[Any, str], ast.Module]:
    def transformed(self: Any, text: str) -> ast.Module:
        seen = inspect.getclosurevars(self.fn).nonlocals if self.fn.__closure__ else {}
        self.ast_transformer = Transformer({**self.fn.__globals__, **seen})
        return transform(self, text)

    return transformed


class Straight:
    """Counts stretches of code in which no loop begins, goes on or ends: what compilers see at once."""

    number = 0

    @classmethod
    def ends(cls) -> None:
        """Here is one of those."""
        cls.number += 1


def loop(first: Any, second: Any = None, step: Any = None, *_: Any, **__: Any) -> Iterator[tl.tensor]:
    """`tl.range`, and `range` in a kernel: its values are scalars with a type. Options are the compiler's."""
    start, end = (0, first) if second is None else (first, second)
    stride = 1 if step is None else step
    kinds = [_loop_type(bound) for bound in (start, end, stride)]
    kind = functools.reduce(_interpreter.interpreter_semantic.integer_promote_impl, kinds)
    for value in range(int(start), int(end), int(stride)):
        Straight.ends()
        yield scalar(value, kind)
    Straight.ends()


def _loop_type(bound: Any) -> tl.dtype:
    kind: tl.dtype = _interpreter.interpreter_semantic.to_tensor(bound).dtype
    if not kind.is_int():
        raise TypeError(f"For loop bounds and step must all be ints, not {kind}")
    return kind


def _extreme(plain: Callable[..., Any], of_tensors: Callable[..., Any], *values: Any, **options: Any) -> Any:
    return (
        of_tensors(*values, **options)
        if any(isinstance(value, tl.tensor) for value in values)
        else plain(*values, **options)
    )


def _logical(method: str, decided: bool, *operands: Callable[[], Any]) -> Any:
    """`and` and `or`: tensors are joined element by element, and constants are taken as Python does."""
    value: Any = None
    tensors = []
    for operand in operands:
        value = operand()
        if isinstance(value, tl.tensor):
            tensors.append(value)
        elif bool(value) is decided:
            return value
    return functools.reduce(lambda one, other: getattr(one, method)(other), tensors) if tensors else value


class SeveralConditionsError(ValueError):
    """A block of several elements is used as one condition."""

    def __init__(self) -> None:
        super().__init__("Boolean value of Tensor with more than one value is ambiguous")


def _condition(value: Any) -> bool:
    if isinstance(value, tl.tensor) and value.handle.data.size != 1:
        if _deciding:
            return _deciding[-1].answer(value.handle.data)
        raise SeveralConditionsError
    return bool(value)


def _again(value: Any) -> bool:
    Straight.ends()
    return _condition(value)


class _Path:
    """One way through a function: what was answered to its conditions, and which elements go that way."""

    def __init__(self, begun: list[bool]) -> None:
        self.answers = begun
        self.elements: Any = np.True_
        self._asked = 0

    def answer(self, condition: Any) -> bool:
        """As it was begun, and yes from then on."""
        if self._asked == len(self.answers):
            self.answers.append(True)
        yes = self.answers[self._asked]
        self._asked += 1
        self.elements = self.elements & (condition if yes else ~condition)
        return yes


_RENAMED = frozenset({"max", "min", "range"})
_deciding: list[_Path] = []
_MOST_PATHS = 32


def by_all_paths(function: Callable[[], Any]) -> list[tuple[Any, Any]]:
    """Call a function without effects once for each way through its conditions on blocks.

    Returns:
        For each way the elements that go it, and what the function made.
    """
    made: list[tuple[Any, Any]] = []
    begun: list[bool] = []
    while len(made) < _MOST_PATHS:
        path = _Path(begun)
        _deciding.append(path)
        try:
            result = function()
        finally:
            _deciding.pop()
        made.append((path.elements, result))
        begun = path.answers
        while begun and not begun[-1]:
            begun.pop()
        if not begun:
            return made
        begun[-1] = False
    raise SeveralConditionsError


def _not(value: Any) -> Any:
    return value.__not__() if isinstance(value, tl.tensor) else not value


def _all(value: Any) -> bool:
    return bool(value.handle.data.all()) if isinstance(value, tl.tensor) else bool(value)


def _assigned(value: Any) -> Any:
    """A number that is assigned to a name is a tensor from then on; in a tuple too."""
    if isinstance(value, (tuple, tl.tuple)):
        return _interpreter._tuple_create(value, [_assigned(one) for one in value])  # noqa: SLF001
    return _interpreter.interpreter_semantic.to_tensor(value, False)


class Transformer(interpreter.ASTTransformer, ast.NodeTransformer):  # type: ignore[misc]
    """Triton's own changes to a kernel's text, and those for what Python would do otherwise.

    Args:
        scope: what the kernel's file and the functions around it define.
    """

    def __init__(self, scope: Mapping[str, Any]) -> None:
        self._scope = scope
        self._own: set[str] = set()

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        """Its body. Defaults and annotations are evaluated where it is defined."""
        self._own = kernel_names.OwnNames(node).found
        self.generic_visit(body := ast.Module(body=node.body, type_ignores=[]))
        node.body = body.body
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """One that a compiler does not know."""
        if not isinstance(node.ctx, ast.Load) or not kernel_names.unknown(self._scope, self._own, node.id):
            return node
        here = ast.Constant(node.id in self._scope)
        return ast.copy_location(_call("_kernel_refused", ast.Constant(node.id), here), node)

    def visit_Assign(self, node: ast.Assign) -> ast.AST:
        """A value is converted where it is assigned."""
        changed: Any = super().visit_Assign(node)
        changed.value = _call("_kernel_assigned", changed.value.args[0])
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """`range`, `min` and `max` are Triton's, and Python's functions are not called."""
        self.generic_visit(node)
        function = node.func
        if isinstance(function, ast.Name) and function.id in _RENAMED and function.id not in {*self._own, *self._scope}:
            function.id = f"_kernel_{function.id}"
        else:
            node.func = ast.copy_location(_call("_kernel_callee", function), function)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """`and`, `or`."""
        self.generic_visit(node)
        name = "_kernel_and" if isinstance(node.op, ast.And) else "_kernel_or"
        nothing = ast.arguments(posonlyargs=[], args=[], kwonlyargs=[], kw_defaults=[], defaults=[])
        operands = [ast.Lambda(args=nothing, body=value) for value in node.values]
        return ast.copy_location(_call(name, *operands), node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """`not`."""
        self.generic_visit(node)
        return ast.copy_location(_call("_kernel_not", node.operand), node) if isinstance(node.op, ast.Not) else node

    def visit_If(self, node: ast.If) -> ast.AST:
        """A condition is one element."""
        return self._conditional(node)

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """A condition is one element."""
        return self._conditional(node)

    def visit_While(self, node: ast.While) -> ast.AST:
        """A condition is one element."""
        return self._conditional(node, "_kernel_again")

    def _conditional(self, node: ast.If | ast.IfExp | ast.While, name: str = "_kernel_condition") -> ast.AST:
        self.generic_visit(node)
        node.test = _call(name, node.test)
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        """Of all elements."""
        self.generic_visit(node)
        node.test = _call("_kernel_all", node.test)
        return node


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(func=ast.Name(id=name, ctx=ast.Load()), args=list(arguments), keywords=[])


def _compile_with_what_it_sees(self: Any, tree: ast.Module) -> Any:
    """Compile a changed kernel; one that is defined in a function sees that function's variables, as on a GPU."""
    seen = inspect.getclosurevars(self.fn).nonlocals if self.fn.__closure__ else {}
    scope = self.fn.__globals__
    for name, value in vars(interpreter).items():
        scope.setdefault(name, value)
    made: dict[str, Any] = dict(self.kwargs)
    exec(compile(_within(tree, tuple(seen)), self.filename, "exec"), scope, made)  # noqa: S102 -- in the sandbox.
    return made[_OUTER](*seen.values())


_OUTER = "_kernel_ladder_outer"


def _within(tree: ast.Module, names: Sequence[str]) -> ast.Module:
    """A function of these names that gives the function which the module defines."""
    (kernel,) = (one for one in tree.body if isinstance(one, ast.FunctionDef))
    given = ast.Return(ast.Name(id=kernel.name, ctx=ast.Load()))
    arguments = [ast.arg(arg=name) for name in names]
    parameters = ast.arguments(posonlyargs=[], args=arguments, kwonlyargs=[], kw_defaults=[], defaults=[])
    outer: Any = ast.FunctionDef(name=_OUTER, args=parameters, body=[kernel, given], decorator_list=[])
    outer.type_params = []
    tree.body = [outer]
    return ast.fix_missing_locations(tree)
