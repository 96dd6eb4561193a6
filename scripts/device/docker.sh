#!/bin/sh
# On a bare GPU machine: bring Docker up and read what docs/sandbox.md publishes: the promises, start times cold and warm, how
# long freezing takes, and a staff kernel graded by the judge through containers. Writes $OUT/docker.json.
#   LANE   of the GPU (default h200)
# Carry .device (scripts/device/pack_docker.sh makes it).
set -eu
cd "$(dirname "$0")/../.."
sh scripts/device/docker_up.sh
export PYTHONPATH="${DOCKER_HOME:-/usr/local/lib/kernel-ladder-docker}/site${PYTHONPATH:+:$PYTHONPATH}"
export TRITON_LIBCUDA_PATH="${TRITON_LIBCUDA_PATH:-/usr/local/nvidia/lib64}"
python3 scripts/docker_figures.py --lane "${LANE:-h200}" --out "${OUT:-var/device}/docker.json" "$@"
