#!/usr/bin/env bash
# Writes THIRD-PARTY-LICENSES.md. With --check it fails if the file is not up to date. Needs cargo-about.
set -euo pipefail
cd "$(dirname "$0")/.."
work="$(mktemp)"
trap 'rm -f "$work"' EXIT
cargo about generate --config packaging/about.toml --locked packaging/about.hbs > "$work"
# Trailing blanks of licences are not worth a difference.
sed -i.bak 's/[[:space:]]*$//' "$work" && rm -f "$work.bak"
if [ "${1:-}" = "--check" ]; then
  cmp -s "$work" THIRD-PARTY-LICENSES.md || { echo "error: THIRD-PARTY-LICENSES.md is not up to date: run packaging/notices.sh" >&2; exit 1; }
else
  cat "$work" > THIRD-PARTY-LICENSES.md
fi
