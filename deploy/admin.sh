#!/bin/sh
# `ladder admin …` in a container with the server's settings: sh deploy/admin.sh invite-node gpu-1
set -eu
cd "$(dirname "$0")/.."
terminal=""
[ -t 0 ] || terminal="-T"
# shellcheck disable=SC2086
exec sh deploy/compose.sh run --rm --no-deps $terminal migrate ladder admin "$@"
