#!/usr/bin/env bash
# Installs the agent frameworks of the extras, each into a virtual environment of its own: install.sh FOLDER [NAME ...]. What is
# there already stays, so FOLDER can be cached. Needs .venv (make). Exit code 1 where one could not be installed.
set -uo pipefail

mkdir -p "$1"
base=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/../../.."
names=("$@")
[ ${#names[@]} -gt 0 ] || names=(langchain openai-agents claude-agent-sdk pydantic-ai google-adk agent-framework)
pip=(.venv/bin/python -m pip --quiet --disable-pip-version-check)

install() {
  local name=$1 folder=$base/$1 wanted=requirements/$1.txt
  cmp -s "$wanted" "$folder/installed" && return 0
  rm -rf "$folder"
  .venv/bin/python -m venv --without-pip "$folder" || return 1
  # Its wheel holds a client of 400 MB, the source does not: built with what .venv has, and the tests have a client.
  if [ "$name" = claude-agent-sdk ]; then
    local source=$folder/source
    mkdir -p "$source"
    only claude-agent-sdk "$wanted" >"$source/only.txt"
    without claude-agent-sdk "$wanted" >"$source/rest.txt"
    "${pip[@]}" wheel --no-deps --no-build-isolation --no-binary claude-agent-sdk --require-hashes -w "$source" -r "$source/only.txt" || return 1
    "${pip[@]}" --python "$folder/bin/python" install --no-deps "$source"/*.whl || return 1
    "${pip[@]}" --python "$folder/bin/python" install --only-binary :all: --no-deps --require-hashes -r "$source/rest.txt" || return 1
  else
    "${pip[@]}" --python "$folder/bin/python" install --only-binary :all: --no-deps --require-hashes -r "$wanted" || return 1
  fi
  cp "$wanted" "$folder/installed"
}

# The entry of one package in a file of requirements, and everything but it.
only() { awk -v name="$1==" 'index($0, name) == 1 {on = 1; print; next} /^[a-z]/ {on = 0} on' "$2"; }
without() { awk -v name="$1==" 'index($0, name) == 1 {off = 1; next} /^[a-z]/ {off = 0} !off' "$2"; }

failed=0
for name in "${names[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || failed=1; done
  { install "$name" >"$base/$name.log" 2>&1 || { echo "install: $name could not be installed; the end of $base/$name.log:" >&2; tail -5 "$base/$name.log" >&2; rm -rf "${base:?}/$name"; false; }; } &
done
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do wait -n || failed=1; done
exit "$failed"
