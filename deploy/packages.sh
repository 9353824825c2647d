#!/usr/bin/env bash
# Install the Debian packages given as arguments, as root or with sudo.
#
# Some packages start a service on installation. Keylag starts its own servers, so this
# script prevents that, now and at boot, for services that this run installs.
set -euo pipefail

if ! command -v apt-get >/dev/null; then
  printf '%s\n' "This is not Debian, so please install the programs of these packages:" \
    "  $*" >&2
  exit 1
fi
if [[ $EUID -ne 0 ]]; then
  if sudo -n true 2>/dev/null; then
    exec sudo -n bash "$0" "$@"
  fi
  printf '%s\n' "This user may not install Debian packages. This line installs them," \
    "without starting their services:" "  sudo bash $0 $*" \
    "Then run the same command again." >&2
  exit 1
fi

policy=/usr/sbin/policy-rc.d
services=(
  docker-registry haproxy mariadb memcached prometheus prometheus-mysqld-exporter
  redis-server rsync slapd
)
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
