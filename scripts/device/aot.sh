#!/bin/sh
# On a GPU machine (torch, triton; no network): are the kernels that are compiled without a device those that it runs, and is
# who uses a library found, and nobody else? OUT gets aot.json (every kernel both ways) and findings.json (check attempts).
# Usage: OUT=FOLDER sh scripts/device/aot.sh
set -u
cd "$(dirname "$0")/../.."
timeout "${COMPARE_S:-150}" python3 scripts/device/aot.py compare --out "$OUT/aot.json"
echo "compare: $?"
timeout "${FINDINGS_S:-150}" python3 scripts/device/aot.py findings --out "$OUT/findings.json"
echo "findings: $?"
