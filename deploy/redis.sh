#!/bin/sh
# Redis with a password for the server (the `default` user) and a file of users that the server adds nodes to.
set -eu
umask 077
users=/data/users.acl
hash=$(printf %s "$(cat /run/secrets/redis_password)" | sha256sum | cut -d ' ' -f 1)

touch "$users"
{
    echo "user default on #$hash ~* &* +@all"
    # Nodes carry control characters in a pattern; the file is text all the same.
    grep --text '^user node-' "$users" || true
} >"$users.new"
mv "$users.new" "$users"

# Nothing is ever evicted: a queue that is full refuses, and the server tries again.
exec redis-server --dir /data --aclfile "$users" --protected-mode no --appendonly yes --save '' \
    --maxmemory 400mb --maxmemory-policy noeviction
