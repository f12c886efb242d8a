#!/usr/bin/env bash
# Compares the built-in reader of GGUF files with a server of the same file (tools/llm/setup.sh): three prompts, 64 greedy tokens each. Prints,
# for each prompt, the steps, how many of the likeliest tokens are equal, the steps before the server's two best differ by less than .1 nats,
# and the greatest difference of log-probabilities in these and in all.
#
# Both read the model with all weights as 32-bit floats (dequantize.py; 2.5 GB), and the server keeps its keys and values so: with quantised
# weights either program rounds by a rule of its own. WEIGHTS=as-they-are compares on the file as it was downloaded.
#
#   tools/llm/agreement.sh [FOLDER]
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$(realpath "${1:-${PARALLAX_LLM_SERVER:-target/llm-server}}")
model=$folder/model.gguf
if [[ ${WEIGHTS:-floats} == floats ]]; then
    model=$folder/model-f32.gguf
    if [[ ! -e $model ]]; then
        "$folder/bin/python" tools/llm/dequantize.py "$folder/model.gguf" "$model.part"
        mv "$model.part" "$model"
    fi
fi
port=$("$folder/bin/python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')
log=$(mktemp)
"$folder/bin/python" -u -m llama_cpp.server --model "$model" --host 127.0.0.1 --port "$port" --n_ctx 512 --n_threads 1 \
    --type_k 0 --type_v 0 2>"$log" >/dev/null &
server=$!
trap 'kill $server; wait $server 2>/dev/null || true; rm "$log"' EXIT
until grep -q "Uvicorn running" "$log"; do
    kill -0 $server 2>/dev/null || { cat "$log"; exit 1; }
    sleep 0.2
done
PARALLAX_LLM_ADDRESS=127.0.0.1:$port PARALLAX_LLM_FILE=$model \
    cargo test --all-features --lib -- --ignored --nocapture agrees_with_a_server
