"""The cross-encoder: a BERT (MiniLM) or MPNet encoder written out plainly, with a three-class head.

Which of the two is said by `model_type` in the base folder's config.json. MPNet adds to every attention score a learned
number for the distance of the two tokens, counts positions from 2, and has no token types: it gets a type embedding
that starts at nothing, so that it too can separate the passage from the statement.
Only ordinary operations are used, so that the exported ONNX graph has nothing fused or custom in it.

A row holds a passage and one statement, or two: `<s> <s> passage </s></s> statement </s> statement </s>`. Each statement has an `<s>` of its own,
and both stand at the same positions, after the passage. In the lowest layers (`together`) a statement reads the passage and itself, not the other one, and
the passage reads both, with half the weight each. Then every statement gets a row of its own with a copy of the passage, for the others. So the
order of the two makes no difference, a statement beside itself is read as if it stood alone, and the passage, most of the tokens, goes through the lower
layers once. A row is three lists of numbers: the tokens, their positions, and to whom each belongs: 0 the passage, 1 and 2 the statements, -1 padding.

Classes: 0 supports, 1 opposes, 2 neither.
"""
import json
import math
import os
import random
import re

import torch
import torch.nn as nn
import torch.nn.functional as F
from safetensors.torch import load_file

from rows import encode, marks, row  # noqa: F401

CLASSES = ["supports", "opposes", "neither"]


class Linear(nn.Linear):
    """A product of which the graph computes the `wide` columns apart, in f32: what they read is far larger than the rest, so one scale for
    all would leave nothing of the others. `even` divides what the others read and multiplies their weights, so that all are of about one size
    (SmoothQuant)."""
    plain, wide, even = False, [], None

    def forward(self, x):
        if self.plain and (self.wide or self.even is not None):
            y = x * self.rest @ self.inner + self.bias
            return y + x.index_select(-1, torch.tensor(self.wide)) @ self.outer if self.wide else y
        return super().forward(x)

    def be_plain(self, on):
        """For the graph: the wide columns and the others as two products, with weights of their own."""
        self.plain = on
        self.rest = self.inner = self.outer = None
        if on and (self.wide or self.even is not None):
            kept = lambda x: nn.Parameter(x.contiguous(), requires_grad=False)
            even, w = torch.ones(self.in_features) if self.even is None else self.even, self.weight.detach()
            rest = 1 / even
            rest[self.wide] = 0
            self.rest, self.inner = kept(rest), kept((w * even * (rest > 0)).T)
            self.outer = kept(w[:, self.wide].T) if self.wide else None

    def evenness(self, read):
        """What every column is to be divided by; `read`: the largest that every column reads."""
        w = self.weight.detach().abs().amax(0)
        even = (read.clamp(min=1e-3 * read.max()) / w.clamp(min=1e-3 * w.max())).sqrt()
        others = torch.ones_like(even)
        others[self.wide] = 0
        return even / (even.log() * others).sum().div(others.sum()).exp()


def products(m):
    return {n: x for n, x in m.named_modules() if isinstance(x, Linear)}


@torch.no_grad()
def largest_read(m, tok, rows, texts=24, seed=7):
    """The largest number that every column of every product reads, on some of the passages."""
    top = {}

    def look(name):
        def see(_, x):
            top[name] = torch.maximum(top.get(name, torch.zeros(())), x[0].flatten(0, -2).abs().amax(0))
        return see
    seen = [x.register_forward_pre_hook(look(n)) for n, x in products(m).items()]
    rows = [r for r in rows if len(r["passage"]) < 600]
    for r in random.Random(seed).sample(rows, min(texts, len(rows))):
        m(*collate([encode(tok, r["passage"], [r["statement"]], 160)]))
    for x in seen:
        x.remove()
    return top


class Layer(nn.Module):
    """`heads` are the numbers of the attention heads that it has, out of `of`; `ff` its inner width."""

    def __init__(self, d, heads, of, ff, eps, dropout):
        super().__init__()
        self.heads, self.size = heads, d // of
        self.some = None if len(heads) == of else torch.tensor(heads)
        inner = len(heads) * self.size
        self.q, self.k, self.v, self.o = Linear(d, inner), Linear(d, inner), Linear(d, inner), Linear(inner, d)
        self.ln1, self.ln2 = nn.LayerNorm(d, eps), nn.LayerNorm(d, eps)
        self.up, self.down = Linear(d, ff), Linear(ff, d)
        self.drop = nn.Dropout(dropout)
        self.p = dropout

    def forward(self, x, bias, plain):
        b, l, _ = x.shape
        if self.some is not None and bias.shape[1] > 1:
            bias = bias.index_select(1, self.some.to(bias.device))
        q, k, v = (f(x).view(b, l, len(self.heads), self.size).transpose(1, 2) for f in (self.q, self.k, self.v))
        if plain:
            w = torch.softmax(q @ k.transpose(-1, -2) * (self.size ** -0.5) + bias, -1)
            y = w @ v
        elif x.device.type == "cpu":    # PyTorch's own attention takes twice the time here, most of it backwards
            q, k, v = (f.reshape(-1, l, self.size) for f in (q, k, v))
            bias = bias.to(q.dtype).expand(-1, len(self.heads), -1, -1).reshape(-1, l, l)
            w = torch.baddbmm(bias, q, k.transpose(1, 2), alpha=self.size ** -0.5)
            y = torch.bmm(torch.softmax(w, -1), v).view(b, -1, l, self.size)
        else:
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=bias.to(q.dtype))
        y = y.transpose(1, 2).reshape(b, l, len(self.heads) * self.size)
        x = self.ln1(x + self.drop(self.o(y)))
        return self.ln2(x + self.drop(self.down(F.gelu(self.up(x)))))


def distances(at, buckets):
    """For every pair of positions the bucket of their distance: near ones apart, far ones by logarithm, each side its own."""
    d = at[:, :, None] - at[:, None, :]
    half = buckets // 2
    exact = half // 2
    far = exact + (torch.log(d.abs().clamp(min=1).float() / exact) / math.log(128 / exact) * (half - exact)).long()
    return (d < 0).long() * half + torch.where(d.abs() < exact, d.abs(), far.clamp(max=half - 1))


def sight(part, dtype):
    """What is added to the scores of attention: no one sees the padding, no statement the other, and the passage sees several as one."""
    q, k = part[:, :, None], part[:, None, :]
    unseen = (k < 0) | ((q > 0) & (k > 0) & (q != k))
    several = part.amax(1).clamp(min=1).to(dtype)[:, None, None]
    return unseen.to(dtype) * -1e4 - ((q == 0) & (k > 0)).to(dtype) * torch.log(several)


class Encoder(nn.Module):
    """The part with the encoder's own weights; what is asked of it is a head on its hidden states."""

    def __init__(self, cfg, dropout=0.1):
        super().__init__()
        d, eps = cfg["hidden_size"], cfg["layer_norm_eps"]
        self.cfg = cfg
        self.word = nn.Embedding(cfg["vocab_size"], d)
        self.pos = nn.Embedding(cfg["max_position_embeddings"], d)
        mpnet = cfg["model_type"] == "mpnet"
        self.typ = nn.Embedding(2 if mpnet else cfg["type_vocab_size"], d)
        self.first = cfg["pad_token_id"] + 1 if mpnet else 0
        self.rel = nn.Embedding(cfg["relative_attention_num_buckets"], cfg["num_attention_heads"]) if mpnet else None
        self.ln = nn.LayerNorm(d, eps)
        self.drop = nn.Dropout(dropout)
        of = cfg["num_attention_heads"]
        # a pruned model says which heads and how many inner units each layer has (prune.py)
        shapes = cfg.get("pruned") or [{"heads": list(range(of)), "units": cfg["intermediate_size"]}] * cfg["num_hidden_layers"]
        self.layers = nn.ModuleList(Layer(d, x["heads"], of, x["units"], eps, dropout) for x in shapes)
        self.plain, self.frozen, self.together = False, 0, cfg.get("together", len(shapes) // 2)

    def freeze(self, layers):
        """The lowest layers and everything under them stay as they are, and no gradient is computed for them."""
        self.frozen = layers
        for part in [self.word, self.rel] + ([self.pos, self.typ, self.ln, *self.layers[:layers]] if layers else []):
            if part is not None:
                part.requires_grad_(False)

    def begin(self, input_ids, at, part):
        """What the first layer reads, and what every layer must know of the batch."""
        kind = ((part > 0) & (at > 0)).long()
        x = self.drop(self.ln(self.word(input_ids) + self.typ(kind) + self.pos(at + self.first)))
        if self.training and x.device.type == "cpu" and torch.is_autocast_enabled("cpu"):
            x = x.to(torch.get_autocast_dtype("cpu"))       # else every product casts it anew
        bias = self.bias(at, part, x.dtype)
        return x, (bias, self.plain)

    def bias(self, at, part, dtype):
        """What is added to the scores of attention: (row, head, token, token)."""
        bias = sight(part, dtype)[:, None]
        if self.rel is not None:
            bias = bias + self.rel(distances(at, self.rel.num_embeddings)).to(dtype).permute(0, 3, 1, 2)
        return bias.contiguous()

    def split(self, x, context, at, part):
        """A row for every statement, with a copy of the passage; of the others only padding is left."""
        _, plain = context
        if plain:       # one row in the graph
            slots = part.flatten()[(at.flatten() == 0).nonzero()[:, 0], None]
            part = torch.where(part == 0, 0, torch.where(part == slots, 1, -1))
            at = at.expand(slots.shape[0], -1)
            return x.expand(slots.shape[0], -1, -1), (self.bias(at, part, x.dtype), plain), at, part
        b, n = part.shape
        own = part[:, None] == torch.arange(1, 3, device=part.device)[:, None]
        keep = ((own | (part == 0)[:, None]) & own.any(-1, keepdim=True)).flatten(0, 1)
        of = torch.arange(b, device=part.device).repeat_interleave(2)[keep.any(1)]
        keep = keep[keep.any(1)]
        rows, width = len(keep), int(keep.sum(1).max())
        row, token = keep.nonzero(as_tuple=True)
        source, place = of[row] * n + token, row * width + keep.cumsum(1)[row, token] - 1
        at = at.new_zeros(rows * width).index_copy(0, place, at.flatten()[source]).view(rows, width)
        part = part.new_full((rows * width,), -1).index_copy(0, place, part.flatten()[source].clamp(max=1)).view(rows, width)
        x = x.new_zeros(rows * width, x.shape[-1]).index_copy(0, place, x.flatten(0, 1)[source]).view(rows, width, -1)
        return x, (self.bias(at, part, x.dtype), plain), at, part

    def hidden(self, input_ids, at, part):
        """The hidden states of every statement's row, and the positions and owners of its tokens."""
        learns = torch.is_grad_enabled()
        with torch.set_grad_enabled(learns and not self.frozen):
            x, context = self.begin(input_ids, at, part)
        for i, layer in enumerate(self.layers):
            with torch.set_grad_enabled(learns and i >= self.frozen):
                if i == self.together:
                    x, context, at, part = self.split(x, context, at, part)
                x = layer(x, *context)
        return x, at, part


class Detector(Encoder):
    def __init__(self, cfg, dropout=0.1):
        super().__init__(cfg, dropout)
        d = cfg["hidden_size"]
        self.pool = Linear(5 * d, d)
        self.head = Linear(d, 3)
        for name, wide in cfg.get("wide", {}).items():
            self.get_submodule(name).wide = wide

    def forward(self, input_ids, at, part):
        """(statement, class), the statements of the first row first."""
        return self.judge(*self.hidden(input_ids, at, part))

    def judge(self, x, at, part):
        # passage and statement pooled apart, and their product: the side is the sign of a product
        own, start = part == 1, (part == 1) & (at == 0)

        def mean(which):
            w = which.to(x.dtype)[:, None]
            return (w @ x / w.sum(-1, keepdim=True))[:, 0]
        with torch.autocast(x.device.type, enabled=False):
            x = x.float()
            u, v = mean((part == 0) | start), mean(own & ~start)
            h = torch.cat([mean(start), u, v, u * v, (u - v).abs()], -1)
        return self.head(self.drop(F.gelu(self.pool(h))))


def names_of(cfg):
    """The checkpoint's name of every part of the encoder."""
    e, mpnet = "embeddings.", cfg["model_type"] == "mpnet"
    names = {"word": e + "word_embeddings", "pos": e + "position_embeddings", "ln": e + "LayerNorm"}
    names |= {"rel": "encoder.relative_attention_bias"} if mpnet else {"typ": e + "token_type_embeddings"}
    for i in range(cfg["num_hidden_layers"]):
        p, a = f"layers.{i}.", f"encoder.layer.{i}."
        names |= {p + "up": a + "intermediate.dense", p + "down": a + "output.dense", p + "ln2": a + "output.LayerNorm"}
        if mpnet:
            names |= {p + x: a + "attention.attn." + x for x in "qkvo"} | {p + "ln1": a + "attention.LayerNorm"}
        else:
            names |= {p + x[0]: a + "attention.self." + x for x in ("query", "key", "value")}
            names |= {p + "o": a + "attention.output.dense", p + "ln1": a + "attention.output.LayerNorm"}
    return names


def from_base(folder, dropout=0.1, seed=0, kind=Detector):
    """A model with the encoder's weights from a BERT or MPNet folder (config.json, model.safetensors) and a new head."""
    torch.manual_seed(seed)
    cfg = json.load(open(os.path.join(folder, "config.json")))
    m = kind(cfg, dropout)
    w = load_file(os.path.join(folder, "model.safetensors"))
    w = {k.split(".", 1)[1] if k.startswith(("bert.", "mpnet.")) else k: v.float() for k, v in w.items()}
    names = names_of(cfg)
    if "typ" not in names:
        nn.init.zeros_(m.typ.weight)
    own = m.state_dict()
    for k in own:
        base, part = k.rsplit(".", 1)
        if base in names:
            own[k] = w[names[base] + "." + part]
    m.load_state_dict(own)
    return m


def product_of(node):
    """The name of the product that a node of a quantised graph computes."""
    return re.sub("/(Gemm_)?MatMul_quant$", "", node.name).strip("/").replace("/", ".")


def of_graph(path):
    """The weights of the layers in an exported graph (export.py), so that training can go on from the model that is carried. Words,
    positions, types and distances are not among them: they are frozen with the lowest layers."""
    import onnx
    graph = onnx.load(path).graph
    known = {x.name: torch.tensor(onnx.numpy_helper.to_array(x)) for x in graph.initializer}
    w = {k: v for k, v in known.items() if k.endswith((".bias", ".weight")) and k not in ("pos.weight", "typ.weight", "rel.weight")}
    for n in graph.node:
        if n.op_type == "MatMulInteger":
            stem, name = n.input[1].removesuffix("_quantized"), product_of(n)
            w[name + ".weight"] = (known[stem + "_quantized"].float() * known[stem + "_scale"]).T.contiguous()
            # a graph of 2026-11-27 divides what q, k and v read once for all three
            rest = known.get((name[:-1] + "q" if name.endswith((".k", ".v")) else name) + ".rest")
            if rest is not None:
                w[name + ".weight"] *= rest
            if name + ".outer" in known:
                wide = (w[name + ".weight"] == 0).all(0)     # they are a product of their own
                w[name + ".weight"][:, wide] = known[name + ".outer"].T
    return w


def state_of(path):
    """The weights in a checkpoint (.pt), in an exported graph (.onnx), or in a kept state (.safetensors, or a folder of its parts): int8
    (`NAME.q` times `NAME.s`) and f16; frozen parts may be missing."""
    if path.endswith(".onnx"):
        return of_graph(path)
    if path.endswith(".pt"):
        s = torch.load(path, map_location="cpu", weights_only=False)
        return s["model"] if "model" in s else s
    files = sorted(os.path.join(path, x) for x in os.listdir(path) if x.endswith(".safetensors")) if os.path.isdir(path) else [path]
    w = {k: v for f in files for k, v in load_file(f).items()}

    def larger(q, s):
        s = s.float().view(len(q), -1)      # a scale for every row, or for every run of weights in it
        return (q.float().view(len(q), s.shape[1], -1) * s[..., None]).view(q.shape)
    return {k.removesuffix(".q"): larger(v, w[k[:-2] + ".s"]) if k.endswith(".q") else v.float() for k, v in w.items() if not k.endswith(".s")}


def load(path, base, kind=Detector):
    m = from_base(base, 0.0, kind=kind)
    m.load_state_dict(m.state_dict() | state_of(path))
    return m.eval()


def tokenizer(base):
    from tokenizers import Tokenizer
    t = Tokenizer.from_file(os.path.join(base, "tokenizer.json"))
    t.no_truncation()
    t.no_padding()
    return t


def collate(rows):
    n = max(len(ids) for ids, _, _ in rows)
    padded = [[x + [fill] * (n - len(x)) for x in column] for column, fill in zip(zip(*rows), (0, 0, -1))]
    return tuple(torch.tensor(x) for x in padded)
