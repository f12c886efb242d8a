"""Puts evaluate.py's table into the model card, and the part of joint.json that the program reads beside the model.

python card.py --metrics metrics.json --card CARD.md --joint joint.json --carried ../../assets/detector/joint.json

The table replaces what stands between the two marks in the card.
"""
import argparse
import json
import os

import evaluate

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def rounded(x):
    return ({k: rounded(v) for k, v in x.items()} if isinstance(x, dict) else [rounded(v) for v in x] if isinstance(x, list)
            else round(x, 4) if isinstance(x, float) else x)


def carry(joint, place):
    """Heads, thresholds and the figures that stand beside verdicts, without the tables of the card."""
    x = rounded(json.load(open(joint)))
    figures = ("right_side", "f1", "auc", "engaged_auc")
    x["test"] = {k: x["test"][k] for k in figures + ("precision", "coverage")} | {"interval": {k: x["test"]["interval"][k] for k in figures}}
    del x["dev_folds"]
    with open(place + ".new", "w") as f:
        json.dump(x, f, indent=1)
    os.replace(place + ".new", place)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--metrics", required=True)
    ap.add_argument("--card", required=True)
    ap.add_argument("--joint", required=True)
    ap.add_argument("--carried", required=True)
    a = ap.parse_args()
    r = json.load(open(a.metrics))
    t = r["test"]
    o = [BEGIN, "", "Nothing is fitted on the test split. Intervals are 95 %, by question.", "", evaluate.table(r), "",
         "**Surest first**: of the passages with one side, the share read right among the surest.", "", "| coverage | right |", "| --- | --- |"]
    o += [f"| {x['coverage']:.1f} | {x['right']:.3f} |" for x in t["risk_coverage"]]
    for k, title in (("engaged", "R against the share that takes a side"), ("side", "surety of the side against the share that is right")):
        o += ["", f"**Calibration**: {title}", "", "| between | passages | mean | measured |", "| --- | --- | --- | --- |"]
        o += [f"| {b['from']:.1f}–{b['to']:.1f} | {b['pairs']} | {b['mean_p']:.3f} | {b['supports']:.3f} |" for b in t["reliability"][k]]
    o += ["", END]
    s = open(a.card, encoding="utf-8").read()
    i, j = s.index(BEGIN), s.index(END) + len(END)
    with open(a.card + ".new", "w", encoding="utf-8") as f:
        f.write(s[:i] + "\n".join(o) + s[j:])
    os.replace(a.card + ".new", a.card)
    carry(a.joint, a.carried)


if __name__ == "__main__":
    main()
