"""Makes tests/fixtures/readers: an extractive reader of a few hundred bytes whose probabilities are chosen here, and graphs that
cannot be one.

    pip install onnx
    python tools/reader/make_span_fixture.py assets/minilm/tokenizer.json tests/fixtures/readers

A token's logits are looked up by its number. A passage that holds one of the words below, and nothing else that scores, has the
word's probability; every other span has next to none.
"""

import hashlib
import json
import math
import pathlib
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

VOCABULARY = json.loads(pathlib.Path(sys.argv[1]).read_text())["model"]["vocab"]
OUT = pathlib.Path(sys.argv[2])
OTHERS = -8.0


def logit(p):
    return math.log(p / (1 - p)) / 2


# Word piece: start, end. The pieces of "zyzzyva" (z ##yz ##zy ##va) score more when they are broken off than the word has as a whole.
PIECES = {word: (logit(p), logit(p)) for word, p in {"paris": 0.9, "rome": 0.6, "lyon": 0.4, "tour": 0.45}.items()}
PIECES["nothing"] = (-20.0, -20.0)
PIECES |= {"z": (logit(0.6), logit(0.99)), "##va": (logit(0.99), logit(0.6))}
INPUTS = ["input_ids", "attention_mask", "token_type_ids"]


def graph(path, columns=2, output="spans", inputs=INPUTS, others=(OTHERS, OTHERS), last="Identity", places=None):
    """Logits of what is in the passage (token type 1) and not masked; 0 for everything else."""
    known = np.array([VOCABULARY[piece] for piece in PIECES], dtype=np.int64)
    above = np.array([(list(pair) * 2)[:columns] for pair in PIECES.values()], dtype=np.float32) - OTHERS
    constants = {"known": known, "above": above, "others": np.float32(others[:columns]), "last": np.int64([2])}
    node = helper.make_node
    nodes = [
        node("Unsqueeze", ["input_ids", "last"], ["ids"]),
        node("Equal", ["ids", "known"], ["is"]),
        node("Cast", ["is"], ["one"], to=TensorProto.FLOAT),
        node("MatMul", ["one", "above"], ["sum"]),
        node("Add", ["sum", "others"], ["scores"]),
    ]
    scores = "scores"
    for name in inputs[1:]:
        nodes += [
            node("Unsqueeze", [name, "last"], [name + "_3"]),
            node("Cast", [name + "_3"], [name + "_f"], to=TensorProto.FLOAT),
            node("Mul", [scores, name + "_f"], [scores + "_" + name]),
        ]
        scores += "_" + name
    if places:
        # Adds nothing, by a table of so many places.
        constants |= {"table": np.zeros((places, columns), dtype=np.float32), "from": np.int64(0), "by": np.int64(1)}
        nodes += [
            node("Shape", ["input_ids"], ["sides"]),
            node("Gather", ["sides", "by"], ["length"]),
            node("Range", ["from", "length", "by"], ["place"]),
            node("Gather", ["table", "place"], ["placed"]),
            node("Add", [scores, "placed"], [scores + "_placed"]),
        ]
        scores += "_placed"
    nodes.append(node(last, [scores], [output]))
    made = helper.make_graph(
        nodes, "fixture",
        [helper.make_tensor_value_info(name, TensorProto.INT64, [1, "tokens"]) for name in inputs],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, [1, "tokens", columns])],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    save(helper.make_model(made, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)


graph(OUT / "words" / "reader.onnx")
card = {"name": "words", "max_tokens": 32, "question_tokens": 8, "answer_tokens": 8, "temperature": 1.0,
        "sha256": hashlib.sha256((OUT / "words" / "reader.onnx").read_bytes()).hexdigest()}
(OUT / "words" / "reader.json").write_text(json.dumps(card, indent=1) + "\n")
graph(OUT / "one_column.onnx", columns=1)
graph(OUT / "logits.onnx", output="logits")
# Right in ONNX, but rten 0.27 panics over a sum with one number for all columns.
graph(OUT / "one_bias.onnx", others=(OTHERS,))
graph(OUT / "one_input.onnx", inputs=INPUTS[:1])
# The root of a negative number is none, and only "nothing" is below 0 here.
graph(OUT / "not_a_number.onnx", others=(0.0, 0.0), last="Sqrt")
# Reads a sentence, but not the 32 tokens that its card says.
graph(OUT / "few_places.onnx", places=24)
