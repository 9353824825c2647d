"""Lists the images that a file of variables pins, and what is newer.

``python -m keylag_dev.images [FILE]``; the default is .env.  Needs skopeo.
"""

import argparse
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from keylag.errors import KeylagError
from keylag.paths import CHECKOUT
from keylag_dev.matrix import print_line

VARIABLE: Final = re.compile(
    r"^(?:# )?\w+_IMAGE=(?P<name>\S+?):(?P<tag>[\w.-]+)(?:@(?P<digest>sha256:\w+))?$",
    re.MULTILINE,
)
VERSION: Final = re.compile(r"(\D*)(\d+(?:\.\d+)+)(.*)")
"""Before the numbers, the numbers, and after them, as in v1.2.3-slim."""
MESSAGE: Final = re.compile(r'level=fatal msg="(.*)"')
TIMEOUT: Final = "1m"


class RegistryError(KeylagError):
    """A registry cannot be read."""


class Version(NamedTuple):
    """A version in a tag, and the text around it."""

    flavour: tuple[str, str]
    numbers: tuple[int, ...]


@dataclass(frozen=True)
class Image:
    """An image, with the tag and the digest that are pinned."""

    name: str
    tag: str
    digest: str | None


def pinned_images(text: str) -> list[Image]:
    """Return the images in the variables of a file."""
    return [Image(**found.groupdict()) for found in VARIABLE.finditer(text)]


def version(tag: str) -> Version | None:
    """Return the version in a tag, if it has one."""
    if not (found := VERSION.fullmatch(tag)):
        return None
    before, numbers, after = found.groups()
    return Version((before, after), tuple(map(int, numbers.split("."))))


def newest(tag: str, tags: Iterable[str], *, series: bool) -> str:
    """Return the newest tag of the same flavour: of the same series, or of all.

    The series of 1.2.3 is 1.2.
    """
    pinned = version(tag)
    if pinned is None:
        return tag
    shared = len(pinned.numbers) - 1 if series else 0
    alike = {
        found.numbers: other
        for other in tags
        if (found := version(other))
        and found.flavour == pinned.flavour
        and len(found.numbers) == len(pinned.numbers)
        and found.numbers[:shared] == pinned.numbers[:shared]
    }
    return alike[max(alike)] if alike else tag


def skopeo(*words: str) -> bytes:
    """Return the output of skopeo; raises RegistryError."""
    if shutil.which("skopeo") is None:
        message = "`skopeo`, which reads registries, is missing: apt-get install skopeo"
        raise RegistryError(message)
    done = subprocess.run(
        ["skopeo", f"--command-timeout={TIMEOUT}", *words],
        capture_output=True,
        check=False,
    )
    if done.returncode:
        output = done.stderr.decode().strip()
        found = MESSAGE.search(output)
        raise RegistryError(found[1].replace('\\"', '"') if found else output)
    return done.stdout


def describe(image: Image) -> list[str]:
    """Return lines on an image and its registry; raises RegistryError."""
    address = f"docker://{image.name}"
    tags = json.loads(skopeo("list-tags", address))["Tags"]
    manifest = skopeo("inspect", "--raw", f"{address}:{image.tag}")
    digest = f"sha256:{hashlib.sha256(manifest).hexdigest()}"
    return [
        f"  pinned digest     {image.digest or 'none'}",
        f"  digest of the tag {'the same' if digest == image.digest else digest}",
        f"  newest of series  {newest(image.tag, tags, series=True)}",
        f"  newest of all     {newest(image.tag, tags, series=False)}",
    ]


def main(file: Path) -> None:
    """Print what is pinned and what is newer; raises RegistryError at the end."""
    images = pinned_images(file.read_text(encoding="utf-8"))
    failed = 0
    for image in images:
        print_line(f"{image.name}:{image.tag}")
        try:
            lines = describe(image)
        except RegistryError as error:
            failed += 1
            lines = [f"  {error}"]
        print_line("\n".join(lines))
    if failed:
        message = (
            f"{failed} of {len(images)} images could not be read. Set HTTPS_PROXY to "
            "go through a proxy, or pass a file that names the images of your mirror."
        )
        raise RegistryError(message)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path, nargs="?", default=CHECKOUT / ".env")
    try:
        main(parser.parse_args().file)
    except (RegistryError, OSError) as error:
        sys.exit(str(error))
