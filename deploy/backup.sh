#!/bin/sh
# Back up a running installation into a folder of this machine: sh deploy/backup.sh [FOLDER [KEEP]], as root, each night.
# `deploy/admin.sh backup` would write into a container that is gone a moment later.
set -eu
cd "$(dirname "$0")/.."
folder=${1:-/var/backups/kernel-ladder}
[ "$(id -u)" = 0 ] || { echo "run it as root: the folder belongs to the containers' user." >&2; exit 1; }
install -d -o 10001 -g 10001 -m 0700 "$folder"
folder=$(cd "$folder" && pwd)
exec sh deploy/compose.sh run --rm --no-deps -T --volume "$folder:/backups" migrate \
    ladder admin backup "/backups/ladder-$(date +%F-%H%M%S).ladder" --keep "${2:-14}" </dev/null
