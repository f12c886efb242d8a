//! ONNX graphs with int8 products, rewritten for processors that cannot add them exactly.
//!
//! Without AVX-512 VNNI (AMD before Zen 4, most desktops and laptops by Intel) rten adds the products of two unsigned and two signed bytes in
//! a 16-bit number. It holds −2·128·128 and 2·128·127 but not 2·255·127: sums beyond stop at 32,767, and a model with int8 weights says
//! nonsense. There each activation a becomes h + l with h = ⌊a/2⌋, and each product two that fit: the same sums, to the last bit, for up to
//! twice the work. Weights from −64 to 64 stay as they are, since 2·255·64 fits: a model quantised to 7 bits is exact everywhere at no cost.
//!
//! Only products whose activations come straight from `DynamicQuantizeLinear` are rewritten, which are those of onnxruntime's dynamic
//! quantisation. Convolutions, products within `If` and `Loop`, and statically quantised models may still saturate.

use std::collections::BTreeSet;

const FLOAT: u64 = 1;
const UNSIGNED_BYTE: u64 = 2;
const SIGNED_BYTE: u64 = 3;
/// The tensor ½.
const HALF: &str = "exact/half";
const EXTERNAL: u64 = 1;
/// Weights up to this size cannot saturate: two products with the greatest activation, 2·255·64 = 32,640, fit in 16 bits.
const SMALL: u8 = 64;
/// The external data that hold the tensors of bytes: the model as it was.
pub const ORIGINAL: &str = "original.data";

/// The model with each of these products as two that do not saturate; `None` if it has none, or is damaged. Tensors of bytes stay where they
/// are, in the external data [`ORIGINAL`]: copies would take the memory of the weights again.
pub fn split_products(model: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    let mut found = false;
    for field in fields(model)? {
        match (field.number, field.inside) {
            (7, Some(graph)) => {
                let split = split_graph(graph, model)?;
                found |= split.is_some();
                put(&mut out, 7, split.as_deref().unwrap_or(graph));
            }
            _ => out.extend(field.whole),
        }
    }
    found.then_some(out)
}

/// `Some(None)`: nothing to split.
fn split_graph(graph: &[u8], model: &[u8]) -> Option<Option<Vec<u8>>> {
    let all = fields(graph)?;
    let mut small = BTreeSet::new();
    for field in all.iter().filter(|field| field.number == 5) {
        small.extend(name_of_small(field.inside?)?);
    }
    let mut nodes = Vec::new();
    for field in &all {
        nodes.push(if field.number == 1 { Some(Node::read(field.inside?)?) } else { None });
    }
    let multiplies = |node: &&Node| {
        node.operator == b"MatMulInteger" && node.inputs.get(1).is_none_or(|w| !small.contains(w))
    };
    let multiplied: BTreeSet<&[u8]> =
        nodes.iter().flatten().filter(multiplies).filter_map(|node| node.inputs.first().copied()).collect();
    let mut out = Vec::new();
    let mut quantised = BTreeSet::new();
    let mut found = false;
    for (field, node) in all.iter().zip(&nodes) {
        match node {
            Some(node) if node.operator == b"DynamicQuantizeLinear" && multiplied.contains(node.output) => {
                out.extend(field.whole);
                put_halves(&mut out, node.output);
                quantised.insert(node.output);
            }
            Some(node) if multiplies(&node) && quantised.contains(node.inputs.first()?) => {
                put_products(&mut out, node);
                found = true;
            }
            _ => match (field.number, field.inside) {
                (5, Some(tensor)) => put(&mut out, 5, &outside(tensor, model)?),
                _ => out.extend(field.whole),
            },
        }
    }
    let mut half = Vec::new();
    put_number(&mut half, 2, FLOAT);
    put(&mut half, 8, HALF.as_bytes());
    put(&mut half, 9, &0.5f32.to_le_bytes());
    put(&mut out, 5, &half);
    Some(found.then_some(out))
}

/// The name of a tensor of signed bytes that are all [`SMALL`]; `Some(None)` for another tensor.
fn name_of_small(tensor: &[u8]) -> Option<Option<&[u8]>> {
    let all = fields(tensor)?;
    let signed = all.iter().any(|field| field.number == 2 && field.value == SIGNED_BYTE);
    let content =
        |number: u64| all.iter().find(|field| field.number == number).and_then(|field| field.inside);
    let is_small = |bytes: &&[u8]| bytes.iter().all(|byte| byte.cast_signed().unsigned_abs() <= SMALL);
    Some(content(9).filter(is_small).filter(|_| signed).and_then(|_| content(8)))
}

/// The tensor, with its bytes in [`ORIGINAL`] if it has bytes. Other numbers would have to be aligned there.
fn outside(tensor: &[u8], model: &[u8]) -> Option<Vec<u8>> {
    let all = fields(tensor)?;
    let kind = all.iter().find(|field| field.number == 2).map(|field| field.value);
    let has_bytes =
        matches!(kind, Some(UNSIGNED_BYTE | SIGNED_BYTE)) && all.iter().any(|field| field.number == 9);
    let mut out = Vec::new();
    for field in all {
        match (field.number, field.inside) {
            (9, Some(raw)) if has_bytes => {
                let offset = raw.as_ptr().addr() - model.as_ptr().addr();
                let (offset, length) = (offset.to_string(), raw.len().to_string());
                for (key, value) in [("location", ORIGINAL), ("offset", &offset), ("length", &length)] {
                    let mut entry = Vec::new();
                    put(&mut entry, 1, key.as_bytes());
                    put(&mut entry, 2, value.as_bytes());
                    put(&mut out, 13, &entry);
                }
                put_number(&mut out, 14, EXTERNAL);
            }
            // Where the numbers were.
            (13 | 14, _) if has_bytes => {}
            _ => out.extend(field.whole),
        }
    }
    Some(out)
}

/// The name of a value derived from another.
fn name(of: &[u8], end: &str) -> Vec<u8> {
    [of, b"/", end.as_bytes()].concat()
}

/// h = ⌊a/2⌋ and l = a − h. rten has no arithmetic of bytes, and a cast to them cuts off fractions.
fn put_halves(out: &mut Vec<u8>, bytes: &[u8]) {
    let [whole, half, high, floor, rest, low] =
        ["float", "half", "high", "floor", "rest", "low"].map(|end| name(bytes, end));
    put_cast(out, bytes, FLOAT, &whole);
    put_node(out, "Mul", &[&whole, HALF.as_bytes()], &half);
    put_cast(out, &half, UNSIGNED_BYTE, &high);
    put_cast(out, &high, FLOAT, &floor);
    put_node(out, "Sub", &[&whole, &floor], &rest);
    put_cast(out, &rest, UNSIGNED_BYTE, &low);
}

/// h · (w − z_w) + (l − z_a) · (w − z_w)
fn put_products(out: &mut Vec<u8>, product: &Node) {
    let input = |place: usize| product.inputs.get(place).copied().unwrap_or_default();
    let [high, low] = ["high", "low"].map(|end| name(product.output, end));
    put_node(out, "MatMulInteger", &[&name(input(0), "high"), input(1), b"", input(3)], &high);
    put_node(out, "MatMulInteger", &[&name(input(0), "low"), input(1), input(2), input(3)], &low);
    put_node(out, "Add", &[&high, &low], product.output);
}

/// An operation of a graph; `output` is its first.
struct Node<'a> {
    inputs: Vec<&'a [u8]>,
    output: &'a [u8],
    operator: &'a [u8],
}

impl<'a> Node<'a> {
    fn read(node: &'a [u8]) -> Option<Self> {
        let mut read = Node { inputs: Vec::new(), output: &[], operator: &[] };
        for field in fields(node)? {
            match field.number {
                1 => read.inputs.push(field.inside?),
                2 if read.output.is_empty() => read.output = field.inside?,
                4 => read.operator = field.inside?,
                _ => {}
            }
        }
        Some(read)
    }
}

/// A field of a message: its number, all of it with the tag, and its content if its length is given, or else its value.
struct Field<'a> {
    number: u64,
    whole: &'a [u8],
    inside: Option<&'a [u8]>,
    value: u64,
}

fn fields(mut bytes: &[u8]) -> Option<Vec<Field<'_>>> {
    let mut all = Vec::new();
    while !bytes.is_empty() {
        let begin = bytes;
        let tag = varint(&mut bytes)?;
        let mut value = 0;
        let length = match tag & 7 {
            0 => {
                value = varint(&mut bytes)?;
                0
            }
            1 => 8,
            2 => varint(&mut bytes)?,
            5 => 4,
            _ => return None,
        };
        let (content, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        bytes = rest;
        let whole = &begin[..begin.len() - rest.len()];
        all.push(Field { number: tag >> 3, whole, inside: (tag & 7 == 2).then_some(content), value });
    }
    Some(all)
}

/// The number at the beginning, which is taken off; `None` if it does not end.
pub(super) fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0u64;
    for at in 0..10 {
        let (byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(7 * at).unwrap_or(0);
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_number(out: &mut Vec<u8>, field: u64, value: u64) {
    put_varint(out, field << 3);
    put_varint(out, value);
}

fn put(out: &mut Vec<u8>, field: u64, inside: &[u8]) {
    put_varint(out, field << 3 | 2);
    put_varint(out, inside.len() as u64);
    out.extend(inside);
}

fn put_node(out: &mut Vec<u8>, operator: &str, inputs: &[&[u8]], output: &[u8]) {
    put(out, 1, &node(operator, inputs, output));
}

fn put_cast(out: &mut Vec<u8>, input: &[u8], to: u64, output: &[u8]) {
    const INTEGER: u64 = 2;
    let mut attribute = Vec::new();
    put(&mut attribute, 1, b"to");
    put_number(&mut attribute, 3, to);
    put_number(&mut attribute, 20, INTEGER);
    let mut cast = node("Cast", &[input], output);
    put(&mut cast, 5, &attribute);
    put(out, 1, &cast);
}

fn node(operator: &str, inputs: &[&[u8]], output: &[u8]) -> Vec<u8> {
    let mut node = Vec::new();
    for input in inputs {
        put(&mut node, 1, input);
    }
    put(&mut node, 2, output);
    put(&mut node, 3, output);
    put(&mut node, 4, operator.as_bytes());
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets;
    use crate::encode::graph::{Graph, is_whole};

    /// A model that multiplies a matrix with these weights, of so many columns. Each number of its input fills a row: rten multiplies a
    /// single row by other instructions, which are exact everywhere.
    fn product(weights: &[i8], columns: usize) -> Vec<u8> {
        let mut graph = Vec::new();
        put_cast(&mut graph, b"numbers", FLOAT, b"row");
        put_node(&mut graph, "Transpose", &[b"row"], b"column");
        put_node(&mut graph, "Add", &[b"column", b"zeros"], b"x");
        let (mut zeros, width) = (Vec::new(), weights.len() / columns);
        put_number(&mut zeros, 1, 1);
        put_number(&mut zeros, 1, width as u64);
        put_number(&mut zeros, 2, FLOAT);
        put(&mut zeros, 8, b"zeros");
        put(&mut zeros, 9, &vec![0; width * 4]);
        put(&mut graph, 5, &zeros);
        let mut quantise = node("DynamicQuantizeLinear", &[b"x"], b"q");
        put(&mut quantise, 2, b"scale");
        put(&mut quantise, 2, b"zero");
        put(&mut graph, 1, &quantise);
        put_node(&mut graph, "MatMulInteger", &[b"q", b"w", b"zero"], b"y");
        put_cast(&mut graph, b"y", FLOAT, b"logits");
        let mut tensor = Vec::new();
        put_number(&mut tensor, 1, (weights.len() / columns) as u64);
        put_number(&mut tensor, 1, columns as u64);
        put_number(&mut tensor, 2, SIGNED_BYTE);
        put(&mut tensor, 8, b"w");
        put(&mut tensor, 9, &weights.iter().map(|weight| *weight as u8).collect::<Vec<_>>());
        // They lie here: the default, which some writers spell out.
        put_number(&mut tensor, 14, 0);
        put(&mut graph, 5, &tensor);
        for (field, name) in [(11, "numbers"), (12, "logits")] {
            let mut value = Vec::new();
            put(&mut value, 1, name.as_bytes());
            put(&mut graph, field, &value);
        }
        let (mut model, mut version) = (Vec::new(), Vec::new());
        put_number(&mut model, 1, 8);
        put(&mut model, 7, &graph);
        put_number(&mut version, 2, 13);
        put(&mut model, 8, &version);
        model
    }

    fn sums(model: Vec<u8>, row: &[i32]) -> Vec<f32> {
        Graph::custom(model, &["numbers"], "logits").unwrap().run(&[row.to_vec()]).unwrap()
    }

    /// The nodes of a model.
    fn nodes(model: &[u8]) -> Vec<String> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let graph = fields(model).unwrap().iter().find(|field| field.number == 7).unwrap().inside.unwrap();
        let nodes = fields(graph).unwrap().into_iter().filter(|field| field.number == 1);
        let line = |field: Field| {
            let node = Node::read(field.inside.unwrap()).unwrap();
            let inputs: Vec<String> = node.inputs.iter().map(|name| text(name)).collect();
            format!("{} = {}({})", text(node.output), text(node.operator), inputs.join(", "))
        };
        nodes.map(line).collect()
    }

    #[test]
    fn the_greatest_products_are_exact_on_this_processor() {
        let weights: Vec<i8> = (0..64 * 3).map(|at| [127, -128, 126][at % 3]).collect();
        for sign in [1, -1] {
            let row = [127, -128, 126].map(|weight| (sign * weight * 255 * 64) as f32);
            assert_eq!(sums(product(&weights, 3), &[sign * 255; 8]), row.repeat(8));
        }
    }

    #[test]
    fn split_products_have_the_sums_of_the_numbers() {
        let weights: Vec<i8> = (0..240).map(|at| (at * 37 % 256 - 128) as i8).collect();
        // From −100 to 155, so that the scale is 1.
        let row = [-100, 155, 0, 1, 77, -3, 120];
        let model = product(&weights, 3);
        let split = split_products(&model).unwrap();
        assert!(is_whole(&split) && split.len() < 2_000);
        let graph = Graph::split(split, model, &["numbers"], "logits").unwrap();
        let sum = |column: usize| (0..80).map(|at| i32::from(weights[at * 3 + column])).sum::<i32>();
        let expected = row.iter().flat_map(|number| [0, 1, 2].map(|column| (number * sum(column)) as f32));
        assert_eq!(graph.run(&[row.to_vec()]).unwrap(), expected.collect::<Vec<_>>());
    }

    #[test]
    fn a_product_becomes_two_of_half_the_activations() {
        assert_eq!(
            nodes(&split_products(&product(&[65; 4], 2)).unwrap())[3..],
            [
                "q = DynamicQuantizeLinear(x)",
                "q/float = Cast(q)",
                "q/half = Mul(q/float, exact/half)",
                "q/high = Cast(q/half)",
                "q/floor = Cast(q/high)",
                "q/rest = Sub(q/float, q/floor)",
                "q/low = Cast(q/rest)",
                "y/high = MatMulInteger(q/high, w, , )",
                "y/low = MatMulInteger(q/low, w, zero, )",
                "y = Add(y/high, y/low)",
                "logits = Cast(y)",
            ]
        );
    }

    #[test]
    fn products_with_weights_of_seven_bits_stay_and_are_exact() {
        for weights in [[64i8; 192], [-64; 192]] {
            let model = product(&weights, 3);
            assert!(split_products(&model).is_none());
            let sum = |number: i32| (number * i32::from(weights[0]) * 64) as f32;
            assert_eq!(sums(model, &[255, 0]), [[sum(255); 3], [sum(0); 3]].concat());
        }
        assert!(split_products(&product(&[64, -65, 0, 0], 2)).is_some());
    }

    #[test]
    fn graphs_without_such_products_and_damaged_ones_stay() {
        assert!(split_products(include_bytes!("../../tests/fixtures/readers/words/reader.onnx")).is_none());
        let model = product(&[127, 0, 0, 0], 2);
        assert!((0..model.len() - 4).all(|end| split_products(&model[..end]).is_none()), "cut");
        assert!(split_products(b"not a model").is_none() && split_products(&[]).is_none());
        // The detector's weights have 7 bits.
        assert!(split_products(assets::MINILM).is_some() && split_products(assets::DETECTOR).is_none());
    }
}
