#!/usr/bin/env bash
# The robustness campaign at length; `cargo test --all-features` runs each part briefly.
#
#   tools/campaign/run.sh fuzz [SECONDS A TARGET]   every parser, or one: fuzz::gguf
#   tools/campaign/run.sh keys [SECONDS]            random keys, mouse, pastes and sizes
#   tools/campaign/run.sh kills [KILLS A JOB]       kills at random moments
#   tools/campaign/run.sh memory [SECONDS]          hours of use, without the waiting
#   tools/campaign/run.sh hostile                   archives of 10 GB, models, passages; or one: hostile::archives
#   tools/campaign/run.sh hostile::caches [CHANGES] changed caches, a search after each
#   tools/campaign/run.sh servers                   servers that mean harm
#
# PARALLAX_SEED=N repeats a run, or begins another. What broke something lies in target/campaign. The counts are printed at the end.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
part=${1:?which part: fuzz, keys, kills, memory, hostile or servers}
case $part in
    fuzz*) default=20 ;;
    keys) default=600 ;;
    kills) default=40 ;;
    memory) default=900 ;;
    hostile::caches) default=1000 ;;
    *) default=1 ;;
esac

# Parsers and clients are tried within the test itself.
[[ $part == fuzz* || $part == servers* ]] || cargo build --release --all-features
cargo test --all-features --test it --no-run
PARALLAX_PROGRAM=$PWD/target/release/parallax
PARALLAX_CAMPAIGN=${2:-$default}
PARALLAX_COUNTS=$(mktemp)
export PARALLAX_PROGRAM PARALLAX_CAMPAIGN PARALLAX_COUNTS
export PARALLAX_SEED=${PARALLAX_SEED:-$(date +%s)}
echo "== campaign $part: $PARALLAX_CAMPAIGN, PARALLAX_SEED=$PARALLAX_SEED"
# A parser that asks for memory without end shall not get it.
[[ $part == fuzz* ]] && ulimit -v 8000000
status=0
# What stalls or kills is disturbed by its neighbours; parsers are not.
threads=1
[[ $part == fuzz* ]] && threads=$(nproc)
cargo test --all-features --test it "campaign::$part" -- --nocapture --test-threads "$threads" || status=$?
echo "== counts"
cat "$PARALLAX_COUNTS"
exit "$status"
