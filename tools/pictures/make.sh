#!/usr/bin/env bash
# Draws the pictures of docs/screens.md and the moving one of docs/sessions.md anew, with the program itself: frames by `parallax frame`, the
# moving one from tour.session.jsonl beside this file. `PARALLAX=path/to/parallax tools/pictures/make.sh` takes a binary that is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
if [[ -z ${PARALLAX:-} ]]; then
    cargo build --release
    PARALLAX=target/release/parallax
fi
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
# Nothing that is set on this machine stands in the pictures.
unset NO_COLOR PARALLAX_CORPUS PARALLAX_QUESTIONS PARALLAX_LABELS PARALLAX_REPLIES PARALLAX_LLM
: >"$data/config.toml"
export PARALLAX_CONFIG="$data/config.toml" PARALLAX_DATA_DIR="$data"

asked='Should wolves be brought back to the countryside?<Enter><Wait>'
changed="${asked}lle<Wait>"

# Its name, columns and rows, keys, and options if any.
picture() {
    "$PARALLAX" frame --label-source gold --size "$2" --keys "$3" "${@:4}" --out "docs/pictures/$1.svg"
}

mkdir -p docs/pictures
picture first 140x40 '<Esc>'
picture explore 140x40 "$changed"
picture explore-80x24 80x24 "$changed"
picture explore-40x12 40x12 "$changed"
picture light 140x40 "$changed" --theme light
picture dark 140x40 "$changed" --theme dark
picture deuteranopia 140x40 "$changed" --theme deuteranopia
picture mono 140x40 "$changed" --theme mono
picture mono-80x24 80x24 "$changed" --theme mono
picture mono-40x12 40x12 "$changed" --theme mono
picture ascii 80x24 "$changed" --theme mono --ascii
picture read 140x40 "${changed}j<Enter><Wait>"
picture read-40x12 40x12 "${changed}j<Enter><Wait>"
picture record 140x40 "${changed}j<Enter><Wait>r"
picture tune 140x40 "${changed}t<Wait>"
picture sycophancy 140x40 "${changed}y<Wait>"
picture compare 140x40 "${changed}c<Wait>"
picture compare-80x24 80x24 "${changed}c<Wait>"
picture bias 140x40 "${changed}F<Wait>"
picture reader 140x40 "${changed}r<Wait>"
picture help 140x40 "${changed}?"
"$PARALLAX" demo tools/pictures/tour.session.jsonl --out docs/pictures/tour.svg
du -bc docs/pictures/*.svg | tail -1
