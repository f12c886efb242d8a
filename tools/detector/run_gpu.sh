#!/bin/bash
# Everything on a machine with a GPU and no network: a teacher (stage 1, stage 2), the student, int8, figures.
#
#   run_gpu.sh CARRIED RUN MINUTES
#
# CARRIED holds pairs.jsonl.gz and the packed weights mpnet/ (pack.py). Checkpoints and
# logs go to RUN. INIT, if set, is a state that the teacher starts from. MINUTES, a whole number, counts from the first start; the same command goes on where a killed run was.
# What is to be brought home lies in RUN/back, no file over 15 MiB.
# PYTHON, DEVICE, and TRIAL (more arguments for every training, to try all of it in small) may be set.
set -euo pipefail
carried=$(realpath "$1") run=$2 minutes=$3
python=${PYTHON:-python3} device=${DEVICE:-cuda} trial=${TRIAL:-}
mkdir -p "$run/back"
run=$(realpath "$run")
cd "$(dirname "$0")"
export PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=true
exec > >(tee -a "$run/log") 2>&1
[ -f "$run/started" ] || date +%s > "$run/started"
left() { echo $(( minutes * 60 - $(date +%s) + $(cat "$run/started") )); }
part() { awk "BEGIN { print $1 }"; }
say() { echo "== $* ($(left) s left)"; }

[ -f "$run/mpnet/model.safetensors" ] || "$python" pack.py unpack --from "$carried/mpnet" --out "$run/mpnet"
pairs=$carried/pairs.jsonl.gz

# Four minutes are for all that is not training; of the rest the teacher gets 55 of 100.
# Its epochs end it earlier where the GPU is fast: more would be learned by heart.
each=$(part "($minutes > 8 ? $minutes - 4 : $minutes / 2) * .55")
say "teacher, $each minutes at most"
"$python" train.py --stage both --first .7 --epochs 4 --base "$run/mpnet" --data "$pairs" --out "$run/teacher" \
    --minutes "$each" --no-cosine --window 2 --device "$device" ${INIT:+--init "$INIT"} $trial
teacher=$run/teacher/stage2/best.pt

# What is left goes to the student, less what pruning, export and figures take. Decided once, so that it can be gone on with.
[ -f "$run/student.minutes" ] || part "($(left) > 330 ? $(left) - 210 : 120) / 60" > "$run/student.minutes"
say "student, $(cat "$run/student.minutes") minutes"
[ -f "$run/base/start.pt" ] || "$python" prune.py --teacher "$teacher" --base "$run/mpnet" --data "$pairs" --threads 16 --out "$run/base"
[ -f "$run/base/solved.pt" ] || "$python" solve.py --base "$run/base" --init "$run/base/start.pt" --teacher-base "$run/mpnet" --teacher "$teacher" \
    --data "$pairs" --threads 16 --out "$run/base/solved.pt"
"$python" train.py --stage 2 --base "$run/base" --init "$run/base/solved.pt" --data "$pairs" --out "$run/student" \
    --minutes "$(cat "$run/student.minutes")" --lr 4e-5 --freeze 4 --no-cosine --window 2 --device "$device" $trial

# First what cannot be made again without the GPU, then what can.
say "back"
"$python" pack.py state --checkpoint "$run/student/best.pt" --out "$run/back" --part-mib 15
cp "$run/base/config.json" "$run/base/tokenizer.json" "$run/back/"
tar czf "$run/back/log.tgz" -C "$run" log
[ -n "$trial" ] && limit="--limit 40" || limit=
"$python" export.py --base "$run/base" --checkpoint "$run/student/best.pt" --data "$pairs" --out "$run/out" $limit
split -b 15m -d "$run/out/detector.onnx" "$run/back/detector.onnx."
tar czf "$run/back/log.tgz" -C "$run" log out/detector.json
say "finished"
ls -l "$run/back"
