#!/bin/sh
# Make an image IMAGE from Debian's packages on this machine, where no image registry can be reached: Python, PostgreSQL,
# Redis and nginx in one, with the users and folders that the official images have. Needs root, debootstrap and docker.
#   LADDER_DEBIAN_MIRROR   where debootstrap gets Debian from (default: its own)
set -eu
image=$1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# shellcheck disable=SC2086  # without a mirror there is no argument
debootstrap --variant=minbase \
    --include=python3,python3-venv,ca-certificates,postgresql-15,redis-server,nginx-light,libnginx-mod-stream \
    bookworm "$folder" ${LADDER_DEBIAN_MIRROR:-} >"$folder.log" 2>&1 || { tail -n 20 "$folder.log" >&2; exit 1; }
rm -f "$folder.log"

# The user and group ids of the official images: docker-compose.yml names them.
chroot "$folder" sh -eu -c '
    groupmod -g 999 postgres && usermod -u 999 postgres
    install -d -o 999 -g 999 -m 700 /data /var/lib/postgresql/data
    groupadd -g 101 nginx 2>/dev/null || true
'
tar -C "$folder" --exclude=./var/cache/apt --exclude=./var/lib/apt/lists --exclude=./var/lib/postgresql/15 \
    --exclude=./usr/share/doc --exclude=./usr/share/man --exclude=./usr/share/locale --exclude='./usr/lib/llvm*' \
    --exclude='./dev/*' -c . | docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin' - "$image"
