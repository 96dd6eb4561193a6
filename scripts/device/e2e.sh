#!/bin/sh
# The whole way on a bare GPU machine: Python 3.12, torch and triton there, no network, root. Server, queue, worker and judge of
# this checkout grade what students hand in; OUT gets whole_way.json and whole_way.tar.xz (scripts/gpu_whole_way.py).
#   .whl             from wheels.sh: what is installed nowhere there
#   web/static/dist  the built pages
# Usage: OUT=FOLDER sh scripts/device/e2e.sh [arguments of gpu_whole_way.py]
set -eu
cd "$(dirname "$0")/../.."
site=${SITE:-/opt/kernel-ladder-site}
if [ ! -d "$site/sqlalchemy" ]; then
    mkdir -p "$site"
    tar -xJf .whl/site.tar.xz -C "$site"
fi
PYTHONPATH="$site:$PWD" exec python3 scripts/gpu_whole_way.py --lane h200 --out "$OUT" "$@"
