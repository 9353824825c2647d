"""Images that a file pins, compared with those of a real registry."""

import hashlib
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import requests

from keylag.ports import allocate_ports
from keylag_dev.images import Image, RegistryError, main, newest, pinned_images

PROGRAMS = ("docker-registry", "skopeo")
MISSING = [name for name in PROGRAMS if shutil.which(name) is None]
needs_registry = pytest.mark.skipif(
    bool(MISSING), reason=f"not installed: {', '.join(MISSING)}"
)
TAGS = ("1.2.3", "1.2.10", "1.3.0", "2.0.0", "2.0.1-rc.1", "2.1", "3.0.0-slim", "main")


def write_image(folder: Path, label: str) -> str:
    """Write an image without layers as skopeo's `dir:` has it; return its digest."""
    config = json.dumps({"os": "linux", "architecture": "amd64", "author": label})
    digest = hashlib.sha256(config.encode()).hexdigest()
    manifest = json.dumps(
        {
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {
                "mediaType": "application/vnd.oci.image.config.v1+json",
                "digest": f"sha256:{digest}",
                "size": len(config),
            },
            "layers": [],
        }
    )
    folder.mkdir()
    (folder / "version").write_text("Directory Transport Version: 1.1\n")
    (folder / digest).write_text(config)
    (folder / "manifest.json").write_text(manifest)
    return f"sha256:{hashlib.sha256(manifest.encode()).hexdigest()}"


def push(folder: Path, image: str) -> None:
    """Push an image that was written to a folder."""
    words = ["skopeo", "--insecure-policy", "copy", "-q"]
    subprocess.run([*words, f"dir:{folder}", f"docker://{image}"], check=True)


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of an empty registry."""
    folder = tmp_path_factory.mktemp("registry")
    address = f"127.0.0.1:{allocate_ports(['registry'], {})['registry']}"
    settings = {
        "version": "0.1",
        "log": {"level": "error"},
        "storage": {"filesystem": {"rootdirectory": str(folder)}},
        "http": {"addr": address},
    }
    file = folder / "config.yml"
    file.write_text(json.dumps(settings))
    command = ["docker-registry", "serve", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        for _ in range(100):
            try:
                requests.get(f"http://{address}/v2/", timeout=5)
                break
            except requests.ConnectionError:
                time.sleep(0.1)
        yield address
        process.terminate()


@pytest.fixture
def registry(address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The registry's address, which skopeo accepts without TLS."""
    folder = tmp_path / ".config" / "containers"
    folder.mkdir(parents=True)
    (folder / "registries.conf").write_text(
        f'[[registry]]\nlocation = "{address}"\ninsecure = true\n'
    )
    monkeypatch.setenv("HOME", str(tmp_path))
    return address


@pytest.mark.parametrize(
    ("tag", "series", "all_of_them"),
    [
        ("1.2.3", "1.2.10", "2.0.0"),
        ("v3.5.3", "v3.5.9", "v10.0.0"),
        ("3.11.2-slim", "3.11.16-slim", "3.14.0-slim"),
        ("2.0.1-rc.1", "2.0.1-rc.1", "2.0.1-rc.1"),
        ("main", "main", "main"),
    ],
)
def test_newest_compares_numbers_of_the_same_flavour(
    tag: str, series: str, all_of_them: str
) -> None:
    tags = [
        *("1.2.3", "1.2.10", "2.0.0", "2.0.1-rc.1", "2.1", "main"),
        *("v3.5.3", "v3.5.9", "v10.0.0", "v11.0.0-rc.0"),
        *("3.11.2-slim", "3.11.16-slim", "3.14.0-slim", "3.15-slim"),
    ]

    assert newest(tag, tags, series=True) == series
    assert newest(tag, tags, series=False) == all_of_them


def test_images_are_read_with_and_without_digest() -> None:
    text = f"A_IMAGE=a:1\nPORT=1\n# B_IMAGE=h:5000/x/b:v2@sha256:{'0' * 64}\n"

    assert pinned_images(text) == [
        Image("a", "1", None),
        Image("h:5000/x/b", "v2", f"sha256:{'0' * 64}"),
    ]


@needs_registry
def test_newer_tags_are_listed(
    registry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = f"{registry}/newer"
    digest = write_image(tmp_path / "image", "first")
    for tag in TAGS:
        push(tmp_path / "image", f"{image}:{tag}")
    file = tmp_path / "file"
    file.write_text(f"X_IMAGE={image}:1.2.3@{digest}\n")

    main(file)

    assert capsys.readouterr().out.splitlines() == [
        f"{image}:1.2.3",
        f"  pinned digest     {digest}",
        "  digest of the tag the same",
        "  newest of series  1.2.10",
        "  newest of all     2.0.0",
    ]


@needs_registry
def test_digest_of_a_moved_tag_is_shown(
    registry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = f"{registry}/moved:1.2.3"
    pinned = write_image(tmp_path / "old", "old")
    moved_to = write_image(tmp_path / "new", "new")
    push(tmp_path / "old", image)
    push(tmp_path / "new", image)
    file = tmp_path / "file"
    file.write_text(f"X_IMAGE={image}@{pinned}\n")

    main(file)

    assert f"  digest of the tag {moved_to}" in capsys.readouterr().out.splitlines()


@needs_registry
def test_what_cannot_be_read_is_named_and_the_rest_listed(
    registry: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_image(tmp_path / "image", "one")
    push(tmp_path / "image", f"{registry}/one:1.0.0")
    file = tmp_path / "file"
    file.write_text(
        f"A_IMAGE=127.0.0.1:1/gone:1.0.0\nB_IMAGE={registry}/one:1.0.0\n"
        f"C_IMAGE={registry}/one:1.0.1\n"
    )

    with pytest.raises(RegistryError, match="2 of 3 images could not be read"):
        main(file)

    output = capsys.readouterr().out
    assert "connect: connection refused" in output
    assert f"reading manifest 1.0.1 in {registry}/one: manifest unknown" in output
    assert output.count("newest of all") == 1
