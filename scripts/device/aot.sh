#!/bin/sh
# On a GPU machine (torch, triton; no network): are the kernels that are compiled without a device those that it runs, and is
# who uses a library found, and nobody else? OUT gets compare.json (every kernel both ways) and findings.json (check attempts).
# Usage: OUT=FOLDER [WHAT=compare] [FINDINGS_S=60] sh scripts/device/aot.sh
set -u
cd "$(dirname "$0")/../.."
for what in ${WHAT:-compare findings}; do
    timeout 300 python3 scripts/device/aot.py "$what" --out "$OUT/$what.json"
    echo "$what: $?"
done
