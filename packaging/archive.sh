#!/usr/bin/env bash
# Packs a program with its licences, manual pages and completions, and writes the checksum beside it.
#
#   packaging/archive.sh TARGET PROGRAM FOLDER [RUNNABLE]
#
# TARGET is a Rust target, PROGRAM its program. RUNNABLE is a program of this machine that writes pages and completions;
# PROGRAM itself unless given. The archive is FOLDER/plantui-VERSION-TARGET.tar.gz, or .zip for Windows.
set -euo pipefail
target="$1" program="$2" folder="$3" runnable="${4:-$2}"
root="$(cd "$(dirname "$0")/.." && pwd)"
name="plantui-$("$root/packaging/version.sh")-$target"
mkdir -p "$folder"
work="$(mktemp -d)"
trap 'rm -rf "$work"' EXIT
mkdir -p "$work/$name/completions"
cp "$program" "$root/README.md" "$root/LICENSE" "$root/CHANGELOG.md" "$root/THIRD-PARTY-LICENSES.md" "$work/$name/"
"$runnable" man --directory "$work/$name/man"
for shell in bash elvish fish powershell zsh; do
  "$runnable" completions "$shell" > "$work/$name/completions/plantui.$shell"
done
case "$target" in
  *windows*)
    archive="$name.zip"
    (cd "$work" && python3 -m zipfile -c "$archive" "$name")
    ;;
  *)
    archive="$name.tar.gz"
    # The same files give the same bytes.
    (cd "$work" && tar --sort=name --mtime="@${SOURCE_DATE_EPOCH:-0}" --owner=0 --group=0 --numeric-owner -cf - "$name" 2>/dev/null || tar -cf - "$name") \
      | gzip -n -9 > "$work/$archive"
    ;;
esac
mv "$work/$archive" "$folder/"
cd "$folder"
if command -v sha256sum > /dev/null; then sha256sum "$archive"; else shasum -a 256 "$archive"; fi > "$archive.sha256"
echo "$folder/$archive"
