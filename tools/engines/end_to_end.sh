#!/usr/bin/env bash
# An engine end to end on loopback: loads a corpus into it (killed in the middle, gone on with, pushed again), and compares the first ten of
# `minilm`, which scans every vector here, with those of the engine's lane, question by question. Prints times, and requests where the server counts them.
#
#   tools/engines/end_to_end.sh milvus CORPUS QUESTIONS LABELS     Milvus Lite, a Milvus server in Python
#   tools/engines/end_to_end.sh os CORPUS QUESTIONS LABELS         shards.py, a double of OpenSearch with three shards
#
# Needs `cargo build --release` (for Milvus with `--features milvus`), and a Python that has milvus-lite and pymilvus, or NumPy: PARALLAX_PYTHON
# names it, else python3. PARALLAX is another binary, PARALLAX_DATA_DIR a data folder that may have the vectors already, LANES the lanes to ask (`vectors bm25`),
# KILL_AFTER how many seconds after its first report the push is killed (0).
set -euo pipefail
engine=$1 corpus=$(realpath "$2") questions=$(realpath "$3") labels=$(realpath "$4")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
parallax=${PARALLAX:-$here/../../target/release/parallax}
python=${PARALLAX_PYTHON:-python3}
folder=$(mktemp -d)
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
case $engine in
milvus) "$python" -u -m milvus_lite server --host 127.0.0.1 --port "$port" --data-dir "$folder/server" >"$folder/log" 2>&1 & ;;
os) "$python" -u "$here/shards.py" "$folder/server" "$port" >"$folder/log" 2>&1 & ;;
*) echo "expected milvus or os, found $engine" >&2 && exit 2 ;;
esac
server=$!
trap 'kill $server; wait $server 2>/dev/null || true; rm -rf "$folder"' EXIT
until grep -q listening "$folder/log"; do
    kill -0 $server 2>/dev/null || { cat "$folder/log"; exit 1; }
    sleep 0.2
done
place=$engine:http://127.0.0.1:$port/passages
export PARALLAX_DATA_DIR=${PARALLAX_DATA_DIR:-$folder/data}

counts() {
    if [ "$engine" = os ]; then
        "$python" -c 'import json, sys, urllib.request; print("requests so far:", json.load(urllib.request.urlopen(sys.argv[1])))' "http://127.0.0.1:$port/_counts"
    fi
}
lane() {
    echo "== all questions by $1"
    mkdir "$folder/run"
    time "$parallax" eval berds --corpus "$corpus" --questions "$questions" --labels "$labels:complete" --label-source gold \
        -k 10 --lane "$1" --write "$folder/run" >"$folder/table"
    mv "$folder/run"/*.run "$folder/${1//[^a-z0-9]/_}.run"
    rm -r "$folder/run"
    counts
}

lane minilm # This also makes the vectors, so that a push does nothing but push.
echo "== a push that is killed KILL_AFTER seconds after its first report"
"$parallax" corpus push "$place" --corpus "$corpus" 2>"$folder/told" &
push=$!
until grep -q pushing "$folder/told"; do
    kill -0 $push || { cat "$folder/told"; exit 1; }
    sleep 0.05
done
sleep "${KILL_AFTER:-0}"
kill -9 $push 2>/dev/null || true
ended=0
wait $push || ended=$?
[ $ended = 137 ] || { echo "the push ended by itself ($ended) before it was killed; make KILL_AFTER shorter" >&2; exit 1; }
tail -c 200 "$folder/told"
counts
for call in "that goes on from there" "that finds all there"; do
    echo "== a push $call"
    time "$parallax" corpus push "$place" --corpus "$corpus"
    counts
done
for by in ${LANES:-vectors bm25}; do
    lane "$place@by=$by"
done
[[ " ${LANES:-vectors} " == *" vectors "* ]] || exit 0
echo "== the first ten of minilm and of the engine"
vectors=$place@by=vectors
"$python" "$here/agreement.py" "$folder/minilm.run" "$folder/${vectors//[^a-z0-9]/_}.run"
