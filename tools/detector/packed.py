"""Pairs as tokens in one flat array on the device, and batches drawn from it by row number.

A GPU takes thousands of pairs a second: with lists of tokens in Python it would wait for them. Every text is tokenised
once, a batch is one gather, and only row numbers travel to the device.
"""
import random
from array import array

import numpy as np
import torch

import common
import model as M


class Packed:
    def __init__(self, rows, tok, max_tokens, device="cpu"):
        marks, known = M.marks(tok), {}
        texts = list({r[k] for r in rows for k in ("passage", "statement")})
        for i in range(0, len(texts), 4096):
            part = texts[i:i + 4096]
            known.update((t, e.ids) for t, e in zip(part, tok.encode_batch(part, add_special_tokens=False)))
        flat, n, cut = array("i"), [], []
        for r in rows:
            ids, c = M.pair(known[r["passage"]], known[r["statement"]], marks, max_tokens)
            flat.extend(ids)
            n.append(len(ids))
            cut.append(c)
        self.n = np.array(n, dtype=np.int64)
        self.label = np.array([common.CLASSES.index(r["label"]) if r["label"] else -1 for r in rows])
        start = np.concatenate([[0], np.cumsum(self.n)[:-1]])
        put = lambda x: torch.as_tensor(x).to(device)
        self.device, self.flat = device, put(np.array(flat, dtype=np.int32))
        self.start, self.length, self.cut = put(start), put(self.n), put(np.array(cut))
        self.y = put(self.label)
        self.weight = put(np.array([r["weight"] for r in rows], dtype=np.float32))
        # the cosine about its middle; nothing where it is not known
        self.cos = put(np.array([r["cos"] - 0.5 if "cos" in r else 0.0 for r in rows], dtype=np.float32))
        self.step = 8 if device != "cpu" else 1     # widths that suit the GPU's kernels

    def rows(self, idx):
        """Row numbers, token ids, mask and types of a batch, on the device."""
        width = -(-int(self.n[idx].max()) // self.step) * self.step
        i = torch.as_tensor(np.asarray(idx)).to(self.device)
        at = torch.arange(width, device=self.device)
        mask = (at < self.length[i][:, None]).long()
        ids = self.flat[(self.start[i][:, None] + at).clamp(max=len(self.flat) - 1)].long() * mask
        return i, ids, mask, (at >= self.cut[i][:, None]).long() * mask


def groups_of(rows, src):
    """Per source its groups: the row numbers that go into one batch, and whether the passage is silent on both statements."""
    by, groups = {}, {}
    for i, r in enumerate(rows):
        by.setdefault(r["group"], []).append(i)
    for g in by.values():
        groups.setdefault(src(rows[g[0]]), []).append((tuple(g), rows[g[0]].get("two") == "-"))
    return groups


def stream(groups, shares, seed):
    """Groups without end, with a factor on their weight: every source shuffled, gone through, shuffled again."""
    rng = random.Random(seed)
    names = [s for s in shares if groups.get(s)]
    w = [shares[s] for s in names]
    bag = {s: [] for s in names}
    while True:
        for s in rng.choices(names, w, k=1000):
            if not bag[s]:
                bag[s] = list(range(len(groups[s])))
                rng.shuffle(bag[s])
            g, silent = groups[s][bag[s].pop()]
            # silent for both: one of the two is enough, and counts double
            yield ((rng.choice(g),), 2.0) if silent else (g, 1.0)


def batches(it, n, seed, tokens, most, mega=40):
    """Groups of about the same length, `tokens` with the padding; `n` is the length of every row."""
    rng = random.Random(seed + 1)
    while True:
        pool, total = [], 0
        while total < mega * tokens:
            g, factor = next(it)
            wid = max(n[i] for i in g)
            pool.append((wid + rng.random() * 6, wid, g, factor))
            total += wid * len(g)
        pool.sort(key=lambda x: x[0])
        out, cur, width, k = [], [], 0, 0
        for _, wid, g, factor in pool:
            if cur and ((k + len(g)) * max(width, wid) > tokens * 1.05 or k + len(g) > most):
                out.append(cur)
                cur, width, k = [], 0, 0
            cur.append((g, factor))
            width, k = max(width, wid), k + len(g)
        out.append(cur)
        rng.shuffle(out)
        yield from out


@torch.no_grad()
def score(m, data, idx, w=None, tokens=4800):
    """Logits of rows, joined with the cosine where `w` is given; in the order of `idx`."""
    kind = torch.device(data.device).type
    was = m.training
    m.eval()
    idx = np.asarray(idx)
    order = np.argsort(-data.n[idx], kind="stable")
    z, at = np.zeros((len(idx), 3), dtype=np.float32), 0
    while at < len(order):
        k = order[at:at + max(1, tokens // int(data.n[idx[order[at]]]))]
        i, *x = data.rows(idx[k])
        with torch.autocast(kind, dtype=torch.bfloat16):
            y = m(*x).float()
        z[k] = (y if w is None else joined(y, data.cos[i], w)).cpu().numpy()
        at += len(k)
    m.train(was)
    return z


def joined(z, cos, w):
    """The logits with the cosine: both sides are likelier where passage and statement are near."""
    return torch.cat([z[:, :2] + (w * cos)[:, None], z[:, 2:]], 1)
