"""Pallas on the CPU: what an entry becomes, where its results land, and what is said of what goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[3]
pytest.importorskip("jax", reason="the extra pallas is not installed")

# jax is hooked into for good, and starts threads: a process of its own.
_RUNS = """
import json, os, sys
os.environ.update(json.loads(sys.argv[1]))
import torch
from autograder.contract import Language
from autograder.protocol import Load
from autograder.runner.languages.pallas import PallasLoader
from autograder.runner.report import describe
asked = json.load(sys.stdin)
loader = PallasLoader()
loader.warm()
loader.begin()
said = []
for one in asked:
    words = ("input float32", "output float32", "integer")
    load = Load(
        one["source"], "kernel.py", Language("pallas"), "double", ("x", "out", "n"), ghost=one["ghost"],
        signatures=(words,),
    )
    n = one["n"]
    whole = torch.arange(3 * n + one["offset"], dtype=torch.float32)[one["offset"]:]
    x = whole[: 2 * n : 2] if one["strided"] else whole[:n]
    room = torch.full((2 * n,), -1.0)
    out = room[: 2 * n : 2] if one["strided"] else room[:n]
    try:
        entry = loader.load(load)[load.entry]
        entry.call([x, out, n], record=True)
        right = bool(torch.equal(out, 2 * x))
        spared = bool((room[1::2] == -1).all()) if one["strided"] else bool((room[n:] == -1).all())
        said.append({"right": right, "spared": spared, "nan": bool(out.isnan().all()), **entry.seen()})
    except BaseException as error:
        said.append(describe(error, "kernel.py", loader.wrappers))
print(json.dumps(said))
"""
_HEAD = """
import jax
import jax.numpy as jnp
from jax.experimental import pallas as pl
from jax.experimental.pallas import mosaic_gpu as plgpu

def _kernel(x_ref, out_ref):
    out_ref[...] = x_ref[...] * 2

def _shape(out):
    return jax.ShapeDtypeStruct(out.shape, out.dtype)
"""
KERNEL = _HEAD + "\ndef double(x, out, n):\n    return pl.pallas_call(_kernel, out_shape=_shape(out))(x)\n"
IN_PLACE = (
    _HEAD
    + """
def _into(x_ref, _, out_ref):
    out_ref[...] = x_ref[...] * 2

def double(x, out, n):
    return pl.pallas_call(_into, out_shape=_shape(out), input_output_aliases={1: 0})(x, out)
"""
)
LIBRARY = _HEAD + "\ndef double(x, out, n):\n    return x + x\n"
NOTHING = _HEAD + "\ndef double(x, out, n):\n    pl.pallas_call(_kernel, out_shape=_shape(out))(x)\n"
OTHER_TYPE = _HEAD + "\ndef double(x, out, n):\n    return (x * 2).astype('int32')\n"
RAISES = _HEAD + "\ndef double(x, out, n):\n    return x.reshape(n + 1)\n"
IN_THE_KERNEL = (
    _HEAD
    + """
def _wrong(x_ref, out_ref):
    out_ref[...] = x_ref[...] + jnp.zeros(3)

def double(x, out, n):
    return pl.pallas_call(_wrong, out_shape=_shape(out))(x)
"""
)
_MOSAIC = (
    _HEAD
    + """
def _tile(x_gmem, out_gmem, tile, loaded):
    plgpu.copy_gmem_to_smem(x_gmem, tile, loaded)
    FIRST
    SECOND
    plgpu.commit_smem()
    plgpu.copy_smem_to_gmem(tile, out_gmem)
    plgpu.wait_smem_to_gmem(0)

def double(x, out, n):
    scratch = [plgpu.SMEM((n,), jnp.float32), plgpu.Barrier()]
    return plgpu.kernel(_tile, NAMES)(x)
"""
)
WAIT, WORK = "plgpu.barrier_wait(loaded)", "tile[...] = tile[...] * 2"
OLD, NEW = "out_shape=_shape(out), scratch_shapes=scratch", "out_type=_shape(out), scratch_types=scratch"


def mosaic(first: str = WAIT, second: str = WORK, names: str = NEW) -> str:
    return _MOSAIC.replace("FIRST", first).replace("SECOND", second).replace("NAMES", names)


def job(source: str, *, n: int = 128, ghost: bool = False, offset: int = 0, strided: bool = False) -> dict[str, Any]:
    return {"source": source, "n": n, "ghost": ghost, "offset": offset, "strided": strided}


JOBS = {
    "kernel": job(KERNEL), "misaligned": job(KERNEL, offset=1), "strided": job(KERNEL, strided=True),
    "in place": job(IN_PLACE), "library": job(LIBRARY), "ghost": job(KERNEL, ghost=True),
    "mosaic": job(mosaic()), "mosaic, by its older names": job(mosaic(names=OLD)),
    "mosaic ghost": job(mosaic(), ghost=True), "race": job(mosaic(WORK, WAIT)),
    "returns nothing": job(NOTHING), "another type": job(OTHER_TYPE), "raises": job(RAISES),
    "raises in the kernel": job(IN_THE_KERNEL),
}  # fmt: skip


@pytest.fixture(scope="module")
def said() -> dict[str, dict[str, Any]]:
    from autograder import languages  # noqa: PLC0415

    environment = json.dumps(dict(languages.of("pallas").environment))
    command = [sys.executable, "-c", _RUNS, environment]
    done = subprocess.run(
        command, input=json.dumps([*JOBS.values()]), capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    return dict(zip(JOBS, json.loads(done.stdout.splitlines()[-1]), strict=True))


@pytest.mark.parametrize(
    "name", ["kernel", "misaligned", "strided", "in place", "library", "mosaic", "mosaic, by its older names"]
)
def test_what_an_entry_returns_lands_in_the_output_and_nowhere_else(said: dict[str, dict[str, Any]], name: str) -> None:
    assert (said[name].get("right"), said[name].get("spared")) == (True, True), said[name]


def test_kernels_and_operations_of_the_traced_program_are_told(said: dict[str, dict[str, Any]]) -> None:
    assert said["kernel"]["launches"] == [{"kernel": "_kernel", "grid": [], "calls": 1}]
    assert said["kernel"]["operations"] == {}
    assert said["mosaic"]["launches"][0]["kernel"] == "_tile"
    assert (said["library"]["launches"], said["library"]["operations"]) == ([], {"lax.add": 1})


@pytest.mark.parametrize("name", ["ghost", "mosaic ghost"])
def test_a_ghost_of_a_kernel_writes_nothing_that_is_right(said: dict[str, dict[str, Any]], name: str) -> None:
    assert said[name]["nan"]


def test_a_tile_that_is_read_before_it_is_there_is_a_race(said: dict[str, dict[str, Any]]) -> None:
    assert said["race"]["kind"] == "DataRace"


@pytest.mark.parametrize("name", ["returns nothing", "another type"])
def test_an_entry_has_to_return_its_outputs(said: dict[str, dict[str, Any]], name: str) -> None:
    assert said[name]["kind"] == "WrongOutput"
    assert "out" in said[name]["message"]


@pytest.mark.parametrize(
    ("name", "code"), [("raises", "return x.reshape(n + 1)"), ("raises in the kernel", "x_ref[...] + jnp.zeros(3)")]
)
def test_an_error_is_in_the_line_that_made_it(said: dict[str, dict[str, Any]], name: str, code: str) -> None:
    assert code in said[name]["frames"][-1]["code"]
