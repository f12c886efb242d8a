"""Embeds a corpus on a machine with a GPU, for `parallax corpus vectors` to take in.

    pip install sentence-transformers
    python embed.py corpus.jsonl --model sentence-transformers/all-mpnet-base-v2 --out OUT [--prefix "passage: "] [--dim N] [--batch 256]
    parallax corpus vectors corpus.jsonl OUT/vectors.npy --ids OUT/ids.txt --model mpnet

`corpus.jsonl` has `_id`, `title` and `text`; a passage is read as Parallax reads it, title first. --model is a name on the hub or a folder;
--prefix is what the model wants before a passage; its card names it. --dim keeps a vector's first numbers, as `@dim=N` does.

Vectors are f16. Passages are read in blocks of 8,192, the longest of a block first, so that a batch has little padding. Every block is synced to
disk before the next begins: after a kill the same command goes on there, and refuses another corpus, model, prefix or dimension. A trial of one
batch says beforehand how long all will take; --check stops after it.
"""
import argparse
import hashlib
import json
import os
import sys
import time

import numpy as np

BLOCK = 8192


def passages(path):
    """(id, text) of every line; a bad line ends the program with its number."""
    with open(path, "rb") as f:
        for number, line in enumerate(f, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                name, title, text = row["_id"], row.get("title") or "", row["text"]
            except (ValueError, KeyError, TypeError) as error:
                sys.exit(f"{path}:{number}: expected an object with `_id` and `text`: {error!r}")
            if not isinstance(name, str) or "\n" in name or not isinstance(text, str) or not isinstance(title, str):
                sys.exit(f"{path}:{number}: expected strings in `_id`, `title` and `text`, and no line break in `_id`")
            yield name, f"{title} {text}" if title else text


def known(out, own):
    """How many passages an earlier run of the same kind finished."""
    place = os.path.join(out, "run.json")
    if not os.path.exists(place):
        return 0
    with open(place, encoding="utf-8") as f:
        old = json.load(f)
    for key in own:
        if old[key] != own[key]:
            sys.exit(f"{out} holds vectors of another {key} ({old[key]}, not {own[key]}); give another --out")
    return old["done"]


def write(path, text):
    with open(path + ".new", "w", encoding="utf-8") as f:
        f.write(text)
        f.flush()
        os.fsync(f.fileno())
    os.replace(path + ".new", path)


def span(seconds):
    return f"{seconds / 3600:.1f} h" if seconds > 5400 else f"{seconds / 60:.1f} min" if seconds > 90 else f"{seconds:.0f} s"


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("corpus")
    ap.add_argument("--model", required=True)
    ap.add_argument("--out", required=True)
    ap.add_argument("--prefix", default="")
    ap.add_argument("--dim", type=int)
    ap.add_argument("--batch", type=int, default=256)
    ap.add_argument("--device")
    ap.add_argument("--trust-remote-code", action="store_true")
    ap.add_argument("--check", action="store_true", help="read the corpus and embed one batch, then stop")
    a = ap.parse_args()

    # Read to its end first: a bad last line is found before any work is lost.
    digest, total, ids = hashlib.blake2b(digest_size=16), 0, set()
    for name, text in passages(a.corpus):
        if name in ids:
            sys.exit(f"{a.corpus}: the id {name} occurs twice")
        ids.add(name)
        digest.update(f"{name}\0{text}\0".encode())
        total += 1
    if not total:
        sys.exit(f"{a.corpus} has no passages")
    del ids

    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(a.model, device=a.device, truncate_dim=a.dim, trust_remote_code=a.trust_remote_code)

    def encode(texts):
        order = sorted(range(len(texts)), key=lambda i: -len(texts[i]))
        rows = model.encode([a.prefix + texts[i] for i in order], batch_size=a.batch, convert_to_numpy=True)
        back = np.empty((len(texts), rows.shape[1]), dtype=np.float16)
        back[order] = rows
        return back

    few = []
    for _, text in passages(a.corpus):
        few.append(text)
        if len(few) == a.batch:
            break
    width = encode(few).shape[1]    # the first batch also warms up
    began = time.time()
    encode(few)
    rate = len(few) / (time.time() - began)
    own = {"corpus": digest.hexdigest(), "model": a.model, "prefix": a.prefix, "dimension": width, "passages": total}
    os.makedirs(a.out, exist_ok=True)
    done = known(a.out, own)
    print(f"{total:,} passages, {done:,} of them embedded before; {rate:.0f} a second: about {span((total - done) / rate)}, "
          f"{total * width * 2 / 1e9:.1f} GB", flush=True)
    if a.check:
        return

    place = os.path.join(a.out, "vectors.npy")
    if not done:
        rows = np.lib.format.open_memmap(place, mode="w+", dtype=np.float16, shape=(total, width))
        write(os.path.join(a.out, "ids.txt"), "".join(name + "\n" for name, _ in passages(a.corpus)))
        write(os.path.join(a.out, "run.json"), json.dumps(own | {"done": 0}))
    else:
        rows = np.lib.format.open_memmap(place, mode="r+")
    block, first, began = [], done, time.time()

    def finish():
        nonlocal block, done
        rows[done:done + len(block)] = encode(block)
        rows.flush()
        done += len(block)
        write(os.path.join(a.out, "run.json"), json.dumps(own | {"done": done}))
        rate = (done - first) / (time.time() - began)
        print(f"{done:,} of {total:,}, {rate:.0f} a second, {span((total - done) / rate)} left", flush=True)
        block = []

    for at, (_, text) in enumerate(passages(a.corpus)):
        if at < done + len(block):
            continue
        block.append(text)
        if len(block) == BLOCK:
            finish()
    if block:
        finish()
    print(f"finished: parallax corpus vectors {a.corpus} {place} --ids {os.path.join(a.out, 'ids.txt')} --model …")


if __name__ == "__main__":
    main()
