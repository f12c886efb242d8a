#!/usr/bin/env bash
# Draws docs/pictures/report.png, the page of `annotate report --format html`, with Chromium: on a project of the sample whose labels by three annotators are
# made from gold with seeded errors. `PARALLAX=path/to/parallax CHROMIUM=chromium tools/pictures/report.sh` takes a binary that is there.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
: "${PARALLAX:=target/release/parallax}" "${CHROMIUM:=chromium}"
data=$(mktemp -d)
trap 'rm -rf "$data"' EXIT
unset PARALLAX_CORPUS PARALLAX_QUESTIONS PARALLAX_LABELS
: >"$data/config.toml"
export PARALLAX_CONFIG="$data/config.toml" PARALLAX_DATA_DIR="$data/data"

"$PARALLAX" annotate new "$data/zoo" --lanes bm25 --depth 6 --annotators anna,ben,cleo --overlap .5 --checks .1 --blind >"$data/new"
# Anna errs seldom, ben more as time goes on, cleo is fast; times have a few outliers, and some passages come again.
python3 - "$data/zoo" "$data" <<'PY'
import json, pathlib, random, sys
project, out = map(pathlib.Path, sys.argv[1:])
rng, clock = random.Random(7), 1_760_000_000_000
gold = {}
for line in pathlib.Path("sample_data/labels.tsv").read_text().splitlines()[1:]:
    _, passage, statement, label, *_ = line.split("\t")
    gold[passage, statement] = label == "1"
pool = [json.loads(line) for line in (project / "pool.jsonl").read_text().splitlines()]
questions = {q["text"]: q["perspectives"] for q in json.loads((project / "project.json").read_text())["questions"]}
head = "question\tid\tperspective\tlabel\tannotator\tat\ttook\tblind\tagain\tnote"
first, second = [head], [head]
for by, error, drift, pace in [("anna", .04, 0, 9e3), ("ben", .05, .2, 12e3), ("cleo", .12, 0, 5e3)]:
    own = [item for item in pool if by in item["to"]]
    again = rng.sample(own, len(own) // 10)
    for n, item in enumerate(own + again):
        took = pace * rng.lognormvariate(0, .45) * (rng.choice([.1, 7]) if rng.random() < .03 else 1)
        clock += int(took)
        repeated = n >= len(own)
        for statement in questions[item["question"]]:
            label = gold.get((item["passage"]["_id"], statement), False)
            label ^= rng.random() < error + drift * n / len(own)
            row = [item["question"], item["passage"]["_id"], statement, int(label), by, clock, int(took), 1, int(repeated)]
            (second if repeated else first).append("\t".join(map(str, [*row, "a second look" if repeated else ""])))
(out / "1.tsv").write_text("\n".join(first) + "\n")
(out / "2.tsv").write_text("\n".join(second) + "\n")
PY
for table in 1 2; do
    "$PARALLAX" annotate import "$data/$table.tsv" --format tsv --into "$data/zoo" >"$data/imported"
done
# The page holds its command, which names neither the binary nor the folder of this run.
mkdir "$data/bin"
ln -s "$(realpath "$PARALLAX")" "$data/bin/parallax"
(cd "$data" && PATH="$data/bin:$PATH" parallax annotate report zoo --format html >report.html)
"$CHROMIUM" --headless --no-sandbox --disable-gpu --disable-background-networking --user-data-dir="$data/browser" --hide-scrollbars \
    --force-color-profile=srgb --window-size=1200,1950 --screenshot="$data/report.png" "file://$data/report.html" 2>"$data/browser.log"
cp "$data/report.png" docs/pictures/report.png
ls -l docs/pictures/report.png
