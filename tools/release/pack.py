#!/usr/bin/env python3
"""Packs the program of a release with completions, manual pages and the licences of all dependencies; writes its SBOM and SHA-256.

Usage: tools/release/pack.py TARGET, after tools/release/build.sh TARGET. The files go to target/release-archives. Equal input gives equal
bytes: names are sorted, owners left out, and all times are that of the commit.
"""

import gzip
import hashlib
import io
import json
import os
import subprocess
import sys
import tarfile
import tomllib
import uuid
import zipfile
from datetime import datetime, timezone
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SHELLS = {"bash": "parallax.bash", "zsh": "_parallax", "fish": "parallax.fish", "powershell": "parallax.ps1", "elvish": "parallax.elv"}
OWN = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"]
LICENCES = ("licen", "copying", "notice", "unlicense", "copyright")


def run(*command: str) -> bytes:
    return subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE).stdout


def packages(target: str) -> list[dict]:
    """The crates that the program for a target is built from, sorted; the first is the program."""
    text = run("cargo", "metadata", "--locked", "--all-features", "--format-version", "1", "--filter-platform", target)
    metadata = json.loads(text)
    nodes = {node["id"]: node for node in metadata["resolve"]["nodes"]}
    found, left = set(), [metadata["resolve"]["root"]]
    while left:
        here = left.pop()
        if here in found:
            continue
        found.add(here)
        # A dependency for tests alone is no part of the program.
        for one in nodes[here]["deps"]:
            if any(kind["kind"] != "dev" for kind in one["dep_kinds"]):
                left.append(one["pkg"])
    root = metadata["resolve"]["root"]
    chosen = [package for package in metadata["packages"] if package["id"] in found]
    return sorted(chosen, key=lambda one: (one["id"] != root, one["name"], one["version"]))


def checksums() -> dict[tuple[str, str], str]:
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text())
    return {(one["name"], one["version"]): one["checksum"] for one in lock["package"] if "checksum" in one}


def sbom(crates: list[dict], when: int) -> bytes:
    """A bill of materials in CycloneDX 1.5."""
    sums = checksums()

    def component(package: dict) -> dict:
        name, version = package["name"], package["version"]
        one = {"type": "library", "bom-ref": f"{name}@{version}", "name": name, "version": version}
        one["purl"] = f"pkg:cargo/{name}@{version}"
        if package.get("license"):
            one["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if (name, version) in sums:
            one["hashes"] = [{"alg": "SHA-256", "content": sums[(name, version)]}]
        return one

    program, *others = (component(package) for package in crates)
    program["type"] = "application"
    body = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "timestamp": datetime.fromtimestamp(when, timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "component": program,
        },
        "components": others,
    }
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(body, sort_keys=True))
    return (json.dumps({**body, "serialNumber": f"urn:uuid:{serial}"}, indent=1, sort_keys=True) + "\n").encode()


def licences(crates: list[dict]) -> bytes:
    """The licence files of every dependency. One without a file is named with its expression."""
    parts = []
    for package in crates[1:]:
        folder = Path(package["manifest_path"]).parent
        files = sorted(one for one in folder.iterdir() if one.is_file() and one.name.lower().startswith(LICENCES))
        if package.get("license_file"):
            files = sorted({*files, folder / package["license_file"]})
        head = f"{package['name']} {package['version']}: {package.get('license') or 'see below'}"
        texts = [one.read_text(encoding="utf-8", errors="replace").strip() for one in files]
        parts.append("\n\n".join([head + "\n" + "=" * len(head), *(texts or ["The package holds no licence file."])]))
    return ("\n\n\n".join(parts) + "\n").encode()


def manual(program: Path) -> dict[str, bytes]:
    """The manual page of the program and of each command."""
    pages, left = {}, [[]]
    while left:
        words = left.pop()
        pages["man/" + "-".join(["parallax", *words]) + ".1"] = run(str(program), "man", *words)
        text = run(str(program), *words, "--help").decode()
        listed = text.split("\nCommands:\n", 1)[1].split("\n\n", 1)[0] if "\nCommands:\n" in text else ""
        names = [line.split()[0] for line in listed.splitlines() if line.startswith("  ") and line[2:3].strip()]
        left += [[*words, name] for name in names if name != "help"]
    return pages


def main() -> None:
    target = sys.argv[1]
    windows = "windows" in target
    program = ROOT / "target" / target / "dist" / ("parallax.exe" if windows else "parallax")
    when = int(os.environ.get("SOURCE_DATE_EPOCH") or run("git", "log", "-1", "--format=%ct"))
    crates = packages(target)
    name = f"parallax-{crates[0]['version']}-{target}"
    files = {program.name: program.read_bytes(), "THIRD-PARTY-LICENSES.txt": licences(crates)}
    files |= {own: (ROOT / own).read_bytes() for own in OWN}
    files |= {f"completions/{file}": run(str(program), "completions", shell) for shell, file in SHELLS.items()}
    files |= manual(program)
    files["sbom.cdx.json"] = sbom(crates, when)

    packed = io.BytesIO()
    if windows:
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            for path in sorted(files):
                about = zipfile.ZipInfo(f"{name}/{path}", datetime.fromtimestamp(when, timezone.utc).timetuple()[:6])
                about.compress_type = zipfile.ZIP_DEFLATED
                archive.writestr(about, files[path])
    else:
        with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9, mtime=when, filename="") as zipped:
            with tarfile.open(fileobj=zipped, mode="w", format=tarfile.USTAR_FORMAT) as archive:
                for path in sorted(files):
                    about = tarfile.TarInfo(f"{name}/{path}")
                    about.size, about.mtime = len(files[path]), when
                    about.mode = 0o755 if path == program.name else 0o644
                    archive.addfile(about, io.BytesIO(files[path]))
    out = ROOT / "target" / "release-archives"
    out.mkdir(parents=True, exist_ok=True)
    archive_name = name + (".zip" if windows else ".tar.gz")
    made = {archive_name: packed.getvalue(), name + ".cdx.json": files["sbom.cdx.json"]}
    sums = ""
    for file, content in made.items():
        (out / file).write_bytes(content)
        sums += f"{hashlib.sha256(content).hexdigest()}  {file}\n"
        print(f"{len(content) / 1e6:.1f} MB  {file}")
    (out / f"{name}.sha256").write_text(sums, newline="\n")


if __name__ == "__main__":
    main()
