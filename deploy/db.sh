#!/bin/sh
# PostgreSQL with one database `ladder`, made when the volume is empty. Runs in the official image and in our own base,
# whose entry points differ.
set -eu
PATH="/usr/lib/postgresql/15/bin:$PATH"
data=/var/lib/postgresql/data/15

if [ ! -s "$data/PG_VERSION" ]; then
    # Whole or not at all: a start that was interrupted begins anew.
    rm -rf "$data.new"
    initdb --pgdata "$data.new" --username ladder --pwfile /run/secrets/database_password \
        --auth scram-sha-256 --encoding UTF8 --locale C.UTF-8 --data-checksums
    echo 'host all all all scram-sha-256' >>"$data.new/pg_hba.conf"
    echo 'CREATE DATABASE ladder' | postgres --single -D "$data.new" postgres
    mv "$data.new" "$data"
fi
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp -c max_connections=200 -c password_encryption=scram-sha-256
