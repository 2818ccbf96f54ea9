#!/usr/bin/env bash
# A shared library exports what it should, under its version, and needs no other libraries than it says.
#   exports_test.sh LIBRARY SONAME VERSION PATTERN NEEDED...
# PATTERN: a regular expression for the names of exported symbols; NEEDED: the SONAMEs of other libraries.
set -eu
library=$1 soname=$2 version=$3 pattern=$4
shift 4
failed=0
fail() {
  echo "$*"
  failed=1
}

readelf -Wd "$library" >dynamic
grep -q "SONAME.*\[$soname\]" dynamic || fail "the SONAME is not $soname"
! grep -q TEXTREL dynamic || fail "the code has relocations: an object is not position-independent"

sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' dynamic | LC_ALL=C sort >needed
printf '%s\n' "$@" | LC_ALL=C sort | diff - needed || fail "it needs other libraries than expected (left)"

nm -D --defined-only "$library" | awk '$2 != "A" { print $3 }' >exported
[ -s exported ] || fail "it exports nothing"
grep -vE "^($pattern)@@$version\$" exported && fail "these should not be exported, or not as @@$version"

# Whatever has an Abseil or a protobuf of its own keeps it.
nm -DC --undefined-only "$library" | grep -E 'absl::|google::|re2::|grpc' && fail "these should be inside"
exit $failed
