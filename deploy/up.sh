#!/bin/sh
# Make what is missing (site, images), start everything, wait until it can grade, and print how to log in.
set -eu
cd "$(dirname "$0")/.."
export LADDER_SITE="${LADDER_SITE:-deploy/site}"
sh deploy/make_site.sh
# shellcheck disable=SC1091
. "$LADDER_SITE/settings"

image() { docker image inspect "kernel-ladder/$1:$LADDER_TAG" >/dev/null 2>&1; }
build() { # NAME BASE
    DOCKER_BUILDKIT=0 docker build --quiet --build-arg "BASE=$2" --tag "kernel-ladder/$1:$LADDER_TAG" \
        --file "deploy/build/Dockerfile.$1" deploy/build
}

base=${LADDER_PYTHON_IMAGE:-python:3.11.15-slim-bookworm}
if [ "$LADDER_IMAGES" = local ]; then
    base="kernel-ladder/base:$LADDER_TAG"
    image base || { echo "making a Debian base"; sh deploy/make_base.sh "$base"; }
fi
if [ "${LADDER_BUILD:-}" = always ] || ! image server || ! image worker; then
    echo "building the images"
    : >"$LADDER_SITE/new_images" # Stays where one of them cannot be built: the next start may use the other.
    sh deploy/make_wheels.sh
    build server "$base"
    build worker "$base"
fi
if [ -e "$LADDER_SITE/new_images" ]; then
    # Tables change under nobody: what runs is of the version before, and would write what the new one does not expect.
    sh deploy/compose.sh stop dispatcher recorder web
    rm "$LADDER_SITE/new_images"
fi

echo "starting"
sh deploy/compose.sh up --detach --remove-orphans
attempts=0
until sh deploy/compose.sh exec -T proxy true 2>/dev/null &&
    sh deploy/compose.sh exec -T worker python3 -c "import json, sys, urllib.request as r
sys.exit('cpu' not in json.load(r.urlopen('http://web:8000/healthz', timeout=4))['lanes'])" 2>/dev/null; do
    attempts=$((attempts + 1))
    [ "$attempts" -lt 90 ] || { sh deploy/compose.sh ps; sh deploy/compose.sh logs --tail=30; exit 1; }
    sleep 1
done

# Through the published port, as a browser on this machine: where another network has the proxy's addresses, nothing comes.
answers() {
    "${PYTHON:-python3}" -c "import ssl, sys
from urllib.request import HTTPSHandler, ProxyHandler, build_opener
anyone = ssl.create_default_context()
anyone.check_hostname, anyone.verify_mode = False, ssl.CERT_NONE
build_opener(ProxyHandler({}), HTTPSHandler(context=anyone)).open(sys.argv[1], timeout=5)" "$1" 2>/dev/null
}
attempts=0
until answers "https://127.0.0.1:$LADDER_HTTPS_PORT/healthz"; do
    attempts=$((attempts + 1))
    [ "$attempts" -lt 15 ] || {
        echo "the containers run, but nothing answers at port $LADDER_HTTPS_PORT of this machine." \
            "Is $LADDER_FRONT_SUBNET (LADDER_FRONT_SUBNET in $LADDER_SITE/settings) a network of yours?" >&2
        exit 1
    }
    sleep 2
done

if [ ! -s "$LADDER_SITE/admin_password" ]; then
    (umask 077 && openssl rand -base64 15 >"$LADDER_SITE/admin_password")
    sh deploy/admin.sh create-user "${LADDER_ADMIN:-admin@example.org}" Administrator --admin --password-stdin \
        <"$LADDER_SITE/admin_password" || { rm -f "$LADDER_SITE/admin_password"; exit 1; }
    echo "log in as ${LADDER_ADMIN:-admin@example.org} with the password in $LADDER_SITE/admin_password: $(cat "$LADDER_SITE/admin_password")"
fi
echo "serving on $LADDER_PUBLIC_URL"
