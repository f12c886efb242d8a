#!/usr/bin/env bash
# Builds the program of a release for a target. Two builds in different folders give the same bytes: no path of this machine and no time
# goes into the program.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
target="${1:?usage: tools/release/build.sh TARGET}"

source_folder="$PWD"
cargo_home="${CARGO_HOME:-$HOME/.cargo}"
sysroot="$(rustc --print sysroot)"
# On Windows the compiler sees other paths than this shell.
if command -v cygpath >/dev/null; then
    source_folder="$(cygpath -w "$source_folder")"
    cargo_home="$(cygpath -w "$cargo_home")"
fi

SOURCE_DATE_EPOCH="$(git log -1 --format=%ct)"
export SOURCE_DATE_EPOCH
export CARGO_INCREMENTAL=0
separator=$'\x1f'
flags="--remap-path-prefix=$source_folder=/source${separator}--remap-path-prefix=$cargo_home=/cargo"
flags+="${separator}--remap-path-prefix=$sysroot=/rust"
case "$target" in
*-linux-musl) flags+="${separator}-Ctarget-feature=+crt-static" ;;
*-windows-msvc) flags+="${separator}-Ctarget-feature=+crt-static${separator}-Clink-arg=/Brepro" ;;
esac
export CARGO_ENCODED_RUSTFLAGS="$flags"
# SQLite, Zstandard and ring are C.
case "$target" in
*-windows-msvc) ;;
*) export CFLAGS="-ffile-prefix-map=$source_folder=/source -ffile-prefix-map=$cargo_home=/cargo ${CFLAGS:-}" ;;
esac

cargo build --locked --profile dist --all-features --target "$target"
