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

asked='Should zoos be banned?<Enter><Wait>'
six='How should coastal towns answer rising seas?<Enter><Wait>'

# Its name with its ending, columns and rows, keys, and options if any.
function drawn {
    "$PARALLAX" frame --label-source gold --size "$2" --keys "$3" "${@:4}" --out "docs/pictures/$1"
}
function picture { drawn "$1.svg" "${@:2}"; }

# report.png is made by report.sh, detector-curve.svg by tools/detector.
mkdir -p docs/pictures
# The main views, in three sizes and two themes.
for size in 140x40 80x24 40x12; do
    for theme in terminal light; do
        name() { echo "$1$([[ $size == 140x40 ]] || echo "-$size")$([[ $theme == terminal ]] || echo "-$theme")"; }
        function view { drawn "$(name "$1").png" "$size" "$2" --theme "$theme" --scale 1; }
        view explore "$asked"
        view six "$six"
        view present "${asked}lz<Wait>"
        view compare "${asked}c<Wait>"
        view sycophancy "${asked}ly<Wait>"
        view bias "${asked}lF<Wait>"
        view record "${asked}j<Enter><Wait>r"
        view labelling "${asked}a<Wait>"
    done
done
picture start 140x40 '<Esc>'
picture switched 140x40 "${asked}lle<Wait>"
picture dark 140x40 "$asked" --theme dark
picture deuteranopia 140x40 "$asked" --theme deuteranopia
picture mono 140x40 "$asked" --theme mono
picture ascii 80x24 "$asked" --theme mono --ascii
picture read 140x40 "$asked<Enter><Wait>"
picture tune 140x40 "${asked}llt<Wait>"
picture reader 140x40 "${asked}r<Wait>"
picture framing 140x40 "${asked}lyw<Wait>jjj"
picture what-if 140x40 "${asked}ljjj<Enter><Wait>c<Wait><Down><Wait>"
picture key-points 140x40 "${asked}K<Wait>"
# The answer is written by hand, and says so.
picture answer-sides 140x40 "${asked}ra<Wait>" --answers tools/pictures/answers-by-hand.jsonl
picture mixer 140x40 "${asked}rm<Wait>"
picture help 140x40 "${asked}?"
"$PARALLAX" demo tools/pictures/tour.session.jsonl --out docs/pictures/tour.svg
du -bc docs/pictures/*.svg docs/pictures/*.png | tail -1
