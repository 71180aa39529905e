#!/usr/bin/env bash
# Prints the version of the workspace. With a tag as argument it fails unless the tag is v and that version.
set -euo pipefail
version="$(sed -n '/^\[workspace.package\]/,/^\[/s/^version = "\(.*\)"/\1/p' "$(dirname "$0")/../Cargo.toml")"
if [ $# -gt 0 ] && [ "$1" != "v$version" ]; then
  echo "error: the tag is $1, and Cargo.toml has version $version: tag v$version" >&2
  exit 2
fi
echo "$version"
