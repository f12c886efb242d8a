#!/bin/bash
# From the data to the figures: prepare, teacher, student, export, fit, evaluate, card. On a CPU or on a GPU.
#
#   PARALLAX_DATA=DATA run.sh RUN MPNET [STEP ...]
#
# Checkpoints, scores and logs go to RUN; MPNET is a folder with all-mpnet-base-v2. Without STEP all of them run, in this order:
# prepare teacher student export fit evaluate card. A step that was killed goes on when the same command is given again.
# INIT (a state to start stage 1 from), TEACHER (a teacher's state to prune in place of stage 2's, or a student's to go on with), START (the weights of a student whose state is TEACHER), FREEZE (the lowest
# layers that do not train on a CPU), WINDOW (sentences in the student's windows, 0: whole passages), FIRST, SECOND, ENTAIL (0: none), STUDENT (minutes), DEVICE, SEED, THREADS, PYTHON may be set.
set -euo pipefail
run=$(realpath -m "$1") base=$(realpath "$2")
shift 2
mkdir -p "$run"
cd "$(dirname "$0")"
python=${PYTHON:-python3} device=${DEVICE:-cpu} seed=${SEED:-7} pairs=$run/pairs.jsonl
# memory that was had is kept: giving pages back after every batch costs more than the products
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 MALLOC_TOP_PAD_=268435456 GLIBC_TUNABLES=glibc.malloc.hugetlb=1
export OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0 PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=true
small=(--device "$device" --no-cosine --seed "$seed" --threads "${THREADS:-2}")
[ "$device" = cpu ] && small+=(--freeze "${FREEZE:-4}" --watch 120 --tokens 1600 --most 40)
encoder=../../assets/minilm

prepare() {
    [ -f "$pairs" ] || "$python" prepare.py --out "$pairs" --seed "$seed"
}
teacher() {
    "$python" train.py --stage 1 --base "$base" --data "$pairs" --out "$run/s1" --minutes "${FIRST:-180}" --max-tokens 96 \
        --lr 3e-5 ${INIT:+--init "$INIT"} "${small[@]}"
    "$python" train.py --stage 2 --base "$base" --data "$pairs" --out "$run/s2" --minutes "${SECOND:-180}" --max-tokens 160 --window 2 \
        --lr 5e-5 --init "$run/s1/last.pt" "${small[@]}"
}
student() {
    local teacher=${TEACHER:-$run/s2/best.pt} start=$run/base/solved.pt
    if [ -f "$teacher/config.json" ]; then    # a student that was kept goes on
        start=${START:-$teacher}
        [ -f "$run/base/model.safetensors" ] || "$python" pack.py base --from "$teacher" --base "$base" --out "$run/base"
    else
        [ -f "$run/base/start.pt" ] || "$python" prune.py --teacher "$teacher" --base "$base" --data "$pairs" --out "$run/base" --seed "$seed"
        [ -f "$start" ] || "$python" solve.py --base "$run/base" --init "$run/base/start.pt" --teacher-base "$base" --teacher "$teacher" \
            --data "$pairs" --out "$start"
    fi
    if [ "${ENTAIL:-60}" != 0 ]; then
        "$python" train.py --stage 1 --base "$run/base" --init "$start" --data "$pairs" --out "$run/entail" --minutes "${ENTAIL:-60}" \
            --max-tokens 96 --lr 4e-5 "${small[@]}"
        start=$run/entail/last.pt
    fi
    "$python" train.py --stage 2 --base "$run/base" --init "$start" --data "$pairs" --out "$run/student" --minutes "${STUDENT:-60}" \
        --max-tokens 160 --window "${WINDOW:-2}" --lr 5e-5 "${small[@]}"
}
export_() {
    # the mean of the best and the last checkpoint has the better figures of both on the development split
    "$python" pack.py mean --checkpoint "$run/student/last.pt" --other "$run/student/best.pt" --out "$run/student/mean.pt"
    "$python" export.py --base "$run/base" --checkpoint "$run/student/mean.pt" --out "$run/out" --name parallax-mpnet \
        --data "$pairs" --limit 60
}
score() {   # split, window, file, more
    [ -f "$run/scores/$3.npz" ] || "$python" score.py --onnx "$run/out/detector.onnx" --tokenizer "$run/out" --encoder "$encoder" \
        --data "$pairs" --split "$1" --window "$2" --out "$run/scores/$3.npz" "${@:4}"
}
fit() {
    mkdir -p "$run/scores"
    for w in 0 2; do
        score dev "$w" "dev-$w"
        score dev "$w" "dev-apart-$w" --apart
        "$python" fit.py --dev "$run/scores/dev-$w.npz" --apart "$run/scores/dev-apart-$w.npz" --out "$run/joint-$w.json"
    done
    # the reading with the better side on the development split is the one that is used
    best=$("$python" -c 'import json,sys; print(max((0, 2), key=lambda w: sum(json.load(open(f"{sys.argv[1]}/joint-{w}.json"))["dev_folds"][k] for k in ("right_side", "auc"))))' "$run")
    echo "$best" > "$run/window"
    score dev "$best" negated-dev --apart --with negated
    score test "$best" test
    "$python" fit.py --dev "$run/scores/dev-$best.npz" --apart "$run/scores/dev-apart-$best.npz" --negated "$run/scores/negated-dev.npz" --test "$run/scores/test.npz" --out "$run/joint.json"
}
evaluate() {
    w=$(cat "$run/window")
    score check "$w" check
    score test "$w" test-apart --apart
    score check "$w" check-apart --apart
    score test "$w" negated --apart --with negated
    score check "$w" negated-check --apart --with negated
    score test "$w" empty --apart --with empty --every 3
    score test "$w" other --apart --with other --every 3
    "$python" evaluate.py --joint "$run/joint.json" --dev "$run/scores/dev-$w.npz" --test "$run/scores/test.npz" --check "$run/scores/check.npz" \
        --apart "$run/scores/test-apart.npz" --apart-check "$run/scores/check-apart.npz" \
        --negated "$run/scores/negated.npz" --negated-check "$run/scores/negated-check.npz" --empty "$run/scores/empty.npz" \
        --other "$run/scores/other.npz" --onnx "$run/out/detector.onnx" --data "$pairs" --out "$run/metrics.json"
}
card() {
    "$python" curves.py --run teacher-1="$run/s1" --run teacher-2="$run/s2" --run student="$run/student" --out "$run/curves"
    "$python" card.py --metrics "$run/metrics.json" --card CARD.md --joint "$run/joint.json" --carried ../../assets/detector/joint.json
}
for step in "${@:-prepare teacher student export fit evaluate card}"; do
    for s in $step; do
        echo "== $s $(date -u +%H:%M)"
        [ "$s" = export ] && s=export_
        "$s"
    done
done
