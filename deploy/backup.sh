#!/bin/sh
# Back up a running installation into a folder of this machine: sh deploy/backup.sh [FOLDER [KEEP]], as root, each night.
# `deploy/admin.sh backup` would write into a container that is gone a moment later.
set -eu
folder=$(realpath -m "${1:-/var/backups/kernel-ladder}")
cd "$(dirname "$0")/.."
[ "$(id -u)" = 0 ] || { echo "run it as root: the folder belongs to the containers' user." >&2; exit 1; }
# One that is there already is somebody's: it is not taken away from them.
[ -e "$folder" ] || install -d -o 10001 -g 10001 -m 0700 "$folder"
[ "$(stat -c %u "$folder")" = 10001 ] || { echo "$folder belongs to somebody else; name a folder that is not there yet." >&2; exit 1; }
exec sh deploy/compose.sh run --rm --no-deps -T --volume "$folder:/backups" migrate \
    ladder admin backup "/backups/ladder-$(date +%F-%H%M%S).ladder" --keep "${2:-14}" </dev/null
