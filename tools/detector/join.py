"""Joins the cross-encoder with the carried encoder's cosine, fitted on the development split.

python join.py --onnx OUT/detector.onnx --encoder assets/minilm --json OUT/detector.json --data pairs.jsonl

Training for polarity wears off some of what the base encoder knows of the topic, and its cosine brings it back. The
joined logit is support·(z_supports − z_neither) + polarity·(z_supports − z_opposes) + cosine·cos + bias, with the int8
logits and the int8 encoder's cosine of `passage text, then title` and statement. It depends on the pair alone. Three forms
are fitted by logistic regression; the one with the least log loss over ten folds of development questions is written to the
JSON (`join`, `threshold`, `metrics.joined`). Nothing is tuned on the test split. `polarity` may not be negative: a passage
that opposes must not count for support.
"""
import argparse
import json
import os

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import GroupKFold

import common
import cosine
import export
import measures
import model as M

FORMS = {"support+cosine": [0, 2], "support+polarity+cosine": [0, 1, 2], "support+polarity": [0, 1]}


def features(onnx, encoder, rows, max_tokens):
    """What is joined: supports against neither, supports against opposes, the cosine."""
    z = export.predict_onnx(onnx, M.tokenizer(encoder), rows, max_tokens)
    return np.column_stack([z[:, 0] - z[:, 2], z[:, 0] - z[:, 1], cosine.of(encoder, rows)])


def probabilities(x, join):
    """P(supports) by the weights in a detector.json."""
    weights = np.array([join["support"], join["polarity"], join["cosine"]])
    return 1 / (1 + np.exp(-(x @ weights + join["bias"])))


def fitted(x, y):
    model = LogisticRegression(C=10.0, max_iter=2000).fit(x, y)
    return model.coef_[0], float(model.intercept_[0])


def chance(x, weights):
    return 1 / (1 + np.exp(-(x @ weights[0] + weights[1])))


def main():
    p = argparse.ArgumentParser()
    for name in ("--onnx", "--encoder", "--json", "--data"):
        p.add_argument(name, required=True)
    a = p.parse_args()
    card = json.load(open(a.json))
    split = {s: common.labels_rows(a.data, s) for s in ("dev", "test")}
    x = {s: features(a.onnx, a.encoder, r, card["max_tokens"]) for s, r in split.items()}
    y = {s: np.array([r["label"] == "supports" for r in r_]).astype(int) for s, r_ in split.items()}
    groups = [r["topic"] for r in split["dev"]]

    losses = {}
    for name, use in FORMS.items():
        p_dev, ok = np.zeros(len(groups)), True
        for train, held in GroupKFold(10).split(x["dev"], y["dev"], groups):
            weights = fitted(x["dev"][train][:, use], y["dev"][train])
            ok &= 1 not in use or weights[0][use.index(1)] >= 0
            p_dev[held] = chance(x["dev"][held][:, use], weights)
        losses[name] = log_loss(y["dev"], p_dev) if ok else float("inf")
        print(f"{name}: log loss {losses[name]:.4f}, AUC {measures.auc(y['dev'], p_dev):.4f} (dev, ten folds)")
    name = min(losses, key=losses.get)
    use = FORMS[name]
    weights = fitted(x["dev"][:, use], y["dev"])
    joined = {s: chance(x[s][:, use], weights) for s in x}
    threshold, _ = common.best_threshold(y["dev"], joined["dev"])
    coefficients = {["support", "polarity", "cosine"][i]: round(float(w), 4) for i, w in zip(use, weights[0])}
    card["join"] = {"support": 0.0, "polarity": 0.0, "cosine": 0.0, "bias": round(weights[1], 4)} | coefficients
    card["threshold"] = round(float(threshold), 4)
    cosine_threshold, _ = common.best_threshold(y["dev"], x["dev"][:, 2])
    card["metrics"] = {
        "joined": {s: measures.measure(split[s], joined[s], threshold) for s in x},
        "cosine_alone": {"test": measures.measure(split["test"], x["test"][:, 2], cosine_threshold)},
    }
    test, plain = card["metrics"]["joined"]["test"], card["metrics"]["cosine_alone"]["test"]
    # What the screen calls experimental: not better than plain cosine on a test split by topic, or too often on the wrong side.
    better = all(test[name] > plain[name] for name in ("auc", "f1", "right_side"))
    card["experimental"] = not (better and test["right_side"] >= 0.75)
    json.dump(card, open(a.json + ".new", "w"), indent=1)
    os.replace(a.json + ".new", a.json)
    print(name, card["join"], "threshold", card["threshold"], "experimental", card["experimental"])
    keys = ("pairs", "questions", "accuracy", "f1", "auc", "right_side", "ece", "interval")
    print("joined, test", {k: test[k] for k in keys})
    print("cosine, test", {k: plain[k] for k in keys})


if __name__ == "__main__":
    main()
