"""ONNX export, int8 quantisation, the temperature, and how far int8 is from f32, on the development questions.

python export.py --base BASE --checkpoint RUN2/best.pt --data OUT/rows.jsonl --out FOLDER
Writes FOLDER/reader.onnx (int8) and FOLDER/reader.json, each beside and then renamed; the tokenizer is the carried encoder's.
"""
import argparse
import hashlib
import json
import os

import numpy as np
import torch

import spans as R
import text as T
import train

detector = R.detectors("export")


def to_onnx(m, path):
    m = m.float().eval()
    m.plain = True
    ids = torch.randint(1000, 2000, (1, 24))
    names = ["input_ids", "attention_mask", "token_type_ids"]
    torch.onnx.export(m, (ids, torch.ones_like(ids), torch.zeros_like(ids)), path, input_names=names, output_names=["spans"],
                      opset_version=17, dynamic_axes={k: {0: "batch", 1: "tokens"} for k in names + ["spans"]}, dynamo=False)
    m.plain = False


def predicted(session, e):
    ids = np.array([e.ids], dtype=np.int64)
    z = session.run(None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.array([e.types], dtype=np.int64)})
    return torch.tensor(z[0])


def looked(path, tok, dev, a):
    """Spans' logits of every development question with its gold passage and one silent passage."""
    s = detector.session(path)
    out = []
    for r in dev:
        for title, text in [(r["title"], r["text"])] + r["silent"][:1]:
            c = R.context(title, text)
            e = R.Encoded(tok, r["question"], c, a.max_tokens, a.question_tokens)
            places = T.places(e.offsets, e.begins, e.ends, c, r["answers"], train.LONGEST) if text == r["text"] else []
            at = [(i + e.first) * train.LONGEST + j - i for i, j in places]
            out.append((train.span_logits(predicted(s, e), [e])[0], e, c, at, r, text == r["text"]))
    return out


def em(seen):
    hits = []
    for z, e, c, _, r, gold in seen:
        if gold:
            t = train.texts(z, e, c)
            hits.append(T.exact(max(t, key=lambda k: (t[k][0], k), default=""), r["answers"]))
    return float(np.mean(hits))


def temperature(seen):
    """The temperature under which what is so has the greatest probability."""
    def loss(t):
        total = 0.0
        for z, _, _, at, _, gold in seen:
            s = torch.cat([z.flatten() / t, torch.zeros(1)])
            if gold and not at:
                continue
            total += float(torch.logsumexp(s, 0) - (torch.logsumexp(s[at], 0) if at else 0))
        return total
    return min(np.exp(np.linspace(np.log(.5), np.log(4), 50)), key=loss)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--base", required=True)
    ap.add_argument("--checkpoint", required=True)
    ap.add_argument("--data", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--name", default="parallax-reader-l6")
    ap.add_argument("--max-tokens", type=int, default=256)
    ap.add_argument("--question-tokens", type=int, default=48)
    a = ap.parse_args()
    os.makedirs(a.out, exist_ok=True)
    f32, int8 = os.path.join(a.out, "f32.onnx"), os.path.join(a.out, "reader.onnx.new")
    to_onnx(R.load(a.checkpoint, a.base), f32)
    detector.quantise(f32, int8)
    tok = R.M.tokenizer(a.base)
    with open(a.data, encoding="utf-8") as f:
        dev = [r for r in map(json.loads, f) if r["split"] == "dev"]
    full, small = looked(f32, tok, dev, a), looked(int8, tok, dev, a)
    os.remove(f32)
    with open(int8, "rb") as f:
        sha = hashlib.sha256(f.read()).hexdigest()
    card = {"name": a.name, "max_tokens": a.max_tokens, "question_tokens": a.question_tokens, "answer_tokens": train.LONGEST,
            "temperature": round(float(temperature(small)), 3), "sha256": sha,
            "input": "[CLS] question [SEP] title. text [SEP]", "output": "spans: start and end logit of every token; token 0 is no answer",
            "development": {"questions": len(dev), "exact_match_int8": em(small), "exact_match_f32": em(full)}}
    with open(os.path.join(a.out, "reader.json.new"), "w", encoding="utf-8") as f:
        json.dump(card, f, indent=1)
        f.write("\n")
    for name in ("reader.onnx", "reader.json"):
        os.replace(os.path.join(a.out, name + ".new"), os.path.join(a.out, name))
    print(json.dumps(card, indent=1), os.path.getsize(os.path.join(a.out, "reader.onnx")) / 1e6, "MB")


if __name__ == "__main__":
    main()
