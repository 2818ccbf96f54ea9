#!/usr/bin/env bash
# The git hooks in tools/hooks reject bad messages and unformatted C++, and tools/setup.sh installs
# them in a clone that has no hooks of its own.
set -u
tools=$(realpath "$(dirname "${1:-tools/setup.sh}")")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export HOME=$scratch GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=A GIT_AUTHOR_EMAIL=a@example.com
export GIT_COMMITTER_NAME=A GIT_COMMITTER_EMAIL=a@example.com
failed=0
fail() {
  echo "FAIL: $*"
  failed=1
}

cd "$scratch" || exit 1
accepts() {
  printf '%b' "$1" >message
  "$tools/hooks/commit-msg" message 2>err || fail "rejects: $1"
}
rejects() {
  printf '%b' "$1" >message
  if "$tools/hooks/commit-msg" message 2>err; then
    fail "accepts: $1"
  else
    grep -q "$2" err || fail "rejects $1 with: $(cat err)"
  fi
}
sixty=$(printf 'Add %056d' 0)
accepts "$sixty"
accepts "$sixty\n\nA body, of any length: $sixty $sixty.\n"
accepts "Use ünïcödé: 60 characters of more bytes -- äöüäöüäöüäöüäöü"
accepts "# a comment\nFix it\n# another\n\nBody\n"
accepts "Fix it\n\nBody\n# ------------------------ >8 ------------------------\ndiff\n"
accepts "Revert \"$sixty\"\n\nThis reverts commit 1.\n"
accepts "fixup! $sixty\n"
accepts "Embed the index\n"
accepts "Address a finding\n"
rejects "${sixty}0\n" "61 characters"
rejects "Fix it.\n" "ends with a period"
rejects "Fix it\nAnd that\n" "second line"
rejects "Fixed it\n" '"Fixed" is not in the imperative'
rejects "adding it\n" "not in the imperative"
rejects "Uses it.\nBody\n" "second line"

# In a clone.
git init -q clone && cd clone || exit 1
mkdir tools && cp -rL "$tools/hooks" "$tools/setup.sh" tools
printf 'BasedOnStyle: Google\n' >.clang-format
bash -c 'source tools/setup.sh && install_hooks' >/dev/null || fail "install_hooks"
[ "$(git config core.hooksPath)" = tools/hooks ] || fail "install_hooks sets no core.hooksPath"
git add .
git commit -q -m "Added everything" 2>/dev/null && fail "git commits a bad message"
git commit -q -m "Add everything" || fail "git does not commit"
if command -v clang-format >/dev/null; then
  printf 'int  x;\n' >x.cc && git add x.cc
  git commit -q -m "Add x" 2>/dev/null && fail "git commits unformatted C++"
  printf 'int x;\n' >x.cc
  git commit -q -m "Add x" 2>/dev/null && fail "git looks at the file instead of what is staged"
  git add x.cc
  git commit -q -m "Add x" || fail "git does not commit formatted C++"
fi

git config core.hooksPath elsewhere
bash -c 'source tools/setup.sh && install_hooks' >/dev/null
[ "$(git config core.hooksPath)" = elsewhere ] || fail "install_hooks replaces core.hooksPath"
git config --unset core.hooksPath
mkdir -p .git/hooks && touch .git/hooks/pre-push
bash -c 'source tools/setup.sh && install_hooks' >/dev/null
[ -z "$(git config core.hooksPath)" ] || fail "install_hooks disables a hook in .git/hooks"

# A copy of Weir inside another repository.
rm .git/hooks/pre-push
mkdir inner && cp -r tools inner
bash -c 'source inner/tools/setup.sh && install_hooks' >/dev/null
[ -z "$(git config core.hooksPath)" ] || fail "install_hooks changes another project's hooks"
exit $failed
