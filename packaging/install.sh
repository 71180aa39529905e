#!/bin/sh
# Installs the program plantui for this user: downloads a release, checks its checksum, and copies the program.
#
#   curl -LsSf https://github.com/plantui/plantui/releases/latest/download/install.sh | sh
#
# PLANTUI_VERSION names a version (default: the newest), PLANTUI_INSTALL_DIR the folder (default: ~/.local/bin),
# PLANTUI_BASE_URL another place of the archives.
set -eu

fail() {
  echo "error: $1" >&2
  exit 1
}

case "$(uname -s)" in
  Linux) system=unknown-linux-musl ;;
  Darwin) system=apple-darwin ;;
  *) fail "there is no archive for $(uname -s); on Windows use pip install plantui" ;;
esac
case "$(uname -m)" in
  x86_64 | amd64) machine=x86_64 ;;
  arm64 | aarch64) machine=aarch64 ;;
  *) fail "there is no archive for $(uname -m); use cargo install plantui --locked" ;;
esac

if command -v curl > /dev/null 2>&1; then
  fetch() { curl -LsSf --retry 3 "$1" -o "$2"; }
elif command -v wget > /dev/null 2>&1; then
  fetch() { wget -q "$1" -O "$2"; }
else
  fail "curl or wget is needed"
fi

repository="https://github.com/plantui/plantui"
folder="${PLANTUI_INSTALL_DIR:-$HOME/.local/bin}"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT INT TERM

version="${PLANTUI_VERSION:-}"
if [ -z "$version" ]; then
  base="${PLANTUI_BASE_URL:-$repository/releases/latest/download}"
  fetch "$base/VERSION" "$work/VERSION" || fail "the newest version cannot be read from $base/VERSION"
  version="$(cat "$work/VERSION")"
fi
base="${PLANTUI_BASE_URL:-$repository/releases/download/v$version}"
name="plantui-$version-$machine-$system"
fetch "$base/$name.tar.gz" "$work/$name.tar.gz" || fail "$base/$name.tar.gz cannot be downloaded"
fetch "$base/$name.tar.gz.sha256" "$work/$name.tar.gz.sha256" || fail "$base/$name.tar.gz.sha256 cannot be downloaded"
if command -v sha256sum > /dev/null 2>&1; then
  (cd "$work" && sha256sum -c "$name.tar.gz.sha256" > /dev/null) || fail "the checksum of $name.tar.gz is wrong"
else
  (cd "$work" && shasum -a 256 -c "$name.tar.gz.sha256" > /dev/null) || fail "the checksum of $name.tar.gz is wrong"
fi
tar -xzf "$work/$name.tar.gz" -C "$work"
mkdir -p "$folder"
# Over a program that runs: replaced in one step.
cp "$work/$name/plantui" "$folder/.plantui-new"
chmod 755 "$folder/.plantui-new"
mv -f "$folder/.plantui-new" "$folder/plantui"
echo "installed $("$folder/plantui" --version) in $folder"
case ":$PATH:" in
  *":$folder:"*) ;;
  *) echo "note: $folder is not on the PATH" ;;
esac
