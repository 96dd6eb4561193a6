"""Programs of a launch that race, and addresses outside of every tensor, found while the interpreter runs them.

The interpreter runs one program after another and passes raw addresses to numpy: what on a GPU depends on luck is right
there. So each launch of a recorded call is watched: which program touched which element, and whether an address lies in
a tensor that the launch was given. Two programs race if one writes, without an atomic, what the other one reads or
writes, unless the write changes nothing or both have used atomics, by which they may wait for each other. A read of
what others change by atomics is no race: it may be a hint.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np
from triton.runtime import interpreter

from autograder.runner.languages.hooks import replace
from autograder.runner.record import Record

_interpreter: Any = interpreter._interpreter  # noqa: SLF001 -- the functions that touch memory.
_MOST_KEPT = 2**22
"""Elements of reads that are kept by reference until their tensor is written to."""


class DataRace(RuntimeError):  # noqa: N818 -- the kind of error that students are shown, as for CUDA C++.
    """What comes out depends on the order in which programs run."""


class IllegalAccess(RuntimeError):  # noqa: N818 -- likewise.
    """An address that is in none of the launch's tensors."""


@dataclass(frozen=True)
class Extent:
    """From a tensor's first element to behind its last, in bytes."""

    begin: int
    size: int


def _extent(tensor: Any) -> Extent:
    last = sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return Extent(tensor.data_ptr(), (last + 1) * tensor.element_size() if tensor.numel() else 0)


@dataclass
class Memory:
    """One storage that a launch may touch.

    Attributes:
        begin: its address.
        size: its bytes.
        item: bytes of what it is an array of.
        name: of the kernel's argument.
        extent: what of it may be touched: a tensor of the call's, or all that the submission made.
        writers: of each item, the program that wrote it last, from 1; negative by an atomic.
        readers: the program that read it last.
        several: whether several have read it.
    """

    begin: int
    size: int
    item: int
    name: str
    extent: Extent
    writers: Any = None
    readers: Any = None
    several: Any = None
    unwritten: list[tuple[int, Any]] = field(default_factory=list)
    kept: int = 0

    def holds(self, addresses: Any, size: int) -> Any:
        """For each address, whether so many bytes from it on may be touched."""
        offsets = addresses - self.extent.begin
        return (offsets >= 0) & (offsets + size <= self.extent.size)

    def spans(self, lowest: int, highest: int) -> bool:
        """Whether both addresses are in it."""
        return self.begin <= lowest and highest < self.begin + self.size

    def place_of(self, address: int) -> str:
        """An address in words: element 5 of x_ptr."""
        number, count = (address - self.extent.begin) // self.item, self.extent.size // self.item
        has = "only 1 element (index 0)" if count == 1 else f"{count} elements (0 to {count - 1})"
        beyond = "" if 0 <= number < count else f", which has {has}"
        return f"element {number} of {self.name}{beyond}"

    def read(self, items: Any, program: int) -> None:
        """Note who read. What is only read costs nothing more."""
        if self.writers is None and self.kept < _MOST_KEPT:
            self.unwritten.append((program, items))
            self.kept += items.size
            return
        self._prepare()
        before = self.readers[items]
        self.several[items] |= (before != 0) & (before != program)
        self.readers[items] = program

    def wrote(self, items: Any, program: int) -> None:
        """Note who wrote; negative by an atomic."""
        self._prepare()
        self.writers[items] = program

    def written(self, items: Any, program: int) -> Any:
        """For each item, another program that wrote it without an atomic: its number, or 0. None of no item."""
        if self.writers is None:
            return None
        found = self.writers[items]
        found = np.where((found < 0) | (found == program), 0, found)
        return found if found.any() else None

    def touched(self, items: Any, program: int) -> Any:
        """For each item, another program that touched it at all."""
        if self.writers is None and not self.unwritten:
            return None
        self._prepare()
        found, readers = np.abs(self.writers[items]), self.readers[items]
        found = np.where(found == program, 0, found)
        found = np.where((found == 0) & (readers != program), readers, found)
        found = np.where((found == 0) & self.several[items], _SOMEBODY, found)
        return found if found.any() else None

    def _prepare(self) -> None:
        if self.writers is not None:
            return
        count = self.size // self.item + 1
        self.writers, self.readers = np.zeros(count, np.int32), np.zeros(count, np.int32)
        self.several = np.zeros(count, bool)
        logged, self.unwritten = self.unwritten, []
        for program, items in logged:
            self.read(items, program)


_SECTOR_BYTES = 32
_COUNTERS = (
    "launches", "load_bytes", "load_sectors", "store_bytes", "store_sectors", "atomic_bytes", "atomic_sectors",
)  # fmt: skip
_SOMEBODY = np.int32(2**31 - 1)
"""Another program, which one is not known."""


class Watch:
    """One launch after another, of a recorded call.

    Attributes:
        on: a launch is watched.
        whole: a descriptor stores, whose addresses are not looked at.
        has_loaded_pointers: the launch touches more than what it was given, rightly.
    """

    def __init__(self) -> None:
        self._given: dict[int, Extent] = {}
        self.whole = False
        self._memories: list[Memory] = []
        self._kernel = ""
        self._programs: list[tuple[int, ...]] = []
        self._atomic: set[int] = set()
        self.on = False
        self.has_loaded_pointers = False
        self._counters: dict[str, int] | None = None

    def count(self, *, on: bool) -> dict[str, int]:
        """Count from now on, from nothing, or no more; what was counted so far (`autograder.counters`)."""
        found, self._counters = self._counters or {}, dict.fromkeys(_COUNTERS, 0) if on else None
        return found

    def _count(self, what: str, addresses: Any, size: int) -> None:
        """One load, store or atomic of one program: its bytes, and the sectors that it touches."""
        if self._counters is None or not addresses.size:
            return
        ends = np.unique(np.concatenate([addresses // _SECTOR_BYTES, (addresses + size - 1) // _SECTOR_BYTES]))
        self._counters[f"{what}_bytes"] += int(addresses.size) * size
        self._counters[f"{what}_sectors"] += int(ends.size)

    def call_begins(self, arguments: Iterable[Any]) -> None:
        """Know the call's own tensors."""
        tensors = [argument for argument in arguments if hasattr(argument, "untyped_storage")]
        self._given = {tensor.untyped_storage().data_ptr(): _extent(tensor) for tensor in tensors}

    def launch_begins(self, kernel: str, arguments: Iterable[tuple[str, Any]]) -> None:
        """Look at what it was given."""
        found: dict[int, Memory] = {}
        for name, tensor in arguments:
            storage = tensor.untyped_storage()
            begin = storage.data_ptr()
            if begin not in found and storage.nbytes():
                extent = self._given.get(begin, Extent(begin, storage.nbytes()))
                found[begin] = Memory(begin, storage.nbytes(), tensor.element_size(), name, extent)
        self._memories = list(found.values())
        self._kernel, self._programs, self._atomic = kernel, [], set()
        self.on, self.has_loaded_pointers = True, False
        if self._counters is not None:
            self._counters["launches"] += 1

    def launch_ends(self) -> None:
        """Forget it."""
        self.on, self._memories = False, []

    def program_begins(self, index: Sequence[int]) -> None:
        """The next one, with its place in the grid."""
        self._programs.append(tuple(index))

    def load(self, pointers: Any, mask: Any, size: int, *, volatile: bool) -> None:
        """A program reads."""
        self._count("load", _addresses(pointers, mask), size)
        for memory, items, addresses in self._touched(pointers, mask, size, "reads"):
            others = None if volatile else memory.written(items, len(self._programs))
            if others is not None:
                self._race(memory, addresses, others, "reads", "writes")
            memory.read(items, len(self._programs))

    def store(self, pointers: Any, mask: Any, values: Any) -> None:
        """A program is about to write."""
        size = values.dtype.itemsize
        self._count("store", _addresses(pointers, mask), size)
        flat = np.broadcast_to(values, pointers.shape)[mask] if mask is not None else values.ravel()
        for memory, items, addresses in self._touched(pointers, mask, size, "writes"):
            others = memory.touched(items, len(self._programs))
            if items.size == flat.size:
                if others is not None:
                    others = np.where(_changes(addresses, flat), others, 0)
                self._one_value_each(memory, items, addresses, flat)
            if others is not None and others.any():
                self._race(memory, addresses, others, "writes", "touches")
            memory.wrote(items, len(self._programs))

    def atomic(self, pointers: Any, mask: Any, size: int) -> None:
        """A program uses an atomic."""
        me = len(self._programs)
        self._atomic.add(me)
        self._count("atomic", _addresses(pointers, mask), size)
        for memory, items, addresses in self._touched(pointers, mask, size, "writes"):
            others = memory.written(items, me)
            if others is not None:
                self._race(memory, addresses, others, "writes by an atomic", "writes without one")
            memory.wrote(items, -me)

    def _touched(self, pointers: Any, mask: Any, size: int, does: str) -> Iterator[tuple[Memory, Any, Any]]:
        """Each memory with the items that are touched in it, and their addresses; parts of items are left out.

        Raises:
            IllegalAccess: an address is in none.
        """
        addresses = _addresses(pointers, mask)
        if not addresses.size:
            return
        lowest, highest = int(addresses.min()), int(addresses.max())
        memory = next((one for one in self._memories if one.spans(lowest, highest)), None)
        held = memory.holds(addresses, size) if memory else np.zeros(addresses.shape, bool)
        if memory and (self.whole or held.all()):
            if size >= memory.item:
                yield memory, (addresses - memory.begin) // memory.item, addresses
            return
        for one in self._memories:
            inside = one.holds(addresses, size)
            held |= inside
            if inside.any() and size >= one.item and not self.whole:
                yield one, (addresses[inside] - one.begin) // one.item, addresses[inside]
        if not (held.all() or self.whole or self.has_loaded_pointers):
            self._illegal(int(addresses[~held][0]), does)

    def _illegal(self, address: int, does: str) -> NoReturn:
        def distance(memory: Memory) -> int:
            return max(memory.begin - address, address - memory.begin - memory.size, 0)

        nearest = min(self._memories, key=distance, default=None)
        place = (
            nearest.place_of(address) if nearest and distance(nearest) < _NEAR else "an address outside of its tensors"
        )
        raise IllegalAccess(
            f"an illegal memory access: {self._name(len(self._programs))} of {self._kernel} {does} {place}."
        )

    def _one_value_each(self, memory: Memory, items: Any, addresses: Any, values: Any) -> None:
        """Elements of one store that go to one place have one value."""
        if (np.diff(items) > 0).all():
            return
        order = np.argsort(items, kind="stable")
        same = np.diff(items[order]) == 0
        bits = values[order].view(f"u{values.dtype.itemsize}")
        differing = same & (bits[1:] != bits[:-1])
        if differing.any():
            place = memory.place_of(int(addresses[order][1:][differing][0]))
            raise DataRace(
                f"a data race: two elements of one store of {self._name(len(self._programs))} of {self._kernel} go to "
                f"{place}, with different values, so it is not defined which one stays. To add them up, use "
                "tl.atomic_add."
            )

    def _race(self, memory: Memory, addresses: Any, others: Any, does: str, did: str) -> None:
        """Unless both have used atomics."""
        me = len(self._programs)
        for other in np.unique(others[others != 0]).tolist():
            if me in self._atomic and (other == _SOMEBODY or other in self._atomic):
                continue
            place = memory.place_of(int(addresses[others == other][0]))
            whom = "another one" if other == _SOMEBODY else self._name(other)
            raise DataRace(
                f"a data race: {self._name(me)} of {self._kernel} {does} {place}, which {whom} {did} too. Programs run "
                f"at the same time, in any order: use an atomic, or a launch of its own for what comes after."
            )

    def _name(self, program: int) -> str:
        return f"program ({','.join(map(str, self._programs[program - 1]))})"


_NEAR = 2**20


def _addresses(pointers: Any, mask: Any) -> Any:
    return (pointers[mask] if mask is not None else pointers.ravel()).astype(np.int64)


def _changes(addresses: Any, values: Any) -> Any:
    """For each element of a store, whether it changes what is there."""
    everywhere = np.ones(addresses.shape, bool)
    there = _interpreter.load(addresses.astype(np.uint64), everywhere, np.zeros_like(values), values.dtype)
    bits = f"u{values.dtype.itemsize}"
    return np.ascontiguousarray(there).view(bits) != np.ascontiguousarray(values).view(bits)


def install(record: Record) -> Watch:
    """Watch the launches of recorded calls in this process."""
    watch = Watch()
    _watch_launches(watch, record)
    _watch_accesses(watch)
    return watch


def _watch_launches(watch: Watch, record: Record) -> None:
    def launch(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not record.recording:
                return original(self, *args, **kwargs)
            named = [*zip(self.arg_names, args, strict=False), *kwargs.items()]
            watch.launch_begins(str(self.fn.__name__), _tensors(named))
            try:
                return original(self, *args, **kwargs)
            finally:
                watch.launch_ends()

        return call

    def index(original: Callable[..., Any]) -> Callable[..., Any]:
        def call(self: Any, *places: int) -> None:
            original(self, *places)
            if watch.on:
                watch.program_begins(places)

        return call

    replace(interpreter.GridExecutor, "__call__", launch)
    replace(interpreter.InterpreterBuilder, "set_grid_idx", index)


def _tensors(named: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    for name, value in named:
        if isinstance(value, tuple):
            yield from _tensors((name, one) for one in value)
        elif hasattr(value, "untyped_storage"):
            yield name, value
        elif hasattr(value, "base"):
            yield from _tensors([(name, value.base)])


def _watch_accesses(watch: Watch) -> None:
    builder = interpreter.InterpreterBuilder

    def load(pointers: Any, mask: Any, *_: Any, is_volatile: bool = False, **__: Any) -> None:
        size = interpreter._get_np_dtype(pointers.get_element_ty()).itemsize  # noqa: SLF001
        watch.load(pointers.data, _as_mask(pointers, mask), size, volatile=bool(is_volatile))

    def store(pointers: Any, value: Any, mask: Any, *_: Any, **__: Any) -> None:
        watch.store(pointers.data, _as_mask(pointers, mask), value.data)

    def change(_: Any, pointers: Any, value: Any, mask: Any, *__: Any) -> None:
        watch.atomic(pointers.data, _as_mask(pointers, mask), value.data.dtype.itemsize)

    def compare(pointers: Any, _: Any, value: Any, *__: Any) -> None:
        watch.atomic(pointers.data, None, value.data.dtype.itemsize)

    def put(pointers: Any, value: Any, mask: Any, *_: Any) -> None:
        watch.atomic(pointers.data, _as_mask(pointers, mask), value.data.dtype.itemsize)

    def cast(*_: Any) -> None:
        watch.has_loaded_pointers = True

    looks: dict[str, Callable[..., None]] = {
        "create_masked_load": load,
        "create_masked_store": store,
        "create_atomic_rmw": change,
        "create_atomic_cas": compare,
        "create_int_to_ptr": cast,
    }
    for name, look in looks.items():
        replace(builder, name, functools.partial(_after, watch, look))
    replace(builder, "create_atomic_store", functools.partial(_instead, watch, put))
    replace(builder, "create_descriptor_store", functools.partial(_as_a_whole, watch))


def _after(watch: Watch, look: Callable[..., None], original: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's own function after a look at what it is given."""
    signature = inspect.signature(original)

    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if watch.on:
            given = signature.bind(self, *args, **kwargs).arguments
            volatile = {"is_volatile": given["is_volatile"]} if "is_volatile" in given else {}
            look(*list(given.values())[1:], **volatile)
        return original(self, *args, **kwargs)

    return call


def _instead(watch: Watch, look: Callable[..., None], original: Callable[..., Any]) -> Callable[..., Any]:
    """The same, where the function is made of others that are looked at."""

    def call(self: Any, *args: Any) -> Any:
        on = watch.on
        if on:
            look(*args)
        watch.on = False
        try:
            return original(self, *args)
        finally:
            watch.on = on

    return call


def _as_a_whole(watch: Watch, original: Callable[..., Any]) -> Callable[..., Any]:
    """What the hardware stores beside a row is looked for by who compares."""

    def call(self: Any, *args: Any) -> Any:
        watch.whole = True
        try:
            return original(self, *args)
        finally:
            watch.whole = False

    return call


def _as_mask(pointers: Any, mask: Any) -> Any:
    """None where everything is touched."""
    data = np.broadcast_to(mask.data, pointers.data.shape).astype(bool)
    return None if data.all() else data
