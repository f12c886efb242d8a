"""A small model learns from a teacher, which judges every batch as it comes.

python distil.py --base BASE --init BASE/start.pt --teacher-base MPNET --teacher STATE --data pairs.jsonl --crossings crossings.jsonl.gz
                 --out RUN --minutes 60 --layers 0,1,2,3,5,8,10,11 --shared 4 [--round .6]

BASE is student.py's, with the same --layers. The lowest --shared layers are the teacher's and do not train: they are computed once for
both. The student learns what the teacher says (--temperature, --soft: its share in the loss), its hidden states after each layer of
--layers (--near), the labels where there are any, and the tie of a statement to its opposite. The teacher reads the student's own word
pieces. With --window 2 windows are pairs of their own, which only the teacher labels. The student counts as the
exported int8 model will (model.py, `Linear`): values from the start, weights too from --round, a share of the time; 1 leaves out both.
"""
import argparse
import copy
import os
import random

import torch

import common
import model as M
import packed
import train as T
import windows

SHARES = {"windows": .26, "cross": .16, "labels": .24, "written": .09, "contrast": .08, "written-other": .02, "rfd": .02, "arguana": .015,
          "debate": .015, "argq-long": .01} | {s: .09 * x for s, x in T.STAGE[1].items() if s not in ("rfd", "arguana", "debate", "argq-long")}


def pieces(rows, size):
    """Every row whole and in windows. A window has no label: only the passage has one, and the teacher says what the window is."""
    out = []
    for r in rows:
        w = windows.windows(r["passage"], size, size) if size else [r["passage"]]
        out.append(r)
        if len(w) > 1:
            out += [dict(r, passage=x, label=None, two=None, source="windows", group=f"{r['group']}.{i}") for i, x in enumerate(w)]
    return out


def teacher_of(path, base, tok):
    """The teacher, with the words of the student's tokenizer only."""
    m, own = M.load(path, base), M.tokenizer(base)
    kept = [own.token_to_id(w) for w, _ in sorted(tok.get_vocab().items(), key=lambda x: x[1])]
    m.word = torch.nn.Embedding.from_pretrained(m.word.weight.detach()[kept])
    return m.requires_grad_(False)


def some(rows, most, seed):
    """At most so many groups of a source, drawn at random: a short run need not read everything."""
    by, rng = {}, random.Random(seed)
    for r in rows:
        by.setdefault(T.source(r), {}).setdefault(r["group"], []).append(r)
    return [r for x in by.values() for g in (rng.sample(sorted(x), most) if most and len(x) > most else x) for r in x[g]]


class Teaching:
    def __init__(self, teacher, student, a):
        """What does not train is kept in the format of the products."""
        self.layers, self.shared, self.near, self.sums = [int(x) for x in a.layers.split(",")], a.shared, a.near, []
        self.first = copy.deepcopy(student).requires_grad_(False)
        self.round, self.student, self.all = a.round, student, False
        if a.round < 1:
            M.count_in_int8(student, "values")
            for x in M.count_in_int8(self.first, "values").modules():
                if isinstance(x, M.Linear):
                    x.weight.data = M.Rows8.apply(x.weight.data, x.wide)
        kind = torch.bfloat16 if packed.BF16 else torch.float32
        self.first, self.teacher = self.first.to(kind), teacher.to(kind)

    @torch.no_grad()
    def judged(self, tokens):
        """What the first layer that trains reads; the teacher's states and its logits."""
        x, (bias, *told) = self.first.begin(*tokens)
        told = (bias.to(x.dtype), *told)
        for layer in self.first.layers[:self.shared]:
            x = layer(x, *told)
        y, states = x, {}
        for i, layer in enumerate(self.teacher.layers):
            if i >= self.shared:
                states[i] = y = layer(y, *told)
        return x, told, states, self.teacher.judge(self.teacher.end(y, told), *tokens[1:]).float()

    def begin(self, done):
        if done >= self.round and not self.all:
            M.count_in_int8(self.student, "all")
            self.all = True

    def __call__(self, m, data, rows):
        tokens = data.tokens([data.reading(r)[0] for r in rows])
        x, told, states, soft = self.judged(tokens)
        far = []
        with torch.autocast(torch.device(data.device).type, dtype=torch.bfloat16, enabled=packed.BF16):
            for i in range(self.shared, len(m.layers)):
                x = m.layers[i](x, *told)
                # every second token; every number of a state counts alike, however large it is
                to, here = states[self.layers[i]][::2].float(), x[::2].float()
                spread = to.std(0)
                far.append((((here - to) / (spread + .3 * spread.mean())) ** 2).mean())
            z = m.judge(m.end(x, told), *tokens[1:]).float()
        far = torch.stack(far)
        self.sums.append(torch.cat([(z - soft).detach().abs().mean()[None], far.detach()]))
        return z, soft, self.near * far.mean()

    def said(self):
        """How far the logits, and the states after each layer, have been from the teacher's."""
        x, self.sums = torch.stack(self.sums).mean(0).tolist(), []
        return "far " + " ".join(f"{v:.3f}" for v in x)


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--teacher", required=True)
    ap.add_argument("--teacher-base", required=True)
    ap.add_argument("--crossings")
    ap.add_argument("--init", required=True, help="a checkpoint of the student to start from")
    ap.add_argument("--layers", required=True, help="which layer of the teacher each of the student's is, from 0")
    ap.add_argument("--shared", type=int, default=4)
    ap.add_argument("--near", type=float, default=1.0, help="how much the hidden states weigh")
    ap.add_argument("--round", type=float, default=.6, help="from when the weights are rounded, too; 1: neither they nor values are")
    ap.add_argument("--each", type=int, default=0, help="at most so many groups of a source")
    ap.add_argument("--temperature", type=float, default=1.5)
    ap.add_argument("--soft", type=float, default=0.8)
    T.options(ap)
    a = T.start(ap)
    a.freeze = a.shared
    rows, dev = T.select(common.read(a.data) + (common.read(a.crossings) if a.crossings else []), SHARES)
    rows, dev = T.trial(rows, dev, a.limit)
    rows, dev = pieces(some(rows, a.each, a.seed), a.window), T.watched(dev, a.watch, a.seed)
    tok = M.tokenizer(a.base)
    m = M.load(a.init, a.base)
    teacher = teacher_of(a.teacher, a.teacher_base, tok).to(a.device)
    dev_data = packed.Packed(dev, tok, a.max_tokens, a.device)
    groups = packed.groups_of(rows, T.source)
    T.fit(m, packed.Packed(rows, tok, a.max_tokens, a.device), groups, SHARES, dev, dev_data, a, a.out, a.lr or 1e-4,
          sum(map(len, groups.values())), Teaching(teacher, m, a))


if __name__ == "__main__":
    main()
