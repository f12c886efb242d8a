"""A pruned model's weights by least squares: what stays makes up for what went, before anything is trained.

python solve.py --base BASE --init BASE/start.pt --teacher-base MPNET --teacher STATE --data pairs.jsonl --out BASE/solved.pt [--shared 4]

A layer ends in norm(x + product(y)), twice. Layer by layer, each reading what the pruned layers before it say, the two products
(`o`, `down`) are moved so that the sum before the norm is the one in the teacher's layer: one ridge regression each, on the tokens of some
passages that train. The lowest --shared layers are whole, so they stay.
"""
import argparse

import numpy as np
import torch

import model as M
import prune


def inside(layer, x, context, part):
    """A layer step by step, of all tokens but the padding: what `o` reads, what stands before the first norm, what `down` reads, what stands
    before the second."""
    kept = {}
    seen = [layer.o.register_forward_pre_hook(lambda _, i: kept.update(y=i[0])), layer.down.register_forward_pre_hook(lambda _, i: kept.update(g=i[0])),
            layer.ln1.register_forward_pre_hook(lambda _, i: kept.update(p=i[0])), layer.ln2.register_forward_pre_hook(lambda _, i: kept.update(h=i[0]))]
    out = layer(x, *context)
    for s in seen:
        s.remove()
    return {k: v[part >= 0] for k, v in kept.items()}, out


def regress(features, missing, weight, product, ridge):
    """Moves the product's weights by what explains `missing`, every token weighing `weight`."""
    n, d = 0, features[0].shape[1] + 1
    gram, right = torch.zeros(d, d), torch.zeros(d, missing[0].shape[1])
    for f, m, w in zip(features, missing, weight):
        f = torch.cat([f.float(), torch.ones(len(f), 1)], 1)
        gram += (f * w[:, None]).T @ f
        right += (f * w[:, None]).T @ m
        n += len(f)
    # columns differ in size by orders of magnitude, so each has a ridge of its own
    own = gram.diagonal().clone()
    gram.diagonal().add_(ridge * own + 1e-4 * own.mean())
    move = torch.linalg.solve(gram.double(), right.double()).float()
    product.weight.data += move[:-1].T
    product.bias.data += move[-1]


def off(before, to):
    """How far a state before its norm is from the teacher's, as a share of its spread."""
    norm = lambda x: torch.nn.functional.layer_norm(x, x.shape[-1:])
    a, b = torch.cat([norm(x) for x in before]), torch.cat([norm(x) for x in to])
    return float((a - b).var() / b.var()), float((((a - b) / (b.std(0) + .1)) ** 2).mean())


@torch.no_grad()
def main():
    ap = argparse.ArgumentParser()
    for name in ("--base", "--init", "--teacher", "--teacher-base", "--data", "--out"):
        ap.add_argument(name, required=True)
    ap.add_argument("--shared", type=int, default=4)
    ap.add_argument("--texts", type=int, default=900)
    ap.add_argument("--ridge", type=float, default=.02)
    ap.add_argument("--threads", type=int, default=2)
    ap.add_argument("--seed", type=int, default=7)
    a = ap.parse_args()
    torch.set_num_threads(a.threads)
    tok, m = M.tokenizer(a.base), M.load(a.init, a.base)
    teacher = prune.teacher_of(a.teacher, a.teacher_base, tok)
    rows = prune.texts(a.data, tok, a.texts, a.seed)
    held = len(rows) // 10
    batches = [M.collate(x) for part in (rows[:held], rows[held:]) for s in [sorted(part, key=lambda r: len(r[0]))]
               for x in (s[i:i + 24] for i in range(0, len(s), 24))]
    held = -(-held // 24)       # the first batches are only looked at
    state, want, judged = [], {i: [] for i in range(a.shared, len(m.layers))}, []
    with torch.autocast("cpu", dtype=torch.bfloat16):
        for b in batches:
            x, context = m.begin(*b)
            for layer in m.layers[:a.shared]:
                x = layer(x, *context)
            state.append((x, context, b[2]))
            for i, layer in enumerate(teacher.layers):
                if i >= a.shared:
                    k, x = inside(layer, x, context, b[2])
                    want[i].append((k["p"].float(), k["h"].float()))
            judged.append(teacher.judge(x, *b[1:]).float())
    print(sum(int((part >= 0).sum()) for *_, part in state), "tokens read", flush=True)
    judged = torch.cat(judged[:held])

    def read(layer, part):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return [inside(layer, *each) for each in part]
    for n in want:
        layer, goal = m.layers[n], want[n]
        for name, feature, place in (("o", "y", "p"), ("down", "g", "h")):
            to = [g[0] if name == "o" else g[1] for g in goal]
            now = read(layer, state)
            was = off([k[place].float() for k, _ in now[:held]], to[:held])
            regress([k[feature] for k, _ in now[held:]], [t - k[place].float() for t, (k, _) in zip(to[held:], now[held:])],
                    [1 / t.var(-1) for t in to[held:]], getattr(layer, name), a.ridge)
            now = off([k[place].float() for k, _ in read(layer, state[:held])], to[:held])
            print(f"layer {n} {name}: off %.4f %.3f, now %.4f %.3f" % (*was, *now), flush=True)
        state = [(y, *rest) for (_, y), (_, *rest) in zip(read(layer, state), state)]
    with torch.autocast("cpu", dtype=torch.bfloat16):
        z = torch.cat([m.judge(x, *b[1:]).float() for (x, *_), b in zip(state[:held], batches)])
    side = lambda z: (z[:, 0] - z[:, 1]).numpy()
    some = lambda z: (z[:, :2].amax(1) - z[:, 2]).numpy()
    print("logits on texts kept aside: off %.3f, correlation of the side %.3f, of taking a side %.3f" % (
        (z - judged).abs().mean(), np.corrcoef(side(z), side(judged))[0, 1], np.corrcoef(some(z), some(judged))[0, 1]))
    torch.save({"model": m.state_dict()}, a.out)


if __name__ == "__main__":
    main()
