#!/bin/sh
# Generate the passwords of the containers once.  Grafana can read its own only; the
# database and Keylag's containers have the same user, so each can read all others.
set -eu
umask 077
cd /secrets

# The user of the database images and of Keylag's images.
KEYLAG=999:999
# The user of Grafana's image.
GRAFANA=472:472

# put NAME OWNER: write standard input to a file, atomically.
put() {
  cat >"$1.new"
  chown "$2" "$1.new"
  mv "$1.new" "$1"
}

# make NAME OWNER: generate a password unless the file exists.
make() {
  [ -s "$1" ] || head -c 18 /dev/urandom | base64 | tr '+/' '-_' | put "$1" "$2"
}

for name in root database proxysql exporters admin profiler service; do
  make "$name" "$KEYLAG"
done
make grafana "$GRAFANA"

# PyMySQL reads the password of Keystone's account from this file.
printf '[client]\npassword=%s\n' "$(cat database)" | put keystone.cnf "$KEYLAG"

# For clients outside of the containers.
put openrc "$KEYLAG" <<END
export OS_AUTH_URL='$KEYLAG_PUBLIC_ENDPOINT/v3'
export OS_USERNAME='admin'
export OS_PASSWORD='$(cat admin)'
export OS_PROJECT_NAME='admin'
export OS_USER_DOMAIN_NAME='Default'
export OS_PROJECT_DOMAIN_NAME='Default'
export OS_REGION_NAME='RegionOne'
export OS_IDENTITY_API_VERSION=3
export OSPROFILER_HMAC_KEY='$(cat profiler)'
export OSPROFILER_CONNECTION_STRING='$KEYLAG_TRACES'
END
