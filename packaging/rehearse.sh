#!/usr/bin/env bash
# Rehearses a release: builds every artefact that this machine can build, checks each, and lists the others.
#
#   packaging/rehearse.sh [FOLDER] [--all]
#
# Without --all it builds for this machine alone; with it also for the other Linux, for Windows and for macOS, which
# zig links. Each target takes minutes. Needs cargo, python3 and what packaging/README.md lists; a step whose tool is not
# there is listed as left out. Nothing is published, and nothing outside FOLDER and target/ is written.
set -euo pipefail
root="$(cd "$(dirname "$0")/.." && pwd)"
folder="" all=""
for argument in "$@"; do
  case "$argument" in
    --all) all=yes ;;
    *) folder="$argument" ;;
  esac
done
folder="${folder:-$root/target/rehearsal}"
mkdir -p "$folder"
folder="$(cd "$folder" && pwd)"
cd "$root"
version="$(packaging/version.sh)"
target_folder="${CARGO_TARGET_DIR:-$root/target}"
host="$(rustc -vV | sed -n 's/^host: //p')"
done=() left=()

have() { command -v "$1" > /dev/null; }
step() { echo; echo "== $1"; }

step "crates"
cargo package --workspace --locked --quiet
done+=("crates: $(ls "$target_folder"/package/*-"$version".crate | wc -l) packages, each built from its own package")

step "third-party licences and bill of materials"
if have cargo-about; then
  packaging/notices.sh --check
  done+=("THIRD-PARTY-LICENSES.md is up to date")
else
  left+=("THIRD-PARTY-LICENSES.md: no cargo-about to check it with")
fi
if have cargo-cyclonedx; then
  cargo cyclonedx --quiet --format json --override-filename plantui-sbom
  mv plantui-sbom.json "$folder/"
  find crates fuzz -name plantui-sbom.json -delete
  done+=("plantui-sbom.json")
else
  left+=("plantui-sbom.json: no cargo-cyclonedx")
fi
if have cargo-deny; then
  cargo deny check licenses bans sources
  cargo deny check advisories || left+=("advisories: the database cannot be had here")
  done+=("cargo deny check")
else
  left+=("cargo deny check: no cargo-deny")
fi

step "Python environment"
python3 -m venv "$folder/tools"
"$folder/tools/bin/pip" install --quiet --upgrade pip "maturin>=1.9,<2" ziglang
maturin() { PATH="$folder/tools/bin:$PATH" "$folder/tools/bin/maturin" "$@"; }

# Wheel and archive of a target: wheel TARGET COMPATIBILITY
wheel() {
  local target="$1" compatibility="$2"
  step "wheel for $target ($compatibility)"
  if ! rustup target list --installed 2> /dev/null | grep -qx "$target" && ! rustup target add "$target" > /dev/null 2>&1; then
    left+=("wheel and archive for $target: its standard library cannot be had here")
    return
  fi
  local zig=(--zig)
  case "$target" in *windows*) zig=() ;; esac
  if ! maturin build --profile dist --locked --target "$target" --compatibility "$compatibility" "${zig[@]}" \
    --out "$folder/wheels" > "$folder/$target.log" 2>&1; then
    left+=("wheel for $target: $(grep -m1 -E '^error|💥' "$folder/$target.log" || echo "see $folder/$target.log")")
    return
  fi
  done+=("$(cd "$folder/wheels" && ls -t ./*.whl | head -1 | sed 's|^./||')")
  local program="$target_folder/$target/dist/plantui"
  [ -f "$program" ] || program="$program.exe"
  local bytes
  bytes="$(wc -c < "$program")"
  echo "$program: $bytes bytes"
  [ "$bytes" -le 20971520 ] || { echo "error: the program for $target has more than 20 MiB" >&2; exit 1; }
  # An archive has the program that needs no C library, or that of a system with one kind of it.
  case "$target" in
    *gnu) case "$target" in *windows*) ;; *) return ;; esac ;;
  esac
  packaging/archive.sh "$target" "$program" "$folder/archives" "$runnable"
  done+=("plantui-$version-$target archive")
}

machine="${host%%-*}"
step "program of this machine"
cargo build --profile dist --locked
runnable="$target_folder/dist/plantui"
wheel "$machine-unknown-linux-gnu" manylinux2014
wheel "$machine-unknown-linux-musl" musllinux_1_2
others=(x86_64-unknown-linux-gnu:manylinux2014 aarch64-unknown-linux-gnu:manylinux2014 x86_64-unknown-linux-musl:musllinux_1_2
  aarch64-unknown-linux-musl:musllinux_1_2 x86_64-pc-windows-gnu:pypi aarch64-apple-darwin:pypi x86_64-apple-darwin:pypi)
for one in "${others[@]}"; do
  case "$one" in
    "$machine-unknown-linux"*) ;;
    *) if [ -n "$all" ]; then wheel "${one%%:*}" "${one##*:}"; else left+=("${one%%:*}: give --all"); fi ;;
  esac
done

step "source distribution"
maturin sdist --out "$folder/sdist"
# As pip does where no wheel fits: unpacked elsewhere, built, installed.
python3 -m venv --clear "$folder/from-source"
PATH="$folder/tools/bin:$PATH" CARGO_TARGET_DIR="$target_folder" \
  "$folder/from-source/bin/pip" install --quiet "$folder/sdist/plantui-$version.tar.gz"
"$folder/from-source/bin/plantui" plan llama-3-8b --devices 16 > /dev/null
done+=("plantui-$version.tar.gz, and a program from it")

step "the wheel in an empty environment, outside of the checkout"
python3 -m venv --clear "$folder/empty"
"$folder/empty/bin/pip" install --quiet --no-index --find-links "$folder/wheels" plantui
(
  cd "$folder"
  began=$(date +%s)
  ./empty/bin/plantui llama-3.1-70b < /dev/null > screen.txt 2> screen-notes.txt
  grep -q "s/iteration" screen.txt
  ./empty/bin/python -c 'import plantui; assert plantui.plan(plantui.generate("tiny-branch")).check()'
  ./empty/bin/pip install --quiet matplotlib pandas
  MPLBACKEND=Agg ./empty/bin/python - "$root/docs/notebooks/choose-a-layout.ipynb" << 'END'
import json, sys
for cell in json.load(open(sys.argv[1]))["cells"]:
    if cell["cell_type"] == "code":
        exec("".join(cell["source"]))
END
  echo "program, package and notebook: $(($(date +%s) - began)) s"
)
done+=("the wheel plans, compares and plots in an empty environment")

step "installer against a local folder"
(
  cp packaging/install.sh "$folder/archives/"
  echo "$version" > "$folder/archives/VERSION"
  PLANTUI_BASE_URL="file://$folder/archives" PLANTUI_INSTALL_DIR="$folder/installed" sh "$folder/archives/install.sh"
  "$folder/installed/plantui" plan llama-3-8b --devices 16 > /dev/null
  # A changed archive is refused.
  mkdir -p "$folder/forged"
  cp "$folder"/archives/VERSION "$folder"/archives/*musl* "$folder/forged/"
  for archive in "$folder"/forged/*.tar.gz; do echo x >> "$archive"; done
  if PLANTUI_BASE_URL="file://$folder/forged" PLANTUI_INSTALL_DIR="$folder/installed" sh packaging/install.sh 2> "$folder/forged.txt"; then
    echo "error: install.sh takes an archive with a wrong checksum" >&2
    exit 1
  fi
  grep -q "checksum" "$folder/forged.txt"
)
done+=("install.sh installs, and refuses a wrong checksum")

step "Homebrew, AUR, Nix"
if packaging/fill.py "$folder/archives" "$folder/packages"; then done+=("formula, PKGBUILD and package.nix"); else left+=("files of the archives that are not there"); fi
for file in "$folder"/packages/aur/PKGBUILD; do if [ -f "$file" ]; then bash -n "$file"; fi; done
if have ruby && [ -f "$folder/packages/homebrew/plantui.rb" ]; then ruby -c "$folder/packages/homebrew/plantui.rb"; fi
have nix-instantiate && nix-instantiate --parse "$folder/packages/nix/package.nix" > /dev/null || left+=("package.nix: not parsed, no nix")

if have docker && docker info > /dev/null 2>&1; then
  step "container"
  case "$machine" in x86_64) arch=amd64 ;; *) arch=arm64 ;; esac
  mkdir -p "$folder/context/$arch"
  cp "$target_folder/$machine-unknown-linux-musl/dist/plantui" "$folder/context/$arch/"
  docker build --build-arg "TARGETARCH=$arch" -f packaging/docker/Dockerfile -t "plantui:$version" "$folder/context"
  docker run --rm "plantui:$version" plan llama-3-8b --devices 16 > /dev/null
  done+=("container")
else
  left+=("container: no docker engine")
fi
left+=("signatures and attestations, PyPI, crates.io: only .github/workflows/release.yml")

echo
echo "built and checked, in $folder:"
printf '  %s\n' "${done[@]}"
echo "left out:"
printf '  %s\n' "${left[@]}"
