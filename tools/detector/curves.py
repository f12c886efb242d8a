"""Learning curves: pairs seen against what the development figures say, as CSV and as a picture.

python curves.py --run teacher-1=run/s1 --run teacher-2=run/s2 [--run student=run/student] --out curves

Reads the log in each run's last.pt (or best.pt's run folder), writes curves.csv and, where matplotlib is installed, curves.svg.
Figures are those of train.py's development look: right side of two on the labels, on the written sets and on the minimal pairs.
"""
import argparse
import csv
import os

import torch

FIGURES = {"right_side": "labels, right side", "written_right_side": "written sets, right side",
           "contrast_right_side": "minimal pairs, right side", "auc": "labels, AUC", "f1": "labels, best F1"}


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--run", action="append", required=True, help="NAME=FOLDER, in the order of training")
    ap.add_argument("--before", type=int, default=0, help="pairs that the starting weights had seen")
    ap.add_argument("--out", required=True)
    a = ap.parse_args()
    rows, seen = [], a.before
    for run in a.run:
        name, folder = run.split("=", 1)
        s = torch.load(os.path.join(folder, "last.pt"), map_location="cpu", weights_only=False)
        rows += [{"run": name, "pairs": seen + x["seen"], "minutes": round(x["spent"] / 60, 1)} | {k: x.get(k) for k in FIGURES} for x in s["log"]]
        seen += s["seen"]
    with open(a.out + ".csv", "w", newline="") as f:
        w = csv.DictWriter(f, ["run", "pairs", "minutes", *FIGURES])
        w.writeheader()
        w.writerows(rows)
    try:
        import matplotlib
    except ImportError:
        print("matplotlib is not installed: no picture")
        return
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    fig, ax = plt.subplots(figsize=(7, 4))
    for k, title in FIGURES.items():
        x = [(r["pairs"], r[k]) for r in rows if r[k] is not None]
        if x:
            ax.plot(*zip(*x), marker="o", label=title)
    for name in {r["run"] for r in rows}:
        ax.axvline(min(r["pairs"] for r in rows if r["run"] == name), color="0.85", zorder=0)
    ax.set_xlabel("pairs seen")
    ax.set_ylabel("figure on the development questions")
    ax.legend(frameon=False, fontsize=8)
    fig.savefig(a.out + ".svg", bbox_inches="tight")


if __name__ == "__main__":
    main()
