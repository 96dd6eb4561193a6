#!/bin/sh
# nginx, told the port at which browsers reach https, which its own configuration cannot read from the environment.
set -eu
authority=${LADDER_PUBLIC_URL#*://}
authority=${authority%%/*}
case ${authority##*:} in
443 | "" | *[!0-9]*) port="" ;;
*) port=:${authority##*:} ;;
esac
echo "set \$https_port \"$port\";" >/tmp/https_port.conf
exec nginx -c /etc/ladder/nginx.conf -g "daemon off;"
