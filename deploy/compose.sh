#!/bin/sh
# docker-compose with this installation's settings and files: sh deploy/compose.sh ps, … logs web, … restart worker.
set -eu
cd "$(dirname "$0")/.."
LADDER_SITE=$(cd "${LADDER_SITE:-deploy/site}" && pwd)
[ -s "$LADDER_SITE/settings" ] || { echo "$LADDER_SITE has no settings; run make compose-up first." >&2; exit 1; }
set -a
# shellcheck disable=SC1091  # written by make_site.sh
. "$LADDER_SITE/settings"
set +a
files="-f docker-compose.yml"
[ "$LADDER_IMAGES" != local ] || files="$files -f docker-compose.local.yml"
[ "$LADDER_NODES" != open ] || files="$files -f docker-compose.nodes.yml"
export COMPOSE_PROJECT_NAME="${COMPOSE_PROJECT_NAME:-kernel-ladder}"
if docker compose version >/dev/null 2>&1; then
    # shellcheck disable=SC2086  # a list of options
    exec docker compose $files "$@"
fi
# shellcheck disable=SC2086
exec docker-compose $files "$@"
