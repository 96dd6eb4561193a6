#!/bin/sh
# What `ladder node accept` finds on this machine's GPU: on an H200 six minutes for Triton without the red team (docs/nodes.md). $OUT gets the signed report.
#
#     OUT=DIR sh scripts/device/node.sh [options of `ladder node accept`]
#
# Beside the harness it needs click, httpx, httpx-sse, rich and cryptography, and nvidia-ml-py for what NVML says: installed, or
# as unpacked wheels in PYTHONPATH. `--language triton` where there is no nvcc.
set -u
cd "$(dirname "$0")/../.."
PYTHONPATH="$(pwd)${PYTHONPATH:+:$PYTHONPATH}"
export PYTHONPATH
: "${OUT:=var/node-report}"
# Beside a GPU, not behind one: the baseline is what it holds before anything of ours runs.
nvidia-smi --query-gpu=name,driver_version,memory.used,clocks.sm,clocks.mem,temperature.gpu,power.draw --format=csv,noheader
python3 -m client node accept --lane auto --out "$OUT" "$@"
status=$?
nvidia-smi --query-gpu=memory.used --format=csv,noheader
python3 -m client node verify-report "$OUT/node-report.json"
exit $status
