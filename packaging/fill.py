#!/usr/bin/env python3
"""Fills the files for Homebrew, AUR and Nix with the version and the checksums of a release.

    packaging/fill.py FOLDER_OF_ARCHIVES FOLDER_TO_WRITE

An archive that is not there is named, and its file is not written.
"""

import re
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent


def repository() -> str:
    found = re.search(r'^repository = "(.*)"', (HERE.parent / "Cargo.toml").read_text(), re.MULTILINE)
    assert found
    return found[1]


def main() -> int:
    archives, target = Path(sys.argv[1]), Path(sys.argv[2])
    version = subprocess.run([HERE / "version.sh"], capture_output=True, text=True, check=True).stdout.strip()
    status = 0
    for template in sorted(HERE.glob("*/*.in")):
        missing = []

        def checksum(found: "re.Match[str]") -> str:
            file = archives / f"plantui-{version}-{found[1]}.sha256"
            if not file.exists():
                missing.append(file.name)
                return ""
            return file.read_text().split()[0]

        text = template.read_text().replace("@REPOSITORY@", repository()).replace("@VERSION@", version)
        text = re.sub(r"@SHA256:(.*?)@", checksum, text)
        if missing:
            print(f"{template.stem}: not written, because {archives} lacks {', '.join(missing)}")
            status = 1
            continue
        written = target / template.parent.name / template.stem
        written.parent.mkdir(parents=True, exist_ok=True)
        written.write_text(text)
        print(written)
    return status


if __name__ == "__main__":
    sys.exit(main())
