#!/usr/bin/env bash
# Builds programs in a separate project with an installed Weir, with pkg-config or CMake and all warnings as errors, and
# runs them; with pkg-config also a program that uses each public header.
#   own_project_test.sh (pkg-config|cmake) TREE.tar FILES of examples/...
set -eu
by=$1 tree=$2
shift 2
if ! command -v "$by" >/dev/null; then
  echo "SKIPPED: there is no $by"
  exit
fi
work=$(cd "${TEST_TMPDIR:-$(mktemp -d)}" && pwd)
tar -xf "$tree" -C "$work"
# The installed tree is moved, and the project sees only installed files of Weir.
mkdir "$work/weir" "$work/project"
mv "$work/bin" "$work/include" "$work/lib" "$work/weir"
cp "$@" "$work/project"
cd "$work/project"
if nm -C "$work/weir/lib/libweir.a" 2>/dev/null | grep -qE '__(asan|tsan|ubsan)_'; then
  echo "SKIPPED: the library is built with a sanitizer"
  exit
fi

warnings='-Wall -Wextra -Wpedantic -Werror'
case $by in
  pkg-config)
    export PKG_CONFIG_PATH=$work/weir/lib/pkgconfig
    # shellcheck disable=SC2046,SC2086
    build() { g++ -std=c++20 $warnings "$1.cc" $(pkg-config --cflags --libs "$2") -o "$1"; }
    build snake weir
    build serving weir_rpc
    # Headers at the old paths of moved headers include these: each compiles, and so does a program that includes all.
    moved='^// Moved in release 0.2: include "weir/weir.h", or'
    (cd "$work/weir/include" && grep -rl "$moved" weir | LC_ALL=C sort) >forwarding
    grep -q '^weir/core/graph.h$' forwarding
    sed 's/.*/#include "&"/' forwarding >old_headers.cc
    # shellcheck disable=SC2046,SC2086
    g++ -std=c++20 $warnings -fsyntax-only old_headers.cc $(pkg-config --cflags weir)
    # Every other installed header has a use in header_uses.cc; the headers of messages are those of weir/proto.h.
    (cd "$work/weir/include" && find weir -name '*.h' ! -name '*.pb.h' | LC_ALL=C sort) |
      grep -vxFf forwarding >installed
    build header_uses weir_rpc
    ./header_uses | LC_ALL=C sort | diff - installed
    # All examples.
    for source in char_rnn label_image linear_regression train_on_records word2vec; do
      # shellcheck disable=SC2046,SC2086
      g++ -std=c++20 $warnings -fsyntax-only "$source.cc" $(pkg-config --cflags weir_rpc)
    done
    # A condition on a value that is unknown while the graph is built does not compile, and the message suggests a fix.
    for condition in 'x < 3.f && x > 1.f' 'x > 1.f' '!x' 'v' 'v || x' 'weir::Operation(x)' 'weir::TensorArray()'; do
      printf '#include "weir/weir.h"\nint Use(weir::Output x, weir::Variable v) { return %s ? 1 : 2; }\n' \
        "$condition" >truth.cc
      # shellcheck disable=SC2046
      if g++ -std=c++20 -fsyntax-only truth.cc $(pkg-config --cflags weir) 2>refused; then
        echo "'$condition' compiles as a condition"
        exit 1
      fi
      for word in LogicalAnd LogicalOr LogicalNot Cond valid; do grep -q "$word" refused; done
    done
    ;;
  cmake)
    cmake -S . -B build -DCMAKE_PREFIX_PATH="$work/weir" -DCMAKE_CXX_FLAGS="$warnings"
    cmake --build build
    mv build/snake snake
    ;;
esac

nm -DC snake | grep -q ' T hwy::platform::TimerResolution' # third_party/highway_start.cc
./snake . | tee said
grep -qE '^restored from ./snake: (0.9[0-9]|1.0[0-9]) at 0.5' said
# The installed tool reads the checkpoint that the program saved.
"$work/weir/bin/weir" ckpt verify snake
[ "$by" = cmake ] || ./serving

# The installed server answers over HTTP.
mkdir -p models/double/1
cat >double.pbtxt <<'END'
node {
  name: "x" op: "Placeholder"
  attr { key: "dtype" value { type: DT_FLOAT } }
  attr { key: "shape" value { shape { dim { size: -1 } } } }
}
node { name: "y" op: "AddV2" input: "x" input: "x" attr { key: "T" value { type: DT_FLOAT } } }
END
"$work/weir/bin/weir" graph freeze double.pbtxt --fetch y -o models/double/1/graph.pb
python3 - "$work/weir/bin/weir" "$PWD/models/double" <<'END'
import json, socket, subprocess, sys, time, urllib.request

with socket.socket() as probe:
    probe.bind(("127.0.0.1", 0))
    port = probe.getsockname()[1]
server = subprocess.Popen([sys.argv[1], "serve", "--port", "0", "--rest_api_port", str(port),
                           "--model", "double=" + sys.argv[2]])
try:
    for attempt in range(300):
        try:
            urllib.request.urlopen("http://127.0.0.1:%d/readyz" % port, timeout=10)
            break
        except OSError:
            time.sleep(0.1)
    url = "http://127.0.0.1:%d/v1/models/double:predict" % port
    answer = json.load(urllib.request.urlopen(url, b'{"instances": [1.5, 4]}', timeout=10))
    assert answer == {"predictions": [3.0, 8.0]}, answer
finally:
    server.terminate()
    assert server.wait(timeout=60) == 0
END
