#!/usr/bin/env bash
# Fetches the Debian source packages of libraries that the shared libraries contain
# (third_party/repositories.bzl: debian_sources), to ~/.cache/weir-sources. Their versions are those
# of the installed development packages, whose headers everything is compiled with.
#
# Debian's archives are not position-independent, and its shared libraries would meet others of their
# kind in a process, such as TensorFlow's: see docs/decisions/0175.
#
# The system's list of package sources is not changed, and root is not needed.
source "$(dirname "$0")/setup.sh"

readonly SOURCES=$HOME/.cache/weir-sources
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# apt-get with lists of source packages, in a folder of its own.
apt_get_source() {
  apt-get -q -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$work/sources" \
    -o Dir::State::Lists="$work/lists" -o Dir::Cache="$work/cache" \
    -o APT::Sandbox::User="$(id -un)" "$@" >>"$work/log" 2>&1
}

# Turns the system's sources of packages into sources of source packages.
list_sources() {
  mkdir -p "$work"/{sources,lists/partial,cache/archives/partial}
  local file
  for file in /etc/apt/sources.list.d/*.sources; do
    [ ! -f "$file" ] || sed 's/^Types:.*/Types: deb-src/' "$file" >"$work/sources/${file##*/}"
  done
  for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.list; do
    [ ! -f "$file" ] || sed -n 's/^deb /deb-src /p' "$file" >"$work/sources/${file##*/}.list"
  done
  apt_get_source update
}

fetch() {
  local source=$1
  say "Fetching the source package $source"
  (cd "$work" && apt_get_source source --download-only --only-source "$source") &&
    mkdir -p "$SOURCES" && rm -rf "$SOURCES/$source.partial" &&
    dpkg-source --no-copy -x "$work/${source/=/_}"*.dsc "$SOURCES/$source.partial" >>"$work/log" 2>&1 &&
    mv -T "$SOURCES/$source.partial" "$SOURCES/$source"
}

install_packages dpkg-dev
for package in libabsl-dev libhwy-dev libprotobuf-dev libre2-dev; do
  # PACKAGE=VERSION of the source; its .dsc file has no epoch in its name, and none has one.
  source=$(dpkg-query -W -f='${source:Package}=${source:Version}' "$package")
  [ ! -d "$SOURCES/$source" ] || continue
  [ -d "$work/lists" ] || list_sources || true
  fetch "$source" || {
    tail -n 15 "$work/log" >&2
    die "The source package $source could not be fetched; see the error above." \
      "On a machine with a network, or with a Debian 12 mirror on disk, run this script again."
  }
done
