"""``python -m plantui``: the program itself."""

import os
import subprocess
import sys

from plantui._command import binary

if __name__ == "__main__":
    call = [binary(), *sys.argv[1:]]
    if os.name == "posix":
        os.execv(call[0], call)
    sys.exit(subprocess.call(call))
