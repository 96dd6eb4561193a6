#!/bin/sh
# The figures of docs/measurement.md on a bare GPU machine: torch, triton, cuda-bindings, pytest, a C compiler. Seven minutes or more, alone on the GPU.
# SANDBOX names another driver than the process sandbox, such as autograder.sandbox.docker:DockerSandbox (scripts/device/docker_up.sh first).
set -u
cd "$(dirname "$0")/../.." || exit 1
OUT=${OUT:-var/measurement}
LANE=${LANE:-h200}
SANDBOX=${SANDBOX:-autograder.sandbox.process:ProcessSandbox}
read_part() {
  python3 scripts/measurement.py read --lane "$LANE" --out "$OUT" --sandbox "$SANDBOX" "$@"
}
timeout 90 python3 -m pytest tests/gpu/test_gpu_clocks.py --confcutdir tests/gpu -q || true
read_part --part bench
read_part --part warm --times 3 --limit-s 40
read_part --part short --times 20 --limit-s 60
read_part --part cold --times 1 --limit-s 30
read_part --part self --times 20 --limit-s "${LIMIT_S:-150}"
python3 scripts/measurement.py tables --out "$OUT"
