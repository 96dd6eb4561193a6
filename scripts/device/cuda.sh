#!/bin/sh
# On a GPU machine (torch, nvcc; no network): does CUDA C++ get the verdicts it must get through the judge and the process sandbox, and
# how fast are the staff kernels and milestones? OUT gets cuda.json, one row per grading, written after each.
# Usage: OUT=FOLDER [LANE=h200] [SECONDS_IN_ALL=85] sh scripts/device/cuda.sh
set -u
cd "$(dirname "$0")/../.."
timeout "$((${SECONDS_IN_ALL:-85} + 60))" python3 scripts/device/cuda_lane.py --lane "${LANE:-h200}" \
    --seconds "${SECONDS_IN_ALL:-85}" --out "$OUT/cuda.json"
