"""ONNX export, int8 quantisation, check against f32.

python export.py --base BASE --checkpoint CKPT --data pairs.jsonl --out OUT [--limit N] [--name NAME]
Writes OUT/detector.onnx (int8), OUT/detector.json, OUT/tokenizer.json, each beside and then renamed.
"""
import argparse
import hashlib
import json
import os
import shutil

import numpy as np
import torch

import common
import gptq
import model as M
from exact import session
from rows import INPUTS


def predict_onnx(path, tok, rows, max_tokens, workers=2, apart=False):
    """Logits of pairs, one unpadded row an inference (dynamic int8 takes its scale over the whole batch): two neighbours of one passage are read
    together unless `apart`."""
    from concurrent.futures import ThreadPoolExecutor
    s, together = session(path), []
    for r in rows:
        if together and not apart and len(together[-1]) == 1 and all(together[-1][0].get(k) == r.get(k) for k in ("group", "passage")):
            together[-1].append(r)
        else:
            together.append([r])

    def one(g):
        row = M.encode(tok, g[0]["passage"], [r["statement"] for r in g], max_tokens)
        return s.run(None, {k: np.array([x], dtype=np.int64) for k, x in zip(INPUTS, row)})[0]
    with ThreadPoolExecutor(workers) as ex:
        return np.concatenate(list(ex.map(one, together)))


def to_onnx(m, path):
    """Of a model that is plain (`set_plain`)."""
    args = M.collate([M.row(torch.randint(1000, 2000, (16,)).tolist(), [[1000] * 8, [1100] * 5], ([0], [2, 2], [2]), 64)])
    torch.onnx.export(m, args, path, input_names=INPUTS, output_names=["logits"], opset_version=17,
                      dynamic_axes={k: {1: "tokens"} for k in INPUTS} | {"logits": {0: "statements"}},
                      dynamo=False)


@torch.no_grad()
def be_even(m, tok, rows):
    """The columns that `o` and `up` read, of about one size, by some passages that train. It costs the graph next to nothing: `v` writes what
    `o` reads, and where `up` has wide columns what it reads is multiplied anyway, to leave them out. For q, k and v and for `down` it is not worth a product of its own."""
    top = M.largest_read(m, tok, rows)
    for i, layer in enumerate(m.layers):
        layer.up.even = layer.up.evenness(top[f"layers.{i}.up"])
        even = layer.o.evenness(top[f"layers.{i}.o"])
        layer.v.weight /= even[:, None]
        layer.v.bias /= even
        layer.o.weight *= even


def set_plain(m, on):
    """Whether the model computes as its graph does, one row at a time."""
    m.plain = on
    for x in M.products(m).values():
        x.be_plain(on)


def quantise(src, dst):
    from onnxruntime.quantization import QuantType, quantize_dynamic
    from onnxruntime.quantization.shape_inference import quant_pre_process
    pre = src + ".pre"
    quant_pre_process(src, pre, skip_symbolic_shape=True, skip_optimization=True)
    import onnx
    g = onnx.load(pre).graph
    shape = {x.name: x.dims for x in g.initializer}
    # the few wide columns (model.py, `Linear`) and the small tables of positions, types and distances stay in f32
    exact = [n.name for n in g.node if n.op_type == "MatMul" and n.input[1] in shape and shape[n.input[1]][0] < 64
             or n.op_type == "Gather" and n.input[0] in shape and shape[n.input[0]][0] < 1024]
    # weights of 7 bits are multiplied exactly by every processor, on many in half the time
    quantize_dynamic(pre, dst, per_channel=True, weight_type=QuantType.QInt8, nodes_to_exclude=exact,
                     op_types_to_quantize=["MatMul", "Gather"], reduce_range=True)
    os.remove(pre)


def round_well(path, m, grams):
    """The weights of a quantised graph rounded anew (gptq.py), on the scales that they have."""
    import onnx
    graph = onnx.load(path)
    known = {x.name: x for x in graph.graph.initializer}
    for n in graph.graph.node:
        name = M.product_of(n)
        if n.op_type == "MatMulInteger" and name in grams:
            product, stem = m.get_submodule(name), n.input[1].removesuffix("_quantized")
            w = product.weight.detach() if product.inner is None else product.inner.T
            scale = torch.tensor(onnx.numpy_helper.to_array(known[stem + "_scale"]))
            q = gptq.rounded(w, grams[name], scale, 64).T.to(torch.int8).contiguous().numpy()
            assert q.shape == tuple(known[n.input[1]].dims), name
            known[n.input[1]].CopyFrom(onnx.numpy_helper.from_array(q, n.input[1]))
    onnx.save(graph, path)


def main():
    a = argparse.ArgumentParser()
    a.add_argument("--base", required=True)
    a.add_argument("--checkpoint")
    a.add_argument("--data", required=False)
    a.add_argument("--out", required=True)
    a.add_argument("--name", default="parallax-mpnet")
    a.add_argument("--max-tokens", type=int, default=256)
    a.add_argument("--limit", type=int, default=0, help="at most so many development pairs")
    a = a.parse_args()
    os.makedirs(a.out, exist_ok=True)
    m = M.load(a.checkpoint, a.base) if a.checkpoint else M.from_base(a.base).eval()
    tok = M.tokenizer(a.base)
    train = common.labels_rows(a.data, "train") if a.data else []
    if a.data:
        be_even(m, tok, train)
    # no text is longer, so no position further is carried
    m.pos = torch.nn.Embedding.from_pretrained(m.pos.weight.detach()[:m.first + a.max_tokens])
    f32, i8 = os.path.join(a.out, "f32.onnx.new"), os.path.join(a.out, "detector.onnx.new")
    set_plain(m, True)
    to_onnx(m, f32)
    quantise(f32, i8)
    if a.data:
        round_well(i8, m, gptq.grams(m, tok, train))
    out = {"name": a.name, "classes": M.CLASSES, "max_tokens": a.max_tokens,
           "input": "<s> <s> passage text, then title </s></s> statement </s> other statement </s>"}
    import onnx
    g = onnx.load(i8)
    ops = sorted({n.op_type for n in g.graph.node})
    print("ops", ops, "MB", os.path.getsize(i8) / 1e6)
    if a.data:
        rows = common.labels_rows(a.data, "dev")
        rows = rows[:a.limit] if a.limit else rows
        l8, l32 = (predict_onnx(x, tok, rows, a.max_tokens) for x in (i8, f32))
        out["int8_vs_f32"] = {"pairs": len(rows), "mean_abs_dlogit": round(float(np.abs(l8 - l32).mean()), 4),
                              "correlation_of_the_side": round(float(np.corrcoef(*(z[:, 0] - z[:, 1] for z in (l8, l32)))[0, 1]), 4),
                              "same_class": round(float((l8.argmax(1) == l32.argmax(1)).mean()), 4)}
    out["sha256"] = hashlib.sha256(open(i8, "rb").read()).hexdigest()
    json.dump(out, open(os.path.join(a.out, "detector.json.new"), "w"), indent=1)
    shutil.copy(os.path.join(a.base, "tokenizer.json"), os.path.join(a.out, "tokenizer.json.new"))
    for f in ("detector.onnx", "detector.json", "tokenizer.json"):
        os.replace(os.path.join(a.out, f + ".new"), os.path.join(a.out, f))
    os.replace(f32, os.path.join(a.out, "f32.onnx"))
    print(json.dumps(out, indent=1))


if __name__ == "__main__":
    main()
