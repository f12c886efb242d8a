"""Carries weights and pairs to a machine without a network, in parts, and a trained model back.

python pack.py weights --base BASE --out FOLDER [--bits 16|8] [--part-mib 53]   a base encoder as FOLDER/weights.001 ...
python pack.py unpack  --from FOLDER --out BASE                                 and back: config, tokenizer, f32 weights
python pack.py pairs   --data pairs.jsonl --out pairs.jsonl.gz                  read as it is by every step
python pack.py trained --checkpoint best.pt --base BASE --out FOLDER            a trained model in f16, without the base's words
python pack.py restore --from FOLDER --base BASE --out best.pt
python pack.py state   --checkpoint last.pt --out FOLDER [--base RUN/base]      what trains, in int8, as train.py --init reads it
python pack.py base    --from FOLDER --base BASE --out RUN/base                 a pruned base from a kept state and the words of the whole one
python pack.py mean    --checkpoint last.pt --other best.pt --out mean.pt       the mean of two checkpoints; the other may be a kept state
python pack.py split   --file FILE --out FOLDER                                 any file in parts; `cat FILE.0*` joins them

--bits 8 keeps every row of a matrix in 8 bits with a scale of its own: half the size, and a starting point that training moves
away from anyway.
"""
import argparse
import glob
import gzip
import hashlib
import json
import os
import shutil

import torch
from safetensors.torch import load, load_file, save, save_file

import model as M

SCALE = "::scale"


def smaller(w, bits):
    out = {}
    for k, v in w.items():
        if bits == 8 and v.dim() == 2 and v.numel() > 1 << 16:
            scale = v.abs().amax(1, keepdim=True).clamp(min=1e-8) / 127
            out[k], out[k + SCALE] = (v / scale).round().to(torch.int8), scale.float()
        else:
            out[k] = v.half()
    return {k: v.contiguous() for k, v in out.items()}


def larger(w):
    return {k: (v.float() * w[k + SCALE] if k + SCALE in w else v.float()).contiguous()
            for k, v in w.items() if not k.endswith(SCALE)}


def split(data, folder, name, mib):
    """Parts of a size, and the sum that says whether all came through."""
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, name + ".*")):
        os.remove(old)
    size = int(mib * (1 << 20))
    for n, i in enumerate(range(0, len(data), size), 1):
        with open(os.path.join(folder, f"{name}.{n:03d}"), "wb") as f:
            f.write(data[i:i + size])
        print(os.path.join(folder, f"{name}.{n:03d}"), len(data[i:i + size]))
    with open(os.path.join(folder, name + ".sha256"), "w") as f:
        f.write(hashlib.sha256(data).hexdigest() + "\n")


def state(w, folder, mib):
    """`NAME.q` (int8) times `NAME.s` is the matrix NAME, with one f16 scale for every 64 weights of a row: a few columns of MPNet are
    far larger than the rest, and one scale for a whole row costs fifteen times the error. The rest is f16; the words are the base's own."""
    os.makedirs(folder, exist_ok=True)
    for old in glob.glob(os.path.join(folder, "*.safetensors")):
        os.remove(old)
    part, size, n = {}, 0, 0
    for k in sorted(w):
        if k in ("word.weight", "rel.weight"):
            continue
        v, new = w[k].float(), {}
        if v.dim() == 2 and v.numel() > 1 << 14:
            x = v.view(len(v), -1, 64 if v.shape[1] % 64 == 0 else v.shape[1])
            scale = (x.abs().amax(-1).clamp(min=1e-3) / 127).half()
            new = {k + ".q": (x / scale.float()[..., None]).round().clamp(-127, 127).to(torch.int8).view(v.shape), k + ".s": scale}
        else:
            new = {k: v.half()}
        bytes_ = sum(x.numel() * x.element_size() for x in new.values())
        if part and size + bytes_ > mib * (1 << 20):
            n, part, size = n + 1, keep(part, folder, n), 0
        part |= {a: b.contiguous() for a, b in new.items()}
        size += bytes_
    keep(part, folder, n)


def keep(part, folder, n):
    path = os.path.join(folder, f"state-{n + 1}.safetensors")
    save_file(part, path)
    print(path, os.path.getsize(path))
    return {}


def base(folder, whole, out):
    """The pruned base that a kept state belongs to: its config and tokenizer lie beside the state, its words are those of the whole base."""
    os.makedirs(out, exist_ok=True)
    for f in ("config.json", "tokenizer.json"):
        shutil.copy(os.path.join(folder, f), os.path.join(out, f))
    cfg, every = json.load(open(os.path.join(out, "config.json"))), M.from_base(whole)
    new, old = M.tokenizer(out), M.tokenizer(whole)
    kept = [old.token_to_id(w) for w, _ in sorted(new.get_vocab().items(), key=lambda x: x[1])]
    w = M.state_of(folder) | {"word.weight": every.word.weight.detach()[kept], "rel.weight": every.rel.weight.detach()}
    names = M.names_of(cfg)
    own = {names[k.rsplit(".", 1)[0]] + "." + k.rsplit(".", 1)[1]: v.contiguous() for k, v in w.items() if k.rsplit(".", 1)[0] in names}
    save_file(own, os.path.join(out, "model.safetensors.new"))
    os.replace(os.path.join(out, "model.safetensors.new"), os.path.join(out, "model.safetensors"))


def join(folder, name):
    data = b"".join(open(p, "rb").read() for p in sorted(glob.glob(os.path.join(folder, name + ".[0-9]*"))))
    if hashlib.sha256(data).hexdigest() != open(os.path.join(folder, name + ".sha256")).read().strip():
        raise SystemExit(f"{folder}: the parts of {name} do not add up; is one missing?")
    return data


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("what", choices=["weights", "unpack", "pairs", "trained", "restore", "state", "base", "mean", "split"])
    for name in ("--base", "--data", "--checkpoint", "--other", "--file", "--out"):
        ap.add_argument(name)
    ap.add_argument("--from", dest="source")
    ap.add_argument("--bits", type=int, default=16, choices=[8, 16])
    ap.add_argument("--part-mib", type=float, default=53)
    a = ap.parse_args()
    if a.what == "weights":
        w = load_file(os.path.join(a.base, "model.safetensors"))
        w = {k: v for k, v in w.items() if v.is_floating_point() and "pooler" not in k}
        split(save(smaller(w, a.bits)), a.out, "weights", a.part_mib)
        for f in ("config.json", "tokenizer.json"):
            shutil.copy(os.path.join(a.base, f), os.path.join(a.out, f))
    elif a.what == "unpack":
        w = larger(load(join(a.source, "weights")))
        os.makedirs(a.out, exist_ok=True)
        for f in ("config.json", "tokenizer.json"):
            shutil.copy(os.path.join(a.source, f), os.path.join(a.out, f))
        save_file(w, os.path.join(a.out, "model.safetensors.new"))
        os.replace(os.path.join(a.out, "model.safetensors.new"), os.path.join(a.out, "model.safetensors"))
    elif a.what == "pairs":
        with open(a.data, "rb") as f, gzip.GzipFile(a.out + ".new", "wb", 9, mtime=0) as g:
            shutil.copyfileobj(f, g, 1 << 20)
        os.replace(a.out + ".new", a.out)
    elif a.what == "trained":
        w = torch.load(a.checkpoint, map_location="cpu", weights_only=False)["model"]
        # the words do not train, so they are the base's own
        split(save(smaller({k: v for k, v in w.items() if k != "word.weight"}, 16)), a.out, "trained", a.part_mib)
    elif a.what == "restore":
        w = larger(load(join(a.source, "trained")))
        torch.save({"model": w | {"word.weight": M.from_base(a.base).word.weight.detach()}}, a.out)
    elif a.what == "state":
        state(M.state_of(a.checkpoint), a.out, a.part_mib)
        if a.base:
            for f in ("config.json", "tokenizer.json"):
                shutil.copy(os.path.join(a.base, f), os.path.join(a.out, f))
    elif a.what == "base":
        base(a.source, a.base, a.out)
    elif a.what == "mean":
        one, other = M.state_of(a.checkpoint), M.state_of(a.other)
        torch.save({"model": {k: (v + other.get(k, v)) / 2 for k, v in one.items()}}, a.out)
    else:
        split(open(a.file, "rb").read(), a.out, os.path.basename(a.file), a.part_mib)


if __name__ == "__main__":
    main()
