"""What a checkpoint sees on questions that do not train: the right side of two on the labels' development split and on the written sets and
minimal pairs that are kept aside, with 95 % intervals by question, passages read whole.

  python look.py --base BASE --checkpoint RUN/last.pt --data pairs.jsonl --out figures.json
"""
import argparse
import json

import numpy as np
import torch

import common
import model as M
import packed
import train


def right(rows, p):
    """Of each passage with one side: its question, and whether the statement that it supports got the greater probability."""
    by = {}
    for i, r in enumerate(rows):
        by.setdefault((r["group"], r["passage"]), []).append(i)
    pairs = [g for g in by.values() if len(g) == 2 and rows[g[0]]["two"] in ("A", "B")]
    return [(rows[i]["topic"], bool(p[i] > p[j]) == (rows[i]["label"] == "supports")) for i, j in pairs]


def interval(outcomes, draws=2000):
    by = {}
    for topic, ok in outcomes:
        by.setdefault(topic, []).append(ok)
    sums = np.array([(sum(v), len(v)) for v in by.values()], float)
    rng = np.random.default_rng(7)
    drawn = sums[rng.integers(0, len(sums), (draws, len(sums)))].sum(1)
    return [round(float(x), 3) for x in np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5])]


ap = argparse.ArgumentParser()
for name in ("--base", "--checkpoint", "--data", "--out"):
    ap.add_argument(name, required=True)
ap.add_argument("--watch", type=int, default=400, help="passages with a side, a third of the written sets, half of the minimal pairs")
a = ap.parse_args()
torch.set_num_threads(2)
packed.BF16 = train.bf16_is_faster()
m = M.from_base(a.base)
m.load_state_dict(M.state_of(a.checkpoint))
dev = train.watched(train.select(common.read(a.data), train.STAGE[2])[1], a.watch, 7)
data = packed.Packed(dev, M.tokenizer(a.base), 192, "cpu", 0)
w = torch.tensor(0.0)
p = common.softmax(packed.score(m.eval(), data, range(len(dev)), w))[:, 0]
out = {}
for part in ("labels", "written", "contrast"):
    i = [k for k, r in enumerate(dev) if train.source(r) == part]
    outcomes = right([dev[k] for k in i], p[i])
    out[part] = {"right_side": round(float(np.mean([ok for _, ok in outcomes])), 3), "interval": interval(outcomes), "passages": len(outcomes)}
i = [k for k, r in enumerate(dev) if train.source(r) == "labels"]
many = np.repeat(i, [dev[k].get("stands_for", 1) for k in i])
y = np.array([dev[k]["label"] == "supports" for k in many]).astype(int)
out["auc"], out["f1"] = round(float(train.roc_auc_score(y, p[many])), 3), round(common.best_threshold(y, p[many])[1], 3)
print(json.dumps(out))
with open(a.out, "w") as file:
    json.dump(out, file)
