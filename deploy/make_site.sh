#!/bin/sh
# Make what belongs to one installation, in the folder LADDER_SITE (default: deploy/site): settings, secrets, and a
# self-signed certificate until there is a real one. What is there already stays as it is.
#   LADDER_HOST                                            the name that browsers use (default: this machine's)
#   LADDER_HTTPS_PORT, LADDER_HTTP_PORT, LADDER_BROKER_PORT   443, 80, 6380
#   LADDER_NODES=open                                      let nodes on other machines reach the broker
set -eu
cd "$(dirname "$0")/.."
site=${LADDER_SITE:-deploy/site}
umask 077
mkdir -p "$site"

secret() { # NAME: 32 random bytes as hex, once
    [ -s "$site/$1" ] || openssl rand -hex 32 >"$site/$1"
}

# A network that no route of this machine leads to: of two with the same addresses, one would not be reached.
front_subnet() {
    for third in 251 250 249 248; do
        subnet=172.31.$third.0/28
        within=$(ip -4 route show to root "$subnet" 2>/dev/null) || within=""
        around=$(ip -4 route show to match "$subnet" 2>/dev/null | grep -v ^default) || around=""
        [ -n "$within$around" ] || break
    done
    echo "$subnet"
}

secret database_password
secret app_database_password
secret redis_password
secret metrics_token
# Empty until somebody has one; a file that is not there would keep every container from starting.
[ -e "$site/mail_password" ] || : >"$site/mail_password"
[ -e "$site/server.env" ] || echo "# Settings of docs/configuration.md for the server, LADDER_NAME=value, one a line; no secrets." >"$site/server.env"
# The embedded worker's key, which no other container sees, and who it is to the server (`broker.identity`).
[ -s "$site/worker_key" ] || openssl genpkey -algorithm ed25519 -out "$site/worker_key"
if [ ! -s "$site/worker_identity" ]; then
    public=$(openssl pkey -in "$site/worker_key" -pubout -outform DER | tail -c 32 | base64)
    seed=$(openssl pkey -in "$site/worker_key" -outform DER | tail -c 32 | od -An -v -tx1 | tr -d ' \n')
    password=$(printf %s "kernel-ladder broker password" | openssl dgst -sha256 -mac HMAC -macopt "hexkey:$seed" -r | cut -d ' ' -f 1)
    hash=$(printf %s "$password" | sha256sum | cut -d ' ' -f 1)
    echo "{\"public_key\": \"$public\", \"broker_hash\": \"$hash\"}" >"$site/worker_identity"
fi
[ -s "$site/database_url" ] || echo "postgresql://ladder:$(cat "$site/database_password")@db/ladder" >"$site/database_url"
[ -s "$site/app_database_url" ] || echo "postgresql://ladder_app:$(cat "$site/app_database_password")@db/ladder" >"$site/app_database_url"
[ -s "$site/broker_url" ] || echo "redis://:$(cat "$site/redis_password")@redis:6379/0" >"$site/broker_url"

if [ ! -s "$site/settings" ]; then
    host=${LADDER_HOST:-$(hostname -f 2>/dev/null || hostname)}
    https=${LADDER_HTTPS_PORT:-443}
    if [ "$https" = 443 ]; then url="https://$host"; else url="https://$host:$https"; fi
    cat >"$site/settings" <<EOF
LADDER_HOST=$host
LADDER_PUBLIC_URL=$url
LADDER_HTTPS_PORT=$https
LADDER_HTTP_PORT=${LADDER_HTTP_PORT:-80}
LADDER_BROKER_PORT=${LADDER_BROKER_PORT:-6380}
LADDER_FRONT_SUBNET=${LADDER_FRONT_SUBNET:-$(front_subnet)}
LADDER_WEB_PROCESSES=${LADDER_WEB_PROCESSES:-2}
LADDER_IMAGES=${LADDER_IMAGES:-official}
LADDER_TAG=${LADDER_TAG:-local}
LADDER_NODES=${LADDER_NODES:-closed}
EOF
    [ "${LADDER_NODES:-closed}" != open ] ||
        echo "LADDER_NODES_BROKER_URL=rediss://$host:${LADDER_BROKER_PORT:-6380}/0" >>"$site/settings"
fi

if [ ! -s "$site/tls_certificate" ]; then
    host=$(sed -n 's/^LADDER_HOST=//p' "$site/settings")
    case $host in
        *[!0-9.]*) name="DNS:$host" ;;
        *) name="IP:$host" ;;
    esac
    openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 825 -subj "/CN=$host" \
        -addext "subjectAltName=$name,DNS:localhost,IP:127.0.0.1" \
        -keyout "$site/tls_key" -out "$site/tls_certificate" 2>/dev/null
fi
# The folder lets nobody in but its owner; the files themselves are read in containers by users of other numbers.
chmod 0444 "$site"/database_* "$site"/app_database_* "$site"/redis_password "$site"/broker_url "$site"/metrics_token "$site"/mail_password "$site"/worker_identity "$site"/tls_*
# Root reads it in its container, and nobody else there or here.
chmod 0400 "$site/worker_key"
rm -f "$site/worker_token" # Of before nodes had keys.
