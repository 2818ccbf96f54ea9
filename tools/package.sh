#!/usr/bin/env bash
# Installs missing packages, builds Weir, and makes Debian packages of it:
#
#   weir                    the tools, with their manual page and completions
#   libweir1                the shared library
#   libweir-dev             headers, the static library, and files for pkg-config and CMake
#   libweir-tensorflow2     libtensorflow.so.2: TensorFlow's C API, for bindings of other languages
#   libweir-tensorflow-dev  its headers, and files for pkg-config and CMake
#   libweir-server          servers for TF_NewServer
#
# and of libtensorflow.so.2 a tarball, laid out as TensorFlow's own.
#
#   tools/package.sh               to dist/
#   tools/package.sh --out DIR     to another folder
#
# Install with `apt-get install ./weir_*.deb`, which installs the packages that these need.
from=$PWD
source "$(dirname "$0")/setup.sh"

out=$PWD/dist
while [ $# -gt 0 ]; do
  case $1 in
    --out) out=${2:?--out needs a folder}; shift ;;
    -h | --help) sed -n '2,/^from/{/^#/s/^# \{0,1\}//p}' "$0"; exit ;;
    *) die "unknown option: $1" "See tools/package.sh --help" ;;
  esac
  shift
done
[[ $out == /* ]] || out=$from/$out

install_packages dpkg-dev
bash tools/fetch_sources.sh
say "Building (the first build takes about twenty minutes on two cores)"
bazel build //tools/install:tree //tools/install:shared //tools/install:tensorflow //tools/install:server ||
  die "The build failed; see the first error above."

version=$(cat VERSION)
architecture=$(dpkg --print-architecture)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Prints the licenses of what the libraries and tools contain: Weir's, and those of Debian's packages
# whose archives they link (their names are in the linker's flags) or whose headers they compile.
licenses() {
  local archives packages
  archives=$(cat bazel-bin/tools/*.params bazel-bin/tools/install/*.pc | grep -oE 'lib[A-Za-z0-9_+]+\.a$|-l:lib[A-Za-z0-9_+]+\.a' |
    sed 's/^-l://' | sort -u)
  packages=$(for a in $archives; do dpkg-query -S "/usr/lib/*/$a" 2>/dev/null; done |
    sed 's/[:,].*//' | sort -u)
  cat LICENSE
  local p
  for p in $packages libboost-dev libcli11-dev libeigen3-dev libhwy-dev nlohmann-json3-dev; do
    [ -f "/usr/share/doc/$p/copyright" ] || continue
    printf '\n---- %s, parts of which are included ----\n\n' "$p"
    cat "/usr/share/doc/$p/copyright"
  done
}

# Makes a package of the files under $work/NAME: pack NAME SECTION DEPENDS DESCRIPTION
pack() {
  local name=$1 section=$2 depends=$3 description=$4 root=$work/$1 found
  install -d "$root/DEBIAN" "$root/usr/share/doc/$name"
  cp "$work/copyright" "$root/usr/share/doc/$name/copyright"
  gzip -9nc CHANGELOG.md >"$root/usr/share/doc/$name/changelog.gz"
  # What the programs and libraries are linked with, as the names of Debian's packages. They load
  # oneDNN when a kernel needs it.
  mkdir -p "$work/debian"
  printf 'Source: weir\n\nPackage: %s\nArchitecture: any\n' "$name" >"$work/debian/control"
  found=$(cd "$work" && find "$name" -type f \( -path '*/bin/*' -o -name '*.so.*' \) -print0 |
    xargs -0r dpkg-shlibdeps -O --ignore-missing-info 2>/dev/null | sed 's/^shlibs:Depends=//')
  depends=$(printf '%s' "$found${found:+${depends:+, }}$depends")
  cat >"$root/DEBIAN/control" <<END
Package: $name
Version: $version
Architecture: $architecture
Maintainer: The Weir authors <weir@localhost>
Section: $section
Priority: optional
Installed-Size: $(du -ks "$root/usr" | cut -f 1)
${depends:+Depends: $depends
}${found:+Recommends: libdnnl2
}Description: $description
END
  find "$root" -type d -exec chmod 755 {} +
  ! ls "$root"/usr/lib/*.so.* >/dev/null 2>&1 ||
    printf 'activate-noawait ldconfig\n' >"$root/DEBIAN/triggers"
  dpkg-deb --root-owner-group -Zxz --build "$root" "$out/${name}_${version}_$architecture.deb" >/dev/null
  say "Made ${name}_${version}_$architecture.deb"
}

# take NAME TAR PATTERNS: unpacks what matches into $work/NAME/usr
take() {
  local name=$1 tar=$2
  shift 2
  mkdir -p "$work/$name/usr"
  tar -xf "bazel-bin/tools/install/$tar.tar" -C "$work/$name/usr" --no-same-owner --wildcards "$@"
}

mkdir -p "$out"
licenses >"$work/copyright"
development=$(for p in "${WEIR_PACKAGES[@]}"; do
  [[ $p != lib*-dev ]] || echo "$p"
done | grep -vE 'benchmark|cli11|gmock|gtest|hdf5|minizip|prometheus|seccomp|boost' | paste -sd, | sed 's/,/, /g')

take weir tree bin share
pack weir science '' "runs, profiles and freezes TensorFlow's graphs, and checks checkpoints
 Two tools: weir runs, profiles, freezes and exports graphs, verifies, repairs
 and converts checkpoints, and looks into TFRecord files; weir-serve serves
 sessions and SavedModels over gRPC and HTTP."
take libweir1 shared 'lib/libweir.so.*'
pack libweir1 libs '' "graphs, sessions and checkpoints of TensorFlow 1 in C++
 Builds, trains and runs graphs; reads and writes TensorFlow's files."
take libweir-dev tree include lib
take libweir-dev shared lib/libweir.so lib/pkgconfig
pack libweir-dev libdevel "libweir1 (= $version), $development, prometheus-cpp-dev" \
  "graphs, sessions and checkpoints of TensorFlow 1 in C++: development files
 Headers, static libraries, and files for pkg-config and CMake."
gzip -9nc bazel-bin/tools/install/tensorflow.tar >"$out/libtensorflow-cpu-linux-$(uname -m).tar.gz"
say "Made libtensorflow-cpu-linux-$(uname -m).tar.gz"
take libweir-tensorflow2 tensorflow 'lib/libtensorflow*.so.*'
pack libweir-tensorflow2 libs '' "TensorFlow's C API
 A libtensorflow.so.2 for the bindings of Go, Java, Node, Rust, C# and others,
 made of Weir."
take libweir-tensorflow-dev tensorflow include 'lib/*.so' lib/pkgconfig lib/cmake/tensorflow
pack libweir-tensorflow-dev libdevel "libweir-tensorflow2 (= $version)" \
  "TensorFlow's C API: development files
 Headers, and files for pkg-config and CMake."
take libweir-server server lib
pack libweir-server libs '' "TensorFlow's C API: servers
 What TF_NewServer of libweir-tensorflow2 loads."
