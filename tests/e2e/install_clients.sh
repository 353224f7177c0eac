#!/usr/bin/env bash
# Installs the real clients that the end-to-end tests drive: install_clients.sh FOLDER [NAME ...]. Each goes into a folder of its
# own; what is there already stays, so FOLDER can be cached. Two at a time. Of the packages' scripts only those of Claude Code and
# opencode are run: they put the program for this machine in its place. Exit code 1 where one could not be installed.
set -uo pipefail

declare -A packages=(
  [claude]=@anthropic-ai/claude-code@2.1.332
  [codex]=@openai/codex@0.171.0
  [gemini]=@google/gemini-cli@0.61.0
  [qwen]=@qwen-code/qwen-code@0.24.4
  [copilot]=@github/copilot@1.0.102
  [opencode]=opencode-ai@1.18.33
  [droid]=droid@0.215.0
  [cline]=cline@3.0.65
  [pi]=@mariozechner/pi-coding-agent@0.73.1
  [inspector]=@modelcontextprotocol/inspector@2.12.0
)
base=$1
shift
names=("$@")
[ ${#names[@]} -gt 0 ] || names=("${!packages[@]}")

install() {
  local name=$1 folder=$base/$1
  [ "$(cat "$folder/installed" 2>/dev/null)" = "${packages[$name]}" ] && return 0
  mkdir -p "$folder"
  npm install --prefix "$folder" --no-audit --no-fund --ignore-scripts "${packages[$name]}" >"$folder.log" 2>&1 || return 1
  case $name in
    claude) node "$folder/node_modules/@anthropic-ai/claude-code/install.cjs" >>"$folder.log" 2>&1 || return 1 ;;
    opencode)
      (cd "$folder/node_modules/opencode-ai" && node postinstall.mjs) >>"$folder.log" 2>&1 || return 1
      # without a network it waits for this package for ever, unless it lies beside its settings
      npm install --prefix "$folder/seed" --no-audit --no-fund --ignore-scripts @opencode-ai/plugin@1.18.33 >>"$folder.log" 2>&1 || return 1
      ;;
  esac
  if [ "$name" = inspector ]; then  # of MCP servers; it knows no --version
    [ -x "$folder/node_modules/.bin/mcp-inspector" ] || return 1
  else
    "$folder/node_modules/.bin/$name" --version >>"$folder.log" 2>&1 || return 1
  fi
  echo "${packages[$name]}" >"$folder/installed"
}

failed=0
for name in "${names[@]}"; do
  while [ "$(jobs -rp | wc -l)" -ge 2 ]; do wait -n || failed=1; done
  { install "$name" || { echo "install_clients: $name could not be installed; the end of $base/$name.log:" >&2; tail -5 "$base/$name.log" >&2; rm -rf "${base:?}/$name"; false; }; } &
done
while [ "$(jobs -rp | wc -l)" -gt 0 ]; do wait -n || failed=1; done
exit "$failed"
