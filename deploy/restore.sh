#!/bin/sh
# Put a backup into a new database beside the one that is used, and use it in its place once every byte of it is right:
# sh deploy/restore.sh FILE, as root, after `make compose-up`. The old database stays, under another name.
set -eu
umask 077
file=$(realpath "$1")
cd "$(dirname "$0")/.."
site=${LADDER_SITE:-deploy/site}
[ "$(id -u)" = 0 ] || { echo "run it as root: what it unpacks belongs to the containers' user." >&2; exit 1; }

now=$(date +%Y%m%d%H%M%S)
url=$(cat "$site/database_url")
used=${url##*/}
new=${used}_new_$now
old=${used}_before_$now
name=$(basename "$file")

in_db() { # a program of PostgreSQL's, as the owner of all
    # shellcheck disable=SC2016  # the container's shell reads it
    sh deploy/compose.sh exec -T db sh -c \
        'PGPASSWORD=$(cat /run/secrets/database_password) exec "$@" --host=127.0.0.1 --username=ladder' in_db "$@" </dev/null
}

# The container's own /tmp is smaller than most backups.
work=$(mktemp -d "$(dirname "$file")/.restore-XXXXXX")
trap 'rm -rf "$work"' EXIT
cp "$file" "$work/$name"
echo "${url%/*}/$new" >"$work/database_url"
chown -R 10001:10001 "$work"

give_up() {
    rm -rf "$work"
    in_db dropdb --if-exists "$new" || true
    echo "nothing was changed; \`make compose-up\` starts what was there." >&2
}
trap give_up EXIT
# Nobody should submit into what is about to be replaced.
sh deploy/compose.sh stop dispatcher recorder web
in_db createdb "$new"
sh deploy/compose.sh run --rm --no-deps -T --volume "$work:/backups" \
    -e TMPDIR=/backups -e LADDER_DATABASE_URL_FILE=/backups/database_url \
    migrate ladder admin restore "/backups/$name" </dev/null
# Both or none.
in_db psql --quiet --dbname=postgres --set=ON_ERROR_STOP=1 --single-transaction \
    --command="ALTER DATABASE \"$used\" RENAME TO \"$old\"" --command="ALTER DATABASE \"$new\" RENAME TO \"$used\""
trap 'rm -rf "$work"' EXIT
echo "restored; what was used until now is the database $old. \`make compose-up\` starts it."
