#!/usr/bin/env bash
# Milvus end to end on loopback: loads a corpus into Milvus Lite, and compares the first ten of `minilm`, which scans every vector here,
# with those of the `milvus:` lane, question by question. Prints the agreement and the times.
#
#   tools/milvus/end_to_end.sh CORPUS QUESTIONS LABELS
#
# Needs `cargo build --release --features milvus`, and a Python that has milvus-lite: PARALLAX_MILVUS_PYTHON names it, else python3.
set -euo pipefail
corpus=$(realpath "$1") questions=$(realpath "$2") labels=$(realpath "$3")
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
parallax=${PARALLAX:-$here/../../target/release/parallax}
python=${PARALLAX_MILVUS_PYTHON:-python3}
folder=$(mktemp -d)
port=$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
"$python" -u -m milvus_lite server --host 127.0.0.1 --port "$port" --data-dir "$folder/milvus" >"$folder/log" 2>&1 &
server=$!
trap 'kill $server; wait $server 2>/dev/null || true; rm -rf "$folder"' EXIT
until grep -q listening "$folder/log"; do
    kill -0 $server 2>/dev/null || { cat "$folder/log"; exit 1; }
    sleep 0.2
done
place=milvus:http://127.0.0.1:$port/passages
export PARALLAX_DATA_DIR=${PARALLAX_DATA_DIR:-$folder/data}
for call in first second; do
    echo "== $call push"
    time "$parallax" corpus push "$place" --corpus "$corpus"
done
for lane in minilm "$place" "$place@by=bm25"; do
    echo "== all questions by $lane"
    mkdir "$folder/run"
    time "$parallax" eval berds --corpus "$corpus" --questions "$questions" --labels "$labels:complete" --label-source gold \
        -k 10 --lane "$lane" --write "$folder/run" >"$folder/table"
    mv "$folder/run"/*.run "$folder/${lane//[^a-z0-9]/_}.run"
    rm -r "$folder/run"
done
echo "== the first ten of minilm and of Milvus"
"$python" "$here/agreement.py" "$folder/minilm.run" "$folder/${place//[^a-z0-9]/_}.run"
