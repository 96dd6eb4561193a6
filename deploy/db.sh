#!/bin/sh
# PostgreSQL with one database `ladder`, made when the volume is empty. Runs in the official image and in our own base,
# whose entry points differ. Three roles:
#   postgres    the superuser, for this script: without a password nobody comes in as it
#   ladder      owns the database and its tables: migrations, restoring
#   ladder_app  the application: reads and writes rows (`ladder admin migrate` says which)
set -eu
PATH="/usr/lib/postgresql/15/bin:$PATH"
data=/var/lib/postgresql/data/15
secrets=/run/secrets

single() { # DATABASE: statements on standard input, one a line, by the superuser; the first that fails ends it
    postgres --single -c exit_on_error=on -c password_encryption=scram-sha-256 -D "$data" "$1" >/dev/null
}

if [ ! -s "$data/PG_VERSION" ]; then
    # Whole or not at all: a start that was interrupted begins anew.
    rm -rf "$data.new"
    initdb --pgdata "$data.new" --username postgres \
        --auth reject --encoding UTF8 --locale C.UTF-8 --data-checksums
    echo 'host all all all scram-sha-256' >"$data.new/pg_hba.conf"
    echo 'CREATE DATABASE ladder' | postgres --single -D "$data.new" postgres
    mv "$data.new" "$data"
fi

# At every start: passwords are what the files say, and a volume of before there were three roles gets them. There the
# superuser was called `ladder`; no statement renames whoever runs it.
single postgres <<EOF
UPDATE pg_authid SET rolname = 'postgres', rolpassword = NULL WHERE oid = 10 AND rolname = 'ladder'
DO \$\$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ladder') THEN CREATE ROLE ladder; END IF; END \$\$
DO \$\$ BEGIN IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'ladder_app') THEN CREATE ROLE ladder_app; END IF; END \$\$
ALTER ROLE ladder LOGIN NOSUPERUSER CREATEDB NOCREATEROLE NOREPLICATION PASSWORD '$(cat "$secrets/database_password")'
ALTER ROLE ladder_app LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE NOREPLICATION PASSWORD '$(cat "$secrets/app_database_password")'
DO \$\$ DECLARE one record; BEGIN FOR one IN SELECT datname FROM pg_database WHERE datname LIKE 'ladder%' AND datdba = 10 LOOP EXECUTE format('ALTER DATABASE %I OWNER TO ladder', one.datname); END LOOP; END \$\$
EOF
# A sequence follows the table whose column it numbers.
single ladder <<EOF
DO \$\$ DECLARE one record; BEGIN FOR one IN SELECT oid::regclass AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'v') AND relowner = 10 LOOP EXECUTE format('ALTER TABLE %s OWNER TO ladder', one.name); END LOOP; END \$\$
EOF
exec postgres -D "$data" -c listen_addresses='*' -c unix_socket_directories=/tmp -c max_connections=200 -c password_encryption=scram-sha-256
