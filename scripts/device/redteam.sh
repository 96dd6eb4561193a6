#!/bin/sh
# The red team on a GPU machine, in three parts with a time limit each: every hostile file in the process sandbox, the same in
# Docker (where .device is carried, see scripts/device/docker_up.sh), and the search for the largest gain that goes unnoticed.
# Writes $OUT/table-<lane>-<sandbox>.json and $OUT/search-<lane>.json, which `python -m tests.redteam.publish` reads.
#
#   sh scripts/device/redteam.sh [LANE [SECONDS per part [options of python -m tests.redteam]]]
set -u
cd "$(dirname "$0")/../.."

lane=${1:-h200}
seconds=${2:-300}
[ "$#" -gt 2 ] && shift 2 || shift "$#"
out=${OUT:-var}
mkdir -p "$out"
status=0

# What is timed runs first and alone; a few judges side by side for the rest, as each keeps memory of the GPU.
python3 -m tests.redteam --lane "$lane" --sandbox process --jobs 3 --limit-s "$seconds" \
    --json "$out/table-$lane-process.json" --raw "$out/raw-$lane-process.jsonl" "$@" || status=1

python3 -m tests.redteam.search --lane "$lane" --limit-s "$seconds" --out "$out/search-$lane.json" || status=1

if [ -f .device/docker.tar.xz ] && sh scripts/device/docker_up.sh; then
    PYTHONPATH="${DOCKER_HOME:-/usr/local/lib/kernel-ladder-docker}/site${PYTHONPATH:+:$PYTHONPATH}"
    TRITON_LIBCUDA_PATH="${TRITON_LIBCUDA_PATH:-/usr/local/nvidia/lib64}"
    export PYTHONPATH TRITON_LIBCUDA_PATH
    python3 -m tests.redteam --lane "$lane" --sandbox docker --jobs 3 --limit-s "$seconds" \
        --json "$out/table-$lane-docker.json" --raw "$out/raw-$lane-docker.jsonl" "$@" || status=1
fi
exit "$status"
