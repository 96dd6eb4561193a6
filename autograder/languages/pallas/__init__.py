"""Pallas, the kernels of JAX: interpreted on the CPU lane, compiled by XLA on a GPU, for Triton or for Mosaic GPU.

Arrays of JAX are immutable. So the entry is a function of arrays: it is traced once for every shape, and returns what
belongs into its outputs. The harness sees to it that this lands in the judge's buffers.
"""

from __future__ import annotations

from autograder.languages.python_text import PythonText, binds
from autograder.languages.record import ErrorKind, Record

_TEXT = PythonText(modules=frozenset({"jax", "functools"}), compilers=frozenset({"jax"}))

LANGUAGE = Record(
    id="pallas",
    title="Pallas",
    order=4,
    endings=(".py",),
    recognised_by=r"^\s*(?:import|from)\s+jax\b",
    editor_mode="python",
    lexer="python",
    normal_form=_TEXT.normal_form,
    declares=binds,
    cpu_lane="Pallas' interpreter runs it.",
    cpu_loader="autograder.runner.languages.pallas:PallasLoader",
    gpu_loader="autograder.runner.languages.pallas_gpu:PallasGpuLoader",
    error_kinds={
        "DataRace": ErrorKind("wrong_answer", "The result depends on timing."),
        "WrongOutput": ErrorKind("wrong_answer", "Return one array for every output, in the order of the arguments."),
    },
    environment={
        "JAX_PLATFORMS": "cpu",
        "PJRT_NPROC": "1",
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false --xla_cpu_experimental_ynn_fusion_type=",
    },
    extra="pallas",
    imports=("jax", "absl"),
    packages=("jax>=0.10.2,<0.12", "absl-py>=2.4,<3"),
)
