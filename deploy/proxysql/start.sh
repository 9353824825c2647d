#!/bin/bash
# Fill in the configuration and start ProxySQL in its container.
set -euo pipefail
. /keylag/fill.sh

# Read the version from the server's greeting: after the packet header a byte 10, then
# the version, terminated by a zero byte.
exec 3<>/dev/tcp/database/3306
KEYLAG_PROXYSQL_SERVER_VERSION=$(head -c 32 <&3 | tail -c +6 | tr '\0' '\n' | head -n 1)
exec 3>&-

KEYLAG_PROXYSQL_FOLDER=/var/lib/proxysql
KEYLAG_PROXYSQL_LISTEN=0.0.0.0:6033
KEYLAG_PROXYSQL_ADMIN_LISTEN=0.0.0.0:6032
KEYLAG_PROXYSQL_ADMIN_PASSWORD=$(cat /secrets/proxysql)
# ProxySQL accepts the user `stats` only from localhost.
KEYLAG_PROXYSQL_READER=keylag
KEYLAG_PROXYSQL_READER_PASSWORD=$(cat /secrets/exporters)
KEYLAG_PROXYSQL_SERVER_HOST=database
KEYLAG_PROXYSQL_SERVER_PORT=3306
KEYLAG_PROXYSQL_MONITOR_PASSWORD=$(cat /secrets/proxysql)
KEYLAG_PROXYSQL_KEYSTONE_PASSWORD=$(cat /secrets/database)

umask 077
fill /keylag/proxysql.cnf >/etc/keylag-proxysql.cnf
# --initial applies the configuration at each start, not only at the first.
exec proxysql --foreground --initial --no-version-check -c /etc/keylag-proxysql.cnf
