#!/usr/bin/env bash
# Install the keylag command of this checkout, starting from Debian with make and git.
# A second run changes nothing; `make setup` runs this.  Arguments go to
# `keylag setup`, which installs the rest.
set -euo pipefail

if [[ -n ${KEYLAG_STATE:-} ]]; then
  KEYLAG_STATE=$(realpath -m "$KEYLAG_STATE")
  export KEYLAG_STATE
fi
# Resolve links, so that one checkout is set up once.
cd -P "$(dirname "${BASH_SOURCE[0]}")"
PATH="$PATH:/usr/sbin:/sbin"
state=${KEYLAG_STATE:-$PWD/.keylag}

# A test that succeeds if a program or file exists, and the package that has it:
# what the keylag command needs before it can install the rest.
needs=(
  "command -v python3|python3"
  "python3 -c 'import ensurepip, venv'|python3-venv"
  "test -e /etc/ssl/certs/ca-certificates.crt|ca-certificates"
  "command -v gcc|gcc"
  "python3 -c 'import sysconfig, os; os.stat(sysconfig.get_path(\"include\") + \"/Python.h\")'|python3-dev"
)

# Keylag's packages, installed in editable mode.
packages=(. collectors exporters dashboards dev)

say() { printf '%s\n' "$*"; }

# The exit codes are those of docs/reference/exit-codes.md.
fail() {
  printf '%s\n' "$@" >&2
  exit 1
}

reject() {
  printf '%s\n' "$@" >&2
  exit 2
}

# Characters that some program of the stack rejects in a path; keylag/state.py has the
# same list.
unsafe=$' \t\n"\'$%\\:#&;<>()|*?![]{}^`'
for path in "$PWD" "$state"; do
  if [[ $path == *["$unsafe"]* ]]; then
    reject "The path $path contains a blank or a special character, which MariaDB," \
      "Keystone or uWSGI reject. Choose a path of letters, digits, / . _ - + @ =" \
      "and commas, for the checkout and for KEYLAG_STATE. Nothing was installed."
  fi
done

check_python() {
  python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' ||
    fail "Keylag needs Python 3.11 or newer; $(command -v python3) is $(python3 --version 2>&1)." \
      "Install one, as Debian 12 and Ubuntu 24.04 have it, and put it first on the PATH" \
      "by the name python3. Nothing was installed."
}

not_installed() {
  fail "$1 could not be installed; the reason is above. If it is the network: packages" \
    "come from ${2:-https://pypi.org/simple}. Set HTTPS_PROXY to go through a proxy, or" \
    "PIP_INDEX_URL and UV_DEFAULT_INDEX to use a mirror, and run the same command again."
}

missing_packages() {
  local need
  for need in "${needs[@]}"; do
    eval "${need%%|*}" >/dev/null 2>&1 || printf '%s\n' "${need##*|}"
  done
}

# Digest of files; whether $1/.stamp has the digest $2.
digest() { cat "$@" | sha256sum | cut -d' ' -f1; }
is_current() { [[ -f $1/.stamp && $(<"$1/.stamp") == "$2" ]]; }

# Replace an old folder by a finished one.
move_in() {
  rm -rf "$2"
  mv "$1" "$2"
}

make_uv() {
  local target=$state/tools/uv stamp
  stamp=$(digest locks/uv.txt)-$python
  is_current "$target" "$stamp" && return
  say "Installing uv"
  rm -rf "$target.new"
  python3 -m venv "$target.new"
  "$target.new/bin/python" -m pip install --quiet --disable-pip-version-check \
    --retries 1 --require-hashes -r locks/uv.txt ||
    not_installed uv "${PIP_INDEX_URL:-}"
  printf '%s' "$stamp" >"$target.new/.stamp"
  move_in "$target.new" "$target"
}

make_environment() {
  local uv=$state/tools/uv/bin/uv target=.venv stamp package
  stamp=$(digest locks/dev.txt "${packages[@]/%//pyproject.toml}" \
    collectors/setup.py collectors/native/*.[ch])-$python-$PWD
  is_current "$target" "$stamp" && return
  say "Installing the keylag command and what tests it, into $PWD/$target"
  rm -rf "$target.new"
  # Relocatable, because it replaces the old environment only when it is complete.
  "$uv" venv --quiet --relocatable --python "$python" "$target.new"
  "$uv" pip install --quiet --python "$target.new/bin/python" \
    --require-hashes -r locks/dev.txt ||
    not_installed "What the keylag command needs" "${UV_DEFAULT_INDEX:-}"
  for package in "${packages[@]}"; do
    "$uv" pip install --quiet --python "$target.new/bin/python" --no-deps \
      --build-constraints locks/dev.txt -e "$package" ||
      not_installed "$package" "${UV_DEFAULT_INDEX:-}"
  done
  printf '%s' "$stamp" >"$target.new/.stamp"
  move_in "$target.new" "$target"
}

if command -v python3 >/dev/null; then check_python; fi
mapfile -t missing < <(missing_packages)
if [[ ${#missing[@]} -gt 0 ]]; then
  bash "$PWD/deploy/packages.sh" "${missing[@]}" ||
    fail "Debian packages are missing: ${missing[*]}. The reason is above."
  mapfile -t missing < <(missing_packages)
  [[ ${#missing[@]} -eq 0 ]] || fail "Still missing after the installation: ${missing[*]}"
fi

check_python
# The interpreter itself, not the shim of a version manager.
python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')

export UV_PYTHON_DOWNLOADS=never
mkdir -p "$state/tools"
# One set-up at a time in one checkout; the lock ends with this process.
exec 9>"$state/tools/.bootstrap.lock"
flock --nonblock 9 || { say "Waiting for another set-up in this checkout"; flock 9; }
make_uv 9>&-
make_environment 9>&-
exec 9>&-

exec .venv/bin/keylag setup "$@"
