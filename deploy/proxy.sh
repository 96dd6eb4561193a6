#!/bin/sh
# nginx, told the port at which the host publishes https: its own configuration cannot read the environment.
set -eu
port=":$LADDER_HTTPS_PORT"
[ "$port" != :443 ] || port=""
echo "set \$https_port \"$port\";" >/tmp/https_port.conf
exec nginx -c /etc/ladder/nginx.conf -g "daemon off;"
