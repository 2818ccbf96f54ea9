#!/usr/bin/env bash
# Writes compile_commands.json, with which clangd and clang-tidy find the flags of each source.
# Builds the headers of protocol buffers, which they need.
source "$(dirname "$0")/setup.sh"

install_packages
bazel build //proto/...
mkdir -p .cache/include/weir
ln -sfn ../../../{proto,core,ops,kernels,session,rpc,tools,examples,tests} .cache/include/weir
ln -sf ../../../proto/proto.h ../../../session/weir.h .cache/include/weir
actions=$(mktemp)
trap 'rm -f "$actions"' EXIT
bazel aquery --output=jsonproto 'mnemonic("CppCompile", //...)' >"$actions"
python3 tools/compile_commands.py "$PWD" <"$actions" >compile_commands.json.new
mv compile_commands.json.new compile_commands.json
say "Wrote compile_commands.json: $(grep -c '"file":' compile_commands.json) sources."
