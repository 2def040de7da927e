# SPDX-License-Identifier: Apache-2.0
"""The templates of images/ for tests whose guests must trust the stand-in internet by themselves, such as the official suites:
`base` has its authority among the system's. Names stay the same, so suites need not know.

    trusting_template.py FOLDER [COMMAND…]

prepares them in FOLDER, which keeps the authority too (the next run finds everything up to date), and runs the command against a
server on the stand-in's host, with E2B_API_KEY, E2B_API_URL, E2B_SANDBOX_URL and the folder of templates in its environment."""
import os
import shutil
import subprocess
import sys
from pathlib import Path

if __name__ == "__main__":  # before conftest is read, which has the folder of templates
    os.environ["GLOVEBOX_TEMPLATES_DIR"] = str(Path(sys.argv[1]).resolve() / "templates")

from conftest import GLOVEBOX, ROOT
from domain_mode import Authority
from internet import internet


def definitions(folder: Path, authority: Authority) -> Path:
    """A copy of images/ whose `base` has the authority; others extend it."""
    images = folder / "images"
    shutil.rmtree(images, ignore_errors=True)
    shutil.copytree(ROOT / "images", images)
    place = images / "base/files/usr/local/share/ca-certificates"
    place.mkdir(parents=True)
    shutil.copyfile(authority.certificate, place / "stand-in-internet.crt")
    with open(images / "base/setup", "a") as setup:
        setup.write("\nupdate-ca-certificates\n")
    return images


def prepare(folder: Path, *names: str) -> Authority:
    """As `make templates` does, into FOLDER/templates."""
    (folder / "authority").mkdir(parents=True, exist_ok=True)
    authority = Authority(folder / "authority", days=3650)
    subprocess.run([GLOVEBOX, "template", "prepare", *(names or ("base",)), "--images-dir", str(definitions(folder, authority)),
                    "--templates-dir", str(folder / "templates")], check=True)
    return authority


def main(folder: Path, command: list[str]) -> int:
    with internet(prepare(folder)) as net:
        server = net.serve()
        try:
            return subprocess.run(command, env=os.environ | server.variables()).returncode
        finally:
            server.close()


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve(), sys.argv[2:] or ["true"]))
