#!/usr/bin/env bash
# Milvus end to end on loopback: loads a corpus into Milvus Lite (killed after the first batches, gone on with, pushed again), and compares
# the first ten of `minilm`, which scans every vector here, with those of the `milvus:` lane, question by question. Prints the times too.
#
#   tools/milvus/end_to_end.sh CORPUS QUESTIONS LABELS
#
# Needs `cargo build --release --features milvus`, and a Python that has milvus-lite and pymilvus: PARALLAX_MILVUS_PYTHON names it, else python3.
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

lane() {
    echo "== all questions by $1"
    mkdir "$folder/run"
    time "$parallax" eval berds --corpus "$corpus" --questions "$questions" --labels "$labels:complete" --label-source gold \
        -k 10 --lane "$1" --write "$folder/run" >"$folder/table"
    mv "$folder/run"/*.run "$folder/${1//[^a-z0-9]/_}.run"
    rm -r "$folder/run"
}

lane minilm # This also makes the vectors, so that a push does nothing but push.
echo "== a push that is killed"
"$parallax" corpus push "$place" --corpus "$corpus" 2>"$folder/told" &
push=$!
until grep -q pushing "$folder/told"; do
    kill -0 $push || { cat "$folder/told"; exit 1; }
    sleep 0.05
done
kill -9 $push && ! wait $push
cat "$folder/told"
for call in "that goes on from there" "that finds all there"; do
    echo "== a push $call"
    time "$parallax" corpus push "$place" --corpus "$corpus"
done
lane "$place"
lane "$place@by=bm25"
echo "== the first ten of minilm and of Milvus"
"$python" "$here/agreement.py" "$folder/minilm.run" "$folder/${place//[^a-z0-9]/_}.run"
