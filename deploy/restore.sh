#!/bin/sh
# Put a backup into a new database beside the one that is used, and use the new one once every byte of it is right:
# sh deploy/restore.sh FILE, as root, after `make compose-up`. The old database stays; its URL is in database_url.before.
set -eu
umask 077
file=$(realpath "$1")
cd "$(dirname "$0")/.."
site=${LADDER_SITE:-deploy/site}
[ "$(id -u)" = 0 ] || { echo "run it as root: what it unpacks belongs to the containers' user." >&2; exit 1; }

url=$(sed 's/_[0-9]\{14\}$//' "$site/database_url")_$(date +%Y%m%d%H%M%S)
name=$(basename "$file")
# The container's own /tmp is smaller than most backups.
work=$(mktemp -d "$(dirname "$file")/.restore-XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$file" "$work/$name"
echo "$url" >"$work/database_url"
chown -R 10001:10001 "$work"

# Nobody should submit into what is about to be replaced.
sh deploy/compose.sh stop dispatcher recorder web
# shellcheck disable=SC2016  # the container's shell reads it
sh deploy/compose.sh exec -T db sh -c \
    'PGPASSWORD=$(cat /run/secrets/database_password) createdb --host=127.0.0.1 --username=ladder "$0"' \
    "${url##*/}" </dev/null
sh deploy/compose.sh run --rm --no-deps -T --volume "$work:/backups" \
    -e TMPDIR=/backups -e LADDER_DATABASE_URL_FILE=/backups/database_url \
    migrate ladder admin restore "/backups/$name" </dev/null ||
    { echo "nothing was changed; \`make compose-up\` starts what was there." >&2; exit 1; }

cp "$site/database_url" "$site/database_url.before.new"
mv "$site/database_url.before.new" "$site/database_url.before"
echo "$url" >"$site/database_url.new"
chmod 0444 "$site/database_url.new"
mv "$site/database_url.new" "$site/database_url"
echo "restored into ${url##*/}; \`make compose-up\` starts it."
