"""int8 graphs on processors without VNNI, where ONNX Runtime's sums of int8 products stop at 32,767 and its logits say nonsense.

`session(path)` is an ONNX Runtime session that is right on every processor: without VNNI the integer products are made in f32, unless the
weights have 7 bits, as export.py writes them: their sums fit. The program does the same in integers (`src/encode/int8.rs`).
"""
import platform

import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper


def multiplies_int8():
    """Whether ONNX Runtime multiplies int8 numbers exactly here."""
    if platform.machine() not in ("x86_64", "AMD64"):
        return True
    try:
        flags = open("/proc/cpuinfo", encoding="utf-8").read()
    except OSError:
        return False
    return "avx512_vnni" in flags or "avx_vnni" in flags


def has_small_weights(path):
    """Whether no product of the graph can saturate: two products of a weight of at most 64 and an activation of at most 255 fit in 16 bits."""
    graph = onnx.load(path).graph
    multiplied = {n.input[1] for n in graph.node if n.op_type == "MatMulInteger"}
    return all(abs(numpy_helper.to_array(x).astype("int32")).max() <= 64 for x in graph.initializer if x.name in multiplied)


def in_f32(path):
    """The graph with its integer products in f32."""
    m = onnx.load(path)
    known = {x.name: x for x in m.graph.initializer}
    nodes = []
    for n in m.graph.node:
        if n.op_type != "MatMulInteger":
            nodes.append(n)
            continue
        x, w, of_x, of_w = list(n.input) + [""] * (4 - len(n.input))
        weights = numpy_helper.to_array(known[w]).astype("float32")
        if of_w:
            weights = weights - numpy_helper.to_array(known[of_w]).astype("float32")
        out = n.output[0]
        m.graph.initializer.append(numpy_helper.from_array(weights, out + "/w"))
        nodes.append(helper.make_node("Cast", [x], [out + "/x"], to=TensorProto.FLOAT))
        if of_x:
            nodes.append(helper.make_node("Cast", [of_x], [out + "/zero"], to=TensorProto.FLOAT))
            nodes.append(helper.make_node("Sub", [out + "/x", out + "/zero"], [out + "/d"]))
        nodes.append(helper.make_node("MatMul", [out + "/d" if of_x else out + "/x", out + "/w"], [out]))
    del m.graph.node[:]
    m.graph.node.extend(nodes)
    return m.SerializeToString()


def session(path, threads=1):
    """An ONNX Runtime session of the graph."""
    o = onnxruntime.SessionOptions()
    o.intra_op_num_threads = threads
    o.log_severity_level = 3    # unused integer weights are no news
    return onnxruntime.InferenceSession(path if multiplies_int8() or has_small_weights(path) else in_f32(path), o, providers=["CPUExecutionProvider"])
