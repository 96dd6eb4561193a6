#!/bin/sh
# Grade the corpus of tests/styles on a bare GPU machine: sh scripts/device/styles.sh LANE [options of tests.styles grade]
# Raw results and the table go to $OUT.
set -u
cd "$(dirname "$0")/../.." || exit 1
lane=$1
shift
python3 -m tests.styles grade --lane "$lane" --out "${OUT:-var}/styles_$lane.jsonl" --plain "$@" 2>"${OUT:-var}/styles_$lane.log"
