"""Check one call, or one case: fresh inputs, a call, and the outputs against the oracle; then the same inputs again."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

import torch

from autograder.assignment import Assignment, Case
from autograder.contract import Mismatch, Pattern, StudentError, Verdict, Visibility
from autograder.errors import GpuMemoryError
from autograder.judge.correctness import explain, facts, noop_replay, seeds
from autograder.judge.correctness.compare import Comparison, Damage, agree, compare, far_apart, same_bits
from autograder.judge.correctness.facts import Facts, Outside
from autograder.judge.correctness.noop_replay import Output
from autograder.judge.correctness.problem import Problem, Truth
from autograder.judge.defences import Defences
from autograder.judge.protocol.batch_buffer import BatchMemory
from autograder.judge.protocol.batch_inputs import Changed, Inputs, StoredInputs
from autograder.judge.protocol.buffers import Buffers, Snapshot, layout_of, overflows, strides_of
from autograder.judge.protocol.devices import Device
from autograder.judge.protocol.failure import Failure
from autograder.judge.protocol.host import HOST
from autograder.judge.protocol.oom_attribution import MESSAGE, took_the_memory
from autograder.judge.protocol.runner_client import BatchReply, CallReply, RunnerClient
from autograder.judge.protocol.tensors import Tensors
from autograder.misconceptions import Misconception
from autograder.protocol import TensorSpec

Around = tuple[int, int, int]
"""How many elements were changed before a tensor, after it and between its rows."""
NO_MEMORY = (GpuMemoryError, torch.OutOfMemoryError)
_QUICK_S = 1.0
"""A call that takes longer is not made once more only to word what is wrong with it: the next cases need the time."""
_WRITTEN = "The input `{}` was written to. Inputs are read only; write into the outputs."


@dataclass(frozen=True)
class CallResult:
    """What a call, or a case, showed.

    Attributes:
        ended: the runner is gone, or must go.
        starved: only the backstop ended it, as in `Failure`.
        finished: the call itself, where it came back, without its snapshots: those of a large case are not kept.
        outputs: private copies, by name, of the calls of a case that has to agree with itself bit for bit.
        seconds: from the reveal to the end of the comparison.
        unaided: of a call whose kernels did nothing, the share of its outputs that is right all the same (`unaided`).
        facts: of a public case that failed, what its explanation is made from.
    """

    verdict: Verdict
    message: str
    mismatch: Mismatch | None = None
    error: StudentError | None = None
    ended: bool = False
    starved: bool = False
    finished: CallReply | None = None
    outputs: Tensors = field(default_factory=dict)
    seconds: float = 0.0
    unaided: float = 0.0
    facts: Facts = facts.NONE

    @property
    def passed(self) -> bool:
        """Whether nothing was found."""
        return self.verdict is Verdict.passed


@dataclass(frozen=True)
class CallOutputs:
    """A call that came back, kept its guard bands and left its inputs alone; its outputs are still to be compared.

    Attributes:
        inputs: the judge's own.
        outputs: private copies, by name.
        lent_bytes: memory of ours that the runner may still have mapped.
    """

    case: Case
    inputs: Tensors
    outputs: dict[str, Snapshot]
    finished: CallReply
    lent_bytes: int

    def values(self) -> Tensors:
        """The outputs, contiguous."""
        return {name: snapshot.values() for name, snapshot in self.outputs.items()}


@dataclass(frozen=True)
class BatchOutputs:
    """A batch that came back, call by call; the times are those of all calls together, and of all copies.

    Attributes:
        calls: none where nobody looked at them.
        inputs: by call, to call the other side with.
    """

    calls: tuple[CallOutputs, ...]
    inputs: tuple[StoredInputs, ...]
    sealed_us: float
    copy_us: float
    event_us: float


class Checker:
    """Checks calls of one assignment."""

    def __init__(
        self,
        assignment: Assignment,
        problem: Problem,
        defences: Defences,
        device: Device = HOST,
        misconceptions: Sequence[Misconception] = (),
    ) -> None:
        self._assignment = assignment
        self._misconceptions = misconceptions
        self._asked_of_filling = False
        self._problem = problem
        self._defences = defences
        self._device = device
        self._buffers = Buffers(assignment, defences, device)

    def case(self, runner: RunnerClient, case: Case) -> CallResult:
        """Call twice on the same fresh inputs, in fresh memory: right, and right again in the same way."""
        try:
            inputs = self.draw(case)
        except NO_MEMORY as error:
            return self.no_memory(runner, 0, error)
        first = self._call(runner, case, inputs)
        if not self._defences.second_call:
            return first
        if self._may_be_unset(first, case):
            first = self._over_zeros(first, runner, case, inputs)
        if first.verdict is Verdict.wrong_answer and runner.orders > 1 and not (first.ended or first.facts.unset):
            return self._in_other_orders(first, runner, case, inputs)
        if not first.passed:
            return first
        second = self._call(runner, case, inputs)
        return self._repeated(case, first, second, in_orders=runner.orders > 1)

    def call(self, runner: RunnerClient, case: Case, *, cold: bool = True) -> CallResult:
        """One checked call on inputs that were never seen, as it is timed; nothing of its memory is kept."""
        checked = self._call(runner, case, self.draw(case), record=False, cold=cold)
        return dataclasses.replace(checked, outputs={})

    def counted(self, runner: RunnerClient, case: Case) -> CallResult:
        """One checked call, of whose memory everything is counted."""
        taken = self.call_unverified(runner, case, self.draw(case), record=True, count=True, cold=False)
        checked = taken if isinstance(taken, CallResult) else self.verify(taken, suspect=runner)
        return dataclasses.replace(checked, outputs={})

    def replay(self, runner: RunnerClient, case: Case) -> CallResult:
        """One call whose kernels do nothing: how much of its outputs is right all the same; nothing is explained."""
        start = time.monotonic()
        taken = self.call_unverified(runner, case, self.draw(case), cold=False)
        checked = taken if isinstance(taken, CallResult) else self._unaided(taken, runner)
        return dataclasses.replace(checked, seconds=time.monotonic() - start)

    def call_unverified(
        self,
        runner: RunnerClient,
        case: Case,
        inputs: Tensors,
        *,
        record: bool = False,
        trace: bool = False,
        count: bool = False,
        cold: bool = True,
        poison: bool = True,
        suspect: RunnerClient | None = None,
    ) -> CallOutputs | CallResult:
        """One call whose outputs are compared later; or what went wrong in it.

        Args:
            cold: as if it were timed.
            poison: outputs begin with the judge's fill value, else as zeros: then nothing is judged by it.
            suspect: whose fault it may be if the device's memory runs out; the runner's own where nobody is named.
        """
        size = sum(spec.bytes for spec in self._layout(case))
        if cold:
            self._in_the_same_place()
        try:
            tensors = self._buffers.make(case, inputs, poison=poison)
        except NO_MEMORY as error:
            # Nothing of it was lent to anybody.
            return self.no_memory(suspect or runner, 0, error)
        try:
            scalars = self._scalars(case, strides_of(tensors)) | self._drawn(case, inputs)
            called = runner.call(
                tensors, scalars, function=case.function, record=record, trace=trace, count=count, cold=cold
            )
            if isinstance(called, Failure):
                return as_result(called)
            # Snapshots are the judge's own: while they are looked at, the device clears what is given back.
            self._buffers.release(tensors)
            return self._outputs_of(case, inputs, called, 2 * size, self._around(called.snapshots))
        except NO_MEMORY as error:
            return self.no_memory(suspect or runner, 2 * size if suspect in {None, runner} else 0, error)
        finally:
            self._buffers.release(tensors)

    def batch(
        self,
        runner: RunnerClient,
        case: Case,
        inputs: Sequence[Inputs],
        *,
        calls_per_buffer: int = 1,
        cold: bool = True,
        suspect: RunnerClient | None = None,
        should_verify: Callable[[BatchReply], bool] | None = None,
    ) -> BatchOutputs | CallResult:
        """Several calls as one exchange, whose outputs are compared later; or what went wrong in one of them.

        Args:
            calls_per_buffer: calls whose inputs lie in one buffer, and their outputs in another.
            cold: it is timed.
            should_verify: whether to look at it at all; where not, the calls of what comes back are none.
        """
        try:
            if cold:
                self._device.trim_cache()
                self._in_the_same_place()
            memory = BatchMemory(
                self._assignment, case, self._device, inputs, self._defences, calls_per_buffer=calls_per_buffer
            )
        except NO_MEMORY as error:
            # Nothing of it was lent to anybody.
            return self.no_memory(suspect or runner, 0, error)
        try:
            strides = {spec.name: spec.stride for spec in memory.specs}
            called = runner.batch(memory, self._scalars(case, strides), cold=cold)
            if isinstance(called, Failure):
                return as_result(called)
            if should_verify and not should_verify(called):
                return BatchOutputs((), (), called.sealed_us, called.copy_us, called.event_us)
            return self._batch_outputs_of(case, called, memory)
        except NO_MEMORY as error:
            # Nothing was lent yet, or it was let go of: who has it still has kept it.
            return self.no_memory(suspect or runner, 0, error)
        finally:
            memory.close()

    def verify(
        self,
        taken: CallOutputs,
        expected: Tensors | None = None,
        *,
        suspect: RunnerClient | None = None,
    ) -> CallResult:
        """Compare the outputs of a call.

        Args:
            expected: the reference's outputs of the same inputs; what agrees with them needs no oracle, and what is
                near them only for a sample that is drawn when the outputs are there.
        """
        try:
            outputs = taken.values()
            if expected is not None and self._right_beside(taken, outputs, expected):
                checked = CallResult(Verdict.passed, "Passed.", outputs=outputs)
            else:
                checked = self._compared(taken, outputs)
        except NO_MEMORY as error:
            if suspect is None:
                raise
            checked = self.no_memory(suspect, taken.lent_bytes, error)
        return dataclasses.replace(checked, finished=taken.finished)

    def no_memory(self, suspect: RunnerClient, lent_bytes: int, error: Exception) -> CallResult:
        """The device's memory ran out: the suspect's fault, or an error of ours.

        Of one that is gone nothing comes back: nobody waits for it again.
        """
        if self._defences.memory_blame and not suspect.closed and took_the_memory(self._device, suspect, lent_bytes):
            return CallResult(Verdict.out_of_memory, MESSAGE, ended=True)
        raise error

    @property
    def assignment(self) -> Assignment:
        """Whose calls they are."""
        return self._assignment

    def draw(self, case: Case) -> Tensors:
        """Inputs that were never seen."""
        seed = seeds.fresh_seed() if self._defences.fresh_inputs else seeds.KNOWN_SEED
        return self._problem.part(case).inputs(case, seed, self._device.where)

    def close(self) -> None:
        """Let go of memory that was kept."""
        self._buffers.close()

    def _call(
        self,
        runner: RunnerClient,
        case: Case,
        inputs: Tensors,
        *,
        record: bool = True,
        cold: bool = False,
    ) -> CallResult:
        start = time.monotonic()
        taken = self.call_unverified(runner, case, inputs, record=record, cold=cold)
        checked = taken if isinstance(taken, CallResult) else self.verify(taken, suspect=runner)
        return dataclasses.replace(checked, seconds=time.monotonic() - start)

    def _in_the_same_place(self) -> None:
        """Before memory for something that is timed: the driver has what was given back again, and gives it out first.

        Or whoever is called right after another has other memory than that one, in every pair of a grading, and where
        memory lies makes up to 1.8 % (docs/decisions/0040).
        """
        if self._defences.cold:
            self._device.wait_until_idle()

    def _layout(self, case: Case) -> tuple[TensorSpec, ...]:
        part = self._assignment.part(case)
        tensors = (*part.inputs, *part.outputs)
        return tuple(layout_of(one, self._assignment, case, self._device.granularity) for one in tensors)

    def _scalars(self, case: Case, strides: Mapping[str, tuple[int, ...]]) -> dict[str, int | float]:
        """Sizes and strides, by argument."""
        return integers_of(self._assignment, case, strides)

    def _drawn(self, case: Case, inputs: Tensors) -> dict[str, int | float]:
        """What was drawn for one call, by argument."""
        return {argument.name: inputs[argument.name].item() for argument in self._assignment.part(case).scalars}

    def _outputs_of(
        self, case: Case, inputs: Tensors, called: CallReply, lent_bytes: int, around: Sequence[Around]
    ) -> CallOutputs | CallResult:
        """Guards and inputs first: a right output does not excuse them."""
        if broken := self._broken_rules(called, around):
            return dataclasses.replace(broken, finished=dataclasses.replace(called, snapshots=()))
        by_name = {snapshot.source.spec.name: snapshot for snapshot in called.snapshots}
        part = self._assignment.part(case)
        if not self._defences.private_inputs:
            inputs = inputs | {one.name: by_name[one.name].values() for one in part.inputs if one.name in by_name}
        outputs = {argument.name: by_name[argument.name] for argument in part.outputs}
        return CallOutputs(case, inputs, outputs, dataclasses.replace(called, snapshots=()), lent_bytes)

    def _batch_outputs_of(self, case: Case, called: BatchReply, memory: BatchMemory) -> BatchOutputs | CallResult:
        """The calls of a batch, one by one; what lies around their outputs is looked at together."""
        calls, inputs = [], []
        around = iter(self._around([snapshot for snapshots in called.snapshots for snapshot in snapshots]))
        for (own, changed), snapshots in zip(memory.read_back_inputs(), called.snapshots, strict=True):
            one = CallReply(snapshots, called.sealed_us / memory.calls, called.event_us / memory.calls, (), {}, ())
            if changed and (broken := self._broken_input(changed[0])):
                return dataclasses.replace(broken, finished=one)
            found = self._outputs_of(case, own.tensors(), one, 0, list(islice(around, len(snapshots))))
            if isinstance(found, CallResult):
                return found
            calls.append(found)
            inputs.append(own)
        return BatchOutputs(tuple(calls), tuple(inputs), called.sealed_us, called.copy_us, called.event_us)

    def _broken_input(self, changed: Changed) -> CallResult | None:
        """What it means that an input of a batch is not as it was: around it first, as in a single call."""
        if self._defences.guard_bands and any(changed.outside):
            return _overflow(changed.name, (), *changed.outside)
        written = CallResult(Verdict.rule_violation, _WRITTEN.format(changed.name))
        return written if self._defences.private_inputs else None

    def _right_beside(self, taken: CallOutputs, outputs: Tensors, expected: Tensors) -> bool:
        """Whether outputs are right by what the reference made of the same inputs, without a look at all of them.

        They agree; or none is further from the reference's than rounding goes, and a sample is right by the oracle.
        Work that was left undone shows in a few calls, wherever it was. Who is refused is compared with the oracle.
        """
        if not self._defences.oracle:
            return True
        problem = self._problem.part(taken.case)
        if problem.has_check:
            return False
        rules = self._assignment.tolerance
        differing = [name for name, got in outputs.items() if not agree(got, expected[name], rules[name])]
        if any(rules[name].kind == "exact" or _unlike(outputs[name], expected[name]) for name in differing):
            return False
        sample = problem.sample(taken.inputs, outputs) if differing else None
        if sample is None:
            return not differing
        some, truth = sample
        return all(
            compare(some[name], truth.expected[name], truth.scale[name], rules[name]).right for name in differing
        )

    def _around(self, snapshots: Sequence[Snapshot]) -> list[Around]:
        """What changed around each."""
        return overflows(snapshots) if self._defences.guard_bands else [(0, 0, 0)] * len(snapshots)

    def _broken_rules(self, called: CallReply, around: Sequence[Around]) -> CallResult | None:
        """Guards that changed; then inputs that did, in shared memory or, as the runner says, in its own view."""
        for snapshot, changed in zip(called.snapshots, around, strict=True):
            if any(changed):
                return _overflow(snapshot.source.spec.name, snapshot.source.spec.shape, *changed)
        for snapshot in called.snapshots:
            spec = snapshot.source.spec
            rewritten = not spec.writable and (spec.name in called.written or snapshot.rewritten())
            if self._defences.private_inputs and rewritten:
                return CallResult(Verdict.rule_violation, _WRITTEN.format(spec.name))
        return None

    def _compared(self, taken: CallOutputs, outputs: Tensors) -> CallResult:
        """Piece by piece, so that what comparing takes of the device's memory is the same whatever the size."""
        inputs, snapshots, problem = taken.inputs, taken.outputs, self._problem.part(taken.case)
        also_wrong = problem.wrong_by_check(inputs, outputs)
        untouched = {name: snapshots[name].untouched() for name in outputs}
        found = {name: Damage(problem.along(name)) for name in outputs}
        begun = dict.fromkeys(outputs, 0)
        for some, truth in problem.pieces(inputs, outputs):
            for name, got in some.items():
                along = problem.along(name)
                place = (along, begun[name], got.shape[along]) if got.dim() else None
                begun[name] += got.shape[along] if got.dim() else 0
                comparison = self._comparison(name, got, truth, _at(untouched[name], place))
                if name in also_wrong:
                    comparison = Comparison(comparison.wrong | _at(also_wrong[name], place), comparison.allowed)
                found[name].add(comparison, truth.expected[name])
        for name, damage in found.items():
            if damage.any:
                told = explain.mismatch(name, outputs[name], damage, untouched[name])
                known = self._facts(taken, outputs, truth, (found, untouched))
                message = explain.sentence(told)
                return CallResult(Verdict.wrong_answer, message, mismatch=told, outputs=outputs, facts=known)
        return CallResult(Verdict.passed, "Passed.", outputs=outputs)

    def _facts(
        self, taken: CallOutputs, outputs: Tensors, truth: Truth, masks: tuple[Mapping[str, Damage], Tensors]
    ) -> Facts:
        """What the explanation of a public case needs."""
        if taken.case.visibility is not Visibility.public:
            return facts.NONE
        found, untouched = masks
        wrong = {name: damage.wrong for name, damage in found.items()}
        # Those of another function would look for that one's tensors.
        mine = {case.name for case in self._assignment.part(taken.case).cases}
        misconceptions = [one for one in self._misconceptions if mine.issuperset(one.fails)]
        return facts.gather(
            self._problem.part(taken.case), (taken.inputs, outputs), truth, (wrong, untouched), misconceptions
        )

    def _may_be_unset(self, first: CallResult, case: Case) -> bool:
        """Whether to ask, once in a grading, if an output that is wrong throughout was added to before it was set."""
        if first.mismatch is None or first.mismatch.wrong < first.mismatch.total or first.seconds > _QUICK_S:
            return False
        return case.visibility is Visibility.public and not self._asked_of_filling

    def _over_zeros(self, first: CallResult, runner: RunnerClient, case: Case, inputs: Tensors) -> CallResult:
        """The first call's result, told otherwise if over outputs that begin as zeros the answer is another one.

        Adding to the judge's fill value, a NaN, leaves that NaN: memory alone doesn't tell it from nothing written.
        """
        self._asked_of_filling = True
        taken = self.call_unverified(runner, case, inputs, cold=False, poison=False)
        if isinstance(taken, CallResult):
            return dataclasses.replace(first, ended=taken.ended, starved=taken.starved)
        name = first.mismatch.output if first.mismatch else ""
        got = taken.outputs[name].values()
        if first.mismatch is None or not (_shows_more(got, first.mismatch) or self._is_right(taken, name)):
            return first
        told = explain.never_set(first.mismatch)
        known = dataclasses.replace(first.facts, unset=name)
        return dataclasses.replace(first, message=explain.sentence(told), mismatch=told, facts=known)

    def _is_right(self, taken: CallOutputs, name: str) -> bool:
        """Whether one output of a call is."""
        outputs, truth = taken.values(), self._problem.part(taken.case).truth(taken.case, taken.inputs)
        found = dict(self._comparisons(taken, outputs, truth))
        return found[name].right

    def _unaided(self, taken: CallOutputs, suspect: RunnerClient) -> CallResult:
        """What the outputs of a call without kernels come to."""
        try:
            outputs, truth = taken.values(), self._problem.part(taken.case).truth(taken.case, taken.inputs)
            found = {
                name: Output(outputs[name], truth.expected[name], ~comparison.wrong & ~taken.outputs[name].untouched())
                for name, comparison in self._comparisons(taken, outputs, truth)
            }
            share = noop_replay.share(found, taken.inputs)
            verdict = Verdict.passed if all(bool(one.right.all()) for one in found.values()) else Verdict.wrong_answer
        except NO_MEMORY as error:
            return self.no_memory(suspect, taken.lent_bytes, error)
        return CallResult(verdict, "Replayed.", finished=taken.finished, unaided=share)

    def _comparisons(self, taken: CallOutputs, outputs: Tensors, truth: Truth) -> Iterator[tuple[str, Comparison]]:
        """Each output's."""
        also_wrong = self._problem.part(taken.case).wrong_by_check(taken.inputs, outputs)
        for name, got in outputs.items():
            comparison = self._comparison(name, got, truth, taken.outputs[name].untouched())
            if name in also_wrong:
                comparison = Comparison(comparison.wrong | also_wrong[name], comparison.allowed)
            yield name, comparison

    def _comparison(self, name: str, got: torch.Tensor, truth: Truth, untouched: torch.Tensor) -> Comparison:
        """By the output's tolerance; and poison does not pass for a NaN that is expected."""
        found = compare(got, truth.expected[name], truth.scale[name], self._assignment.tolerance[name])
        stale = untouched & got.isnan() if got.dtype.is_floating_point else torch.zeros_like(untouched)
        return Comparison(found.wrong | stale, found.allowed)

    def _in_other_orders(self, first: CallResult, runner: RunnerClient, case: Case, inputs: Tensors) -> CallResult:
        """A wrong answer, and whether it is another one when threads take turns in another order."""
        if first.mismatch is None:
            return first
        for _ in range(runner.orders - 1):
            other = self._call(runner, case, inputs)
            if any(far_apart(got, first.outputs[name]) for name, got in other.outputs.items()):
                message, found = explain.depends_on_order(first.mismatch), dataclasses.replace(first.facts, order=True)
                return dataclasses.replace(first, message=message, facts=found, outputs={})
            if other.ended:
                return dataclasses.replace(first, ended=True, starved=other.starved)
        return first

    def _repeated(self, case: Case, first: CallResult, second: CallResult, *, in_orders: bool) -> CallResult:
        """The case's result after its second call."""
        if second.verdict is Verdict.wrong_answer:
            told = explain.depends_on_order(second.mismatch) if in_orders and second.mismatch else second.message
            message = f"The first call was right, the second on the same inputs was not. {told}"
            found = dataclasses.replace(second.facts, order=True)
            return dataclasses.replace(second, verdict=Verdict.nondeterministic, message=message, facts=found)
        if not second.passed or not self._assignment.bitwise:
            return dataclasses.replace(second, seconds=first.seconds)
        for name, got in second.outputs.items():
            differing = int((~same_bits(got, first.outputs[name])).sum())
            if differing:
                message = (
                    f"Two calls on the same inputs gave different outputs: {differing} of {got.numel()} elements of "
                    f"`{name}`."
                )
                found = Facts(order=case.visibility is Visibility.public)
                return dataclasses.replace(second, verdict=Verdict.nondeterministic, message=message, facts=found)
        return dataclasses.replace(second, seconds=first.seconds)


def integers_of(assignment: Assignment, case: Case, strides: Mapping[str, tuple[int, ...]]) -> dict[str, int | float]:
    """Sizes and strides that a call is given, by argument; `strides` are the tensors'."""
    scalars: dict[str, int | float] = {}
    for argument in assignment.part(case).arguments:
        if argument.role == "size":
            scalars[argument.name] = case.size[argument.name]
        elif argument.role == "stride":
            scalars[argument.name] = strides[argument.of][argument.dim]
    return scalars


def _shows_more(got: torch.Tensor, before: Mismatch) -> bool:
    """Whether an output that was all filling, or NaN, as adding to that makes it on some devices, is numbers now."""
    if before.pattern not in {Pattern.untouched, Pattern.all_nan}:
        return False
    return bool((got != 0).any()) and not (got.dtype.is_floating_point and bool(got.isnan().any()))


def _unlike(got: torch.Tensor, checked: torch.Tensor) -> bool:
    """Whether an output is further from the reference's than rounding goes, or holds what is no number."""
    no_number = got.dtype.is_floating_point and bool(got.isnan().any())
    return no_number or far_apart(got, checked)


def _at(tensor: torch.Tensor, place: tuple[int, int, int] | None) -> torch.Tensor:
    """A piece of a tensor, by dimension, start and length; all of one that has no dimension."""
    return tensor.narrow(*place) if place else tensor


def as_result(failure: Failure) -> CallResult:
    """A failure as what the case showed."""
    return CallResult(
        failure.verdict, failure.message, error=failure.error, ended=failure.ended, starved=failure.starved
    )


def _overflow(name: str, shape: tuple[int, ...], before: int, after: int, between: int) -> CallResult:
    """What was written around a tensor, most telling first."""
    places = ((after, "after its end"), (before, "before its start"), (between, "between its rows"))
    count, where = next(place for place in places if place[0])
    elements = "element was" if count == 1 else "elements were"
    message = f"{count} {elements} written outside `{name}`, {where}."
    return CallResult(
        Verdict.illegal_access, message, facts=Facts(outside=Outside(name, shape, before, after, between))
    )
