#!/usr/bin/env bash
# Install the Debian packages given as arguments. Requires root.
#
# Some packages start a service on installation. Keylag starts its own servers, so this
# script prevents that, now and at boot, for services that this run installs.
set -euo pipefail

policy=/usr/sbin/policy-rc.d
services=(memcached prometheus redis-server slapd)
new_services=()
wrote_policy=no

clean_up() {
  if [[ $wrote_policy == yes ]]; then
    rm -f "$policy"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# Exit code 101 means "forbidden by policy". noclobber keeps an existing policy.
if (set -o noclobber && printf '#!/bin/sh\nexit 101\n' >"$policy") 2>/dev/null; then
  wrote_policy=yes
  chmod 755 "$policy"
fi

for service in "${services[@]}"; do
  if [[ " $* " == *" $service "* ]]; then
    new_services+=("$service")
  fi
done

export DEBIAN_FRONTEND=noninteractive
echo "Reading the package lists"
apt-get update -qq || echo "Cannot update the package lists; using the old ones."
echo "Installing: $*"
# Java's certificates alone would be 140 lines.
apt-get install -y -qq --no-install-recommends "$@" | { grep -v "^Adding debian:" || true; }

if command -v systemctl >/dev/null; then
  for service in "${new_services[@]}"; do
    systemctl disable --quiet "$service" 2>/dev/null || true
    echo "Debian's $service service is disabled; to enable it: systemctl enable --now $service"
  done
fi
