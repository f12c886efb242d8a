#!/usr/bin/env python3
"""Writes a GGUF file with all weights as 32-bit floats, for comparisons that rounding shall not disturb.

With quantised weights every program also rounds what it multiplies them with, each by its own rule (llama.cpp to 127 steps, candle to 128), so
two correct programs differ by some hundredths of a nat. With plain floats nothing is rounded.

Usage: tools/llm/dequantize.py FROM.gguf TO.gguf     (needs the package gguf)
"""

import sys

import gguf
import numpy as np


def main() -> None:
    source, target = sys.argv[1:]
    reader = gguf.GGUFReader(source)
    architecture = reader.get_field(gguf.Keys.General.ARCHITECTURE).contents()
    writer = gguf.GGUFWriter(target, architecture)
    # The writer puts these in itself, and the kind of file changes.
    own = {gguf.Keys.General.ARCHITECTURE, gguf.Keys.General.FILE_TYPE, gguf.Keys.General.QUANTIZATION_VERSION}
    for name, field in reader.fields.items():
        if name in own or name.startswith("GGUF."):
            continue
        kind = field.types[0]
        inner = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
        writer.add_key_value(name, field.contents(), kind, inner)
    writer.add_file_type(gguf.LlamaFileType.ALL_F32)
    for tensor in reader.tensors:
        weights = gguf.quants.dequantize(tensor.data, tensor.tensor_type)
        writer.add_tensor(tensor.name, np.ascontiguousarray(weights, dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


if __name__ == "__main__":
    main()
