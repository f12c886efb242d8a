"""The tables of the evaluation card, from evaluate.py's figures.

python card.py --metrics metrics.json --card CARD.md      (replaces what stands between the two marks in the card)
"""
import argparse
import json
import os

BEGIN, END = "<!-- figures -->", "<!-- end of figures -->"


def iv(m, k):
    v = m.get(k)
    if v is None:
        return "–"
    i = m.get("interval", {}).get(k)
    return f"{v:.3f} ({i[0]:.3f}–{i[1]:.3f})" if i else f"{v:.3f}"


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--metrics", required=True)
    ap.add_argument("--card", required=True)
    a = ap.parse_args()
    r = json.load(open(a.metrics))
    o = [BEGIN, "", "Figures of what the program runs: the int8 cross-encoder joined with the int8 encoder's cosine, "
         f"threshold {r['threshold']}; 95 % intervals by question.", ""]
    cols = ["accuracy", "f1", "auc", "right_side"]
    o += ["| | pairs | positive | accuracy | F1 | ROC-AUC | right side | ECE |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
    for n in ("test", "dev"):
        m = r[n]
        o.append(f"| **{n}** ({m['questions']} questions) | {m['pairs']} | {m['positive']:.3f} | " + " | ".join(iv(m, c) for c in cols) + f" | {m['ece']:.3f} |")
    for n, b in r.get("baselines", {}).items():
        o.append(f"| {n} | | | " + " | ".join(iv(b, c) for c in cols) + " | |")
    t = r["test"]
    o += ["", f"Precision {t['precision']:.3f}, recall {t['recall']:.3f}; right side measured on {t['sides']} passages that support exactly one side.", ""]
    for title, k in (("By source of the passage", "test_by_source"), ("By source of the question", "test_by_set"),
                     ("By words in the passage", "test_by_words"), ("By kind of pair", "test_by_statement")):
        o += [f"**{title}** (test)", "", "| | pairs | positive | accuracy | F1 | ROC-AUC | right side (passages) | ECE |", "| --- | --- | --- | --- | --- | --- | --- | --- |"]
        for n, m in r[k].items():
            o.append(f"| {n} | {m['pairs']} | {m['positive']:.3f} | " + " | ".join(iv(m, c) for c in cols) + f" ({m['sides']}) | {m['ece']:.3f} |")
        o.append("")
    o += ["**Calibration** (test): P(supports) against the share that does", "", "| P | pairs | mean P | supports | |", "| --- | --- | --- | --- | --- |"]
    for b in t["reliability"]:
        o.append(f"| {b['from']:.1f}–{b['to']:.1f} | {b['pairs']} | {b['mean_p']:.3f} | {b['supports']:.3f} | `{'#' * round(30 * b['supports']):30s}` |")
    o += ["", "**Shortcuts** (on a part of the test split, drawn by row number)", "", "| check | figure |", "| --- | --- |"]
    o += [f"| {k} | {v} |" for k, v in r["shortcuts"].items()]
    o += ["", END]
    s = open(a.card, encoding="utf-8").read()
    i, j = s.index(BEGIN), s.index(END) + len(END)
    with open(a.card + ".new", "w", encoding="utf-8") as f:
        f.write(s[:i] + "\n".join(o) + s[j:])
    os.replace(a.card + ".new", a.card)


if __name__ == "__main__":
    main()
