#!/bin/sh
# The red team on a GPU machine: every hostile file in the sandboxes that are there, and the table of what became of each.
#
#   sh scripts/device/redteam.sh [LANE [SECONDS [options of python -m tests.redteam]]]    writes $OUT/redteam.json, or var/redteam.json
set -u

lane=${1:-h200}
seconds=${2:-400}
[ "$#" -gt 2 ] && shift 2 || shift "$#"
out=${OUT:-var}
mkdir -p "$out"
exec python3 -m tests.redteam --lane "$lane" --jobs 4 --limit-s "$seconds" --json "$out/redteam.json" "$@"
