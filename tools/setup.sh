# Sourced by the scripts in this folder: finds the project, prints progress, installs packages and
# git hooks.
# shellcheck shell=bash

set -euo pipefail

cd "$(dirname "${BASH_SOURCE[0]}")/.."
export HOME="${HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)}"

# The Debian packages that the build and the tests need.
WEIR_PACKAGES=(
  g++ git python3
  bazel-bootstrap bazel-platforms bazel-rules-cc bazel-rules-java bazel-rules-proto bazel-skylib
  libabsl-dev libbenchmark-dev libblas-dev libboost-dev libcli11-dev libdnnl-dev libeigen3-dev
  libgfortran-12-dev libgif-dev libgmock-dev libgrpc++-dev libgtest-dev libhdf5-dev libhwy-dev
  libicu-dev libjpeg62-turbo-dev liblapack-dev libleveldb-dev libminizip-dev libpng-dev
  libprotobuf-dev libre2-dev libseccomp-dev libsqlite3-dev libssl-dev libwebp-dev
  nlohmann-json3-dev prometheus-cpp-dev protobuf-compiler zlib1g-dev
)

# Prints a progress message with the seconds since the start.
say() { printf '[%4ds] %s\n' "$SECONDS" "$*"; }

die() {
  printf '[%4ds] %s\n' "$SECONDS" "$1" >&2
  shift
  [ $# -eq 0 ] || printf '        %s\n' "$@" >&2
  exit 1
}

missing_packages() {
  local installed
  installed=$(dpkg-query -W -f='${Package} ${db:Status-Status}\n' "${WEIR_PACKAGES[@]}" \
    2>/dev/null | sed -n 's/ installed$//p' || true)
  printf '%s\n' "${WEIR_PACKAGES[@]}" | grep -vxF -e "$installed" || true
}

# Runs apt-get as root and appends its output to a log, which is printed if it fails.
apt_get() {
  local log=$1 as_root=()
  shift
  [ "$(id -u)" = 0 ] || as_root=(sudo)
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q "$@" >>"$log" 2>&1
}

# Installs the git hooks, WEIR_PACKAGES and the packages in its arguments.
install_packages() {
  install_hooks
  WEIR_PACKAGES+=("$@")
  command -v dpkg-query >/dev/null ||
    die "These scripts install Debian packages, but this system is not Debian." \
      "Use Debian 12, or install the contents of these packages: ${WEIR_PACKAGES[*]}"
  local missing log
  missing=$(missing_packages | tr '\n' ' ')
  if [ -z "${missing// /}" ]; then
    say "All Debian packages are installed."
    return
  fi
  local by_hand="apt-get install --no-install-recommends $missing"
  if [ "$(id -u)" != 0 ] && ! { command -v sudo >/dev/null && sudo -v; }; then
    die "Some packages are missing, and installing them requires root or sudo." \
      "Ask an administrator to run:" "  $by_hand" "and run this script again."
  fi
  log=$(mktemp)
  say "Installing $(wc -w <<<"$missing") Debian packages (one to three minutes): $missing"
  # shellcheck disable=SC2086
  if ! { apt_get "$log" update && apt_get "$log" install -y --no-install-recommends $missing; }; then
    tail -n 15 "$log" >&2
    die "The packages could not be installed; see the error above. (Is the network reachable?)" \
      "On a machine with a network, or with a Debian 12 mirror on disk, run as root:" \
      "  apt-get update && $by_hand" "and run this script again. Full log: $log"
  fi
  rm -f "$log"
  say "Packages installed."
}

# Lets git run tools/hooks in this clone, unless it has hooks of its own.
install_hooks() {
  [ "$(git rev-parse --show-cdup 2>/dev/null || echo none)" = "" ] || return 0
  [ -z "$(git config --get core.hooksPath || true)" ] || return 0
  local own
  own=$(find "$(git rev-parse --git-common-dir)/hooks" -type f ! -name '*.sample' 2>/dev/null || true)
  [ -z "$own" ] || return 0
  git config core.hooksPath tools/hooks
  say "Installed git hooks: tools/hooks checks the messages and the format of commits."
}

# Runs Debian's Bazel, with a live display only on a terminal.
bazel() {
  local command=$1 display=()
  shift
  [ -t 2 ] || display=(--curses=no --color=no --show_progress_rate_limit=20)
  /usr/bin/bazel "$command" "${display[@]}" "$@"
}
