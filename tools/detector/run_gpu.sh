#!/bin/bash
# Everything on a machine with a GPU and no network: teachers (stage 1, stage 2), their judgements, the student, int8, figures.
#
#   run_gpu.sh CARRIED RUN MINUTES [TEACHERS]
#
# CARRIED holds pairs.jsonl.gz, crossings.jsonl.gz and the packed weights minilm/ and mpnet/ (pack.py). Checkpoints and
# logs go to RUN. MINUTES, a whole number, counts from the first start; the same command goes on where a killed run was.
# What is to be brought home lies in RUN/back, no file over 15 MiB. TEACHERS (2) differ in their seed; their mean teaches.
# PYTHON, DEVICE, and TRIAL (more arguments for every training, to try all of it in small) may be set.
set -euo pipefail
carried=$(realpath "$1") run=$2 minutes=$3 teachers=${4:-2}
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

for base in minilm mpnet; do
    [ -f "$run/$base/model.safetensors" ] || "$python" pack.py unpack --from "$carried/$base" --out "$run/$base"
done
pairs=$carried/pairs.jsonl.gz

# Four minutes are for all that is not training; of the rest the teachers get 55 of 100.
# Their epochs end them earlier where the GPU is fast: more would be learned by heart.
each=$(part "($minutes > 8 ? $minutes - 4 : $minutes / 2) * .55 / $teachers")
given=()
for n in $(seq "$teachers"); do
    say "teacher $n, $each minutes at most"
    "$python" train.py --stage both --first .7 --epochs 4 --base "$run/mpnet" --data "$pairs" --out "$run/teacher$n" \
        --minutes "$each" --seed "$n" --no-cosine --device "$device" $trial
    given+=(--teacher "$run/teacher$n/stage2/best.pt")
done

# What is left goes to the student, less what scoring, export and figures take. Decided once, so that it can be gone on with.
[ -f "$run/student.minutes" ] || part "($(left) > 330 ? $(left) - 210 : 120) / 60" > "$run/student.minutes"
say "student, $(cat "$run/student.minutes") minutes"
"$python" distil.py --base "$run/minilm" --teacher-base "$run/mpnet" "${given[@]}" --data "$pairs" \
    --crossings "$carried/crossings.jsonl.gz" --out "$run/student" --minutes "$(cat "$run/student.minutes")" --device "$device" \
    --tokens 32768 --most 512 $trial

# First what cannot be made again without the GPU, then what can.
say "back"
cp "$run/student/teacher.npz" "$run/back/"
"$python" pack.py trained --checkpoint "$run/student/best.pt" --base "$run/minilm" --out "$run/back" --part-mib 15
cp "$run/student/teacher.json" "$run/back/" 2>/dev/null || true
tar czf "$run/back/log.tgz" -C "$run" log
[ -n "$trial" ] && limit="--limit 40" || limit=
"$python" export.py --base "$run/minilm" --checkpoint "$run/student/best.pt" --data "$pairs" --out "$run/out" $limit
tar czf "$run/back/log.tgz" -C "$run" log out/detector.json
say "finished"
ls -l "$run/back"
