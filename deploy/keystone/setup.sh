#!/bin/sh
# What a new Keystone needs: its tables, its keys, its first administrator.
# Each step leaves alone what is there.
set -eu

manage() {
  keystone-manage --config-dir "$OS_KEYSTONE_CONFIG_DIR" "$@"
}

for folder in "$OS_FERNET_TOKENS__KEY_REPOSITORY" "$OS_CREDENTIAL__KEY_REPOSITORY"; do
  mkdir -p -m 700 "$folder"
done
# Numbers do for a user without a name; both are required.
for kind in fernet credential; do
  manage "${kind}_setup" --keystone-user "$(id -u)" --keystone-group "$(id -g)"
done
manage db_sync

# A name that Keystone replaces by its own public_endpoint: the data may be copied to
# where another port is free.
endpoint='$(public_endpoint)s/v3'
# Services may have to ask elsewhere, as they do in containers.
internal=${KEYLAG_INTERNAL_ENDPOINT:-$endpoint}
manage bootstrap --bootstrap-region-id RegionOne \
  --bootstrap-public-url "$endpoint" \
  --bootstrap-internal-url "$internal" \
  --bootstrap-admin-url "$endpoint"
