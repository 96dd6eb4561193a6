#!/bin/sh
# Redis with a password for the server (the `default` user) and a file of users that the server adds nodes to.
set -eu
umask 077
users=/data/users.acl
hash=$(printf %s "$(cat /run/secrets/redis_password)" | sha256sum | cut -d ' ' -f 1)

touch "$users"
{
    echo "user default on #$hash ~* &* +@all"
    grep '^user node-' "$users" || true
} >"$users.new"
mv "$users.new" "$users"

# Nothing is ever evicted: a queue that is full refuses, and the server tries again.
# No message is larger than 16 MiB, and no client may send more at once than two of them.
exec redis-server --dir /data --aclfile "$users" --protected-mode no --appendonly yes --save '' \
    --maxmemory 400mb --maxmemory-policy noeviction --proto-max-bulk-len 16mb --client-query-buffer-limit 32mb
