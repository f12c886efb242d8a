#!/usr/bin/env bash
# Unpacks a release archive and uses the program as a stranger would: without a configuration, a network or a home.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target="${1:?usage: tools/release/try.sh TARGET}"
place="$(mktemp -d)"
trap 'rm -rf "$place"' EXIT
case "$target" in
*windows*) (cd "$place" && unzip -q "$OLDPWD"/target/release-archives/parallax-*-"$target".zip) ;;
*) tar -xzf target/release-archives/parallax-*-"$target".tar.gz -C "$place" ;;
esac
cd "$place"/parallax-*
for file in README.md CHANGELOG.md LICENSE-MIT LICENSE-APACHE THIRD-PARTY-LICENSES.txt man/parallax.1 completions/parallax.bash; do
    [[ -s "$file" ]] || { echo "no $file in the archive"; exit 1; }
done
./parallax --version
./parallax search "Should zoos be banned?" --lanes bm25 --offline --data-dir "$place/data" | grep --quiet MRecall
./parallax frame --keys "Should zoos be banned?<Enter>" --offline --data-dir "$place/data" | grep --quiet Hybrid
echo "the archive of $target works"
