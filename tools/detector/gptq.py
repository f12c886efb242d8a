"""Rounds weights so that a product's output stays close to the unrounded one: column after column, and those still to come are changed to make up for
each column's error (GPTQ, Frantar et al. 2023). Every row keeps its scale.
"""
import random

import torch

import model as M


@torch.no_grad()
def grams(m, tok, rows, texts=120, seed=7):
    """The Gram matrix (column, column) of what each product of the layers reads, of some passages of `rows` with their two statements."""
    sums = {}

    def look(name, product):
        def see(_, x):
            x = x[0].flatten(0, -2)
            x = x if product.rest is None else x * product.rest
            sums[name] = sums.get(name, 0) + x.T @ x
        return see
    by = {}
    for r in rows:
        by.setdefault((r["group"], r["passage"]), []).append(r["statement"])
    by = sorted((p, s) for (_, p), s in by.items() if len(s) == 2)
    seen = [x.register_forward_pre_hook(look(n, x)) for n, x in M.products(m).items() if n.startswith("layers.")]
    for passage, statements in random.Random(seed).sample(by, min(texts, len(by))):
        m(*M.collate([M.encode(tok, passage, statements, 160)]))
    for x in seen:
        x.remove()
    return sums


def rounded(w, gram, scale, most, damp=.01, block=128):
    """`w` (row, column) as whole numbers of `scale` (row) from -most to most, for reads with this Gram matrix (column, column)."""
    w, n = w.clone(), w.shape[1]
    gram = gram.clone()
    gram.diagonal().add_(damp * gram.diagonal().mean())
    # the columns with the largest inputs are rounded first, while the others can still make up for them
    order = gram.diagonal().argsort(descending=True)
    w, gram = w[:, order], gram[order][:, order]
    ahead = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(gram.double())), upper=True).float()
    q = torch.zeros_like(w)
    for start in range(0, n, block):
        end, errors = min(start + block, n), []
        for i in range(start, end):
            q[:, i] = (w[:, i] / scale).round().clamp(-most, most)
            error = (w[:, i] - q[:, i] * scale) / ahead[i, i]
            w[:, i:end] -= error[:, None] * ahead[i, i:end]
            errors.append(error)
        w[:, end:] -= torch.stack(errors, 1) @ ahead[start:end, end:]
    return q[:, order.argsort()]
