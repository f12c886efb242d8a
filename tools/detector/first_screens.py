"""How many of the sides that the explorer shows first does gold confirm?

python first_screens.py --parallax target/release/parallax                                 (the sample)
python first_screens.py --parallax target/release/parallax --lanes minilm --corpus DATA/arguments-pro-con/corpus.jsonl \\
    --questions DATA/arguments-pro-con/questions.jsonl --labels DATA/arguments-pro-con/gold.div.qrels:positives

For every question the first k passages of each lane, judged by the detector and by gold. Passages count once per question. With
`:positives` labels, only passages that have a label are compared. Intervals: 95 %, bootstrap over questions.
"""
import argparse
import json
import subprocess

import numpy as np


def hits(a, question, source):
    command = [a.parallax, "search", question, "-k", str(a.k), "--format", "json", "--offline", "--lanes", a.lanes, "--label-source", source]
    for name in ("corpus", "questions", "labels", "data_dir"):
        if getattr(a, name):
            command += [f"--{name.replace('_', '-')}", getattr(a, name)]
    found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    return {h["id"]: h for lane in found["lanes"] for h in lane["hits"][:a.k]}


def gold(hit):
    """The statements that gold says the passage supports; None where nothing is known."""
    sides = [v["perspective"] for v in hit["verdicts"] if v["by"] == "gold" and v["supports"]]
    return sides if sides or all(v["by"] == "gold" for v in hit["verdicts"]) and hit["verdicts"] else None


def share(rows, value, given, boot=1000, seed=7):
    by = {}
    for r in rows:
        if given(r):
            by.setdefault(r["question"], []).append(value(r))
    every, rng = [np.array(v, float) for v in by.values()], np.random.default_rng(seed)
    if not every:
        return "none"
    draws = [np.concatenate([every[i] for i in rng.integers(len(every), size=len(every))]).mean() for _ in range(boot)]
    low, high = np.percentile(draws, (2.5, 97.5))
    flat = np.concatenate(every)
    return f"{flat.mean():.3f} ({low:.3f}–{high:.3f}) of {len(flat)}"


def rows(a):
    """One row for each question and passage of the first k: what the detector shows, and what gold says."""
    made = []
    for line in open(a.questions or a.own, encoding="utf-8"):
        q = json.loads(line)
        if len(q["perspectives"]) != 2:
            continue
        by_gold = hits(a, q["question"], "gold")
        for name, h in hits(a, q["question"], "model").items():
            made.append({"question": q["question"], "id": name, "side": h["decision"]["side"], "gold": gold(by_gold[name]), "text": h["text"]})
    return made


def is_shown(row):
    return row["side"] in (0, 1)


def figures(rows):
    known = [r for r in rows if r["gold"] is not None]
    one, right = lambda r: len(r["gold"]) == 1, lambda r: r["gold"] == [r["side"]]
    return {"passages": len(rows), "with_gold": len(known), "one_side": sum(map(one, known)), "both": sum(r["side"] == "both" for r in rows),
            "shown": sum(map(is_shown, known)), "right": share(known, right, is_shown), "coverage": share(known, is_shown, one),
            "right_of_one": share(known, right, lambda r: one(r) and is_shown(r))}


def main():
    ap = argparse.ArgumentParser()
    for name in ("--parallax", "--corpus", "--questions", "--labels", "--data-dir", "--show"):
        ap.add_argument(name)
    ap.add_argument("--lanes", default="bm25,minilm,hybrid")
    ap.add_argument("-k", type=int, default=5)
    ap.add_argument("--own", default="sample_data/questions.jsonl", help="the questions, where --questions is not given")
    a = ap.parse_args()
    made = rows(a)
    f = figures(made)
    print(f"passages: {f['passages']}, with gold: {f['with_gold']}, with one side by gold: {f['one_side']}")
    print("called both:", f["both"])
    print("sides shown on passages with gold, right:", f["right"])
    print("coverage (sides shown among passages with one side):", f["coverage"])
    print("of those with one side and shown, right:", f["right_of_one"])
    if a.show:
        for r in filter(is_shown, made):
            print(json.dumps(r, ensure_ascii=False), file=open(a.show, "a"))


if __name__ == "__main__":
    main()
