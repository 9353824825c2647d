#!/bin/sh
# Set up a new Keystone: tables, keys, first administrator. Each step is idempotent.
set -eu

manage() {
  keystone-manage --config-dir "$OS_KEYSTONE_CONFIG_DIR" "$@"
}

for folder in "$OS_FERNET_TOKENS__KEY_REPOSITORY" "$OS_CREDENTIAL__KEY_REPOSITORY"; do
  mkdir -p -m 700 "$folder"
done
# User and group are required; numbers also work for users without a name.
for kind in fernet credential; do
  manage "${kind}_setup" --keystone-user "$(id -u)" --keystone-group "$(id -g)"
done
manage db_sync

# Keystone replaces this by its public_endpoint, so a copy of the data works on another
# port.
endpoint='$(public_endpoint)s/v3'
# In containers, services reach Keystone at another address.
internal=${KEYLAG_INTERNAL_ENDPOINT:-$endpoint}
manage bootstrap --bootstrap-region-id RegionOne \
  --bootstrap-public-url "$endpoint" \
  --bootstrap-internal-url "$internal" \
  --bootstrap-admin-url "$endpoint"
