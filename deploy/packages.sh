#!/usr/bin/env bash
# Install the Debian packages given as arguments.  Needs root.
#
# Some of them bring services that would start and listen at once.  Keylag starts its
# own, so these are kept from starting now and at boot, but only when this run is what
# installed them.
set -euo pipefail

policy=/usr/sbin/policy-rc.d
services=(memcached prometheus redis-server slapd)
newcomers=()
wrote_policy=no

clean_up() {
  if [[ $wrote_policy == yes ]]; then
    rm -f "$policy"
  fi
}
trap clean_up EXIT
trap 'exit 130' INT
trap 'exit 143' TERM

# 101 is "forbidden by policy".  With noclobber an existing policy is never replaced.
if (set -o noclobber && printf '#!/bin/sh\nexit 101\n' >"$policy") 2>/dev/null; then
  wrote_policy=yes
  chmod 755 "$policy"
fi

for service in "${services[@]}"; do
  if [[ " $* " == *" $service "* ]]; then
    newcomers+=("$service")
  fi
done

export DEBIAN_FRONTEND=noninteractive
echo "Reading the package lists"
apt-get update -qq || echo "The package lists could not be updated; trying with the old ones."
echo "Installing: $*"
# Java's certificates alone would be 140 lines.
apt-get install -y -qq --no-install-recommends "$@" | { grep -v "^Adding debian:" || true; }

if command -v systemctl >/dev/null; then
  for service in "${newcomers[@]}"; do
    systemctl disable --quiet "$service" 2>/dev/null || true
    echo "Debian's own $service service stays off at boot; to have it: systemctl enable --now $service"
  done
fi
