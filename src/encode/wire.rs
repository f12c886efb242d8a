//! The form of an ONNX file, looked at before a graph is made of it: every length lies within what holds it.
//!
//! The reader of graphs trusts lengths: one near 2^64 sends it backwards, so that it never ends, and one beyond the file has it ask for
//! that much memory, which ends the process. A packed number that does not end within its field it reads on into the next one, or for
//! ever. This knows Protocol Buffers, and which fields of a model are messages and which packed numbers; what they mean it must not know.

/// Graphs within graphs; a model has one or two.
const DEEPEST: usize = 16;

/// What a field with a length holds: a message of a model, as far as it holds others, or packed numbers.
#[derive(Clone, Copy)]
enum Held {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    Named,
    Type,
    Shaped,
    Shape,
    Sequence,
    Plain,
    Varints,
    Floats,
    Doubles,
}

/// What a field of a message holds; none where there are bytes or text. It is every such field that rten-onnx 0.27 reads (`onnx.rs`).
fn within(message: Held, field: u64) -> Option<Held> {
    use Held::*;
    Some(match (message, field) {
        (Model, 7) | (Attribute, 6) => Graph,
        (Model, 8 | 14) | (Tensor, 13) | (Shape, 1) => Plain,
        (Tensor, 5 | 7) => Varints,
        (Tensor, 4) => Floats,
        (Tensor, 10) => Doubles,
        (Graph, 1) => Node,
        (Graph, 5) | (Attribute, 5) => Tensor,
        (Graph, 11..=13) => Named,
        (Node, 5) => Attribute,
        (Named, 2) | (Sequence, 1) => Type,
        (Type, 1) => Shaped,
        (Type, 4) => Sequence,
        (Shaped, 2) => Shape,
        _ => return None,
    })
}

/// Whether the bytes are a model whose lengths can be trusted.
pub fn is_whole(bytes: &[u8]) -> bool {
    message(bytes, Held::Model, 0).is_some()
}

fn whole(mut bytes: &[u8], held: Held, depth: usize) -> Option<()> {
    match held {
        Held::Varints => {
            while !bytes.is_empty() {
                varint(&mut bytes)?;
            }
            Some(())
        }
        Held::Floats => bytes.len().is_multiple_of(4).then_some(()),
        Held::Doubles => bytes.len().is_multiple_of(8).then_some(()),
        kind => message(bytes, kind, depth),
    }
}

fn message(mut bytes: &[u8], kind: Held, depth: usize) -> Option<()> {
    if depth > DEEPEST * 4 {
        return None;
    }
    while !bytes.is_empty() {
        let tag = varint(&mut bytes)?;
        let length = match tag & 7 {
            0 => {
                varint(&mut bytes)?;
                continue;
            }
            1 => 8,
            2 => varint(&mut bytes)?,
            5 => 4,
            _ => return None,
        };
        let (inside, rest) = bytes.split_at_checked(usize::try_from(length).ok()?)?;
        bytes = rest;
        if let (2, Some(held)) = (tag & 7, within(kind, tag >> 3)) {
            whole(inside, held, depth + 1)?;
        }
    }
    Some(())
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_graphs_of_the_fixtures_are_whole_and_no_beginning_of_one_is_taken_for_more() {
        let graph = include_bytes!("../../tests/fixtures/readers/words/reader.onnx");
        assert!(is_whole(graph) && is_whole(crate::assets::DETECTOR));
        let ends = (1..graph.len()).filter(|end| is_whole(&graph[..*end])).count();
        assert!(ends < 5, "a cut is whole only between two fields of the model, {ends} times");
    }

    #[test]
    fn a_length_that_leads_backwards_or_beyond_the_file_is_none() {
        // A graph of 2^64 - 2 bytes: the reader would go back by two and read this length again, for ever.
        let back = [&[0x3a][..], &[0xfe], &[0xff; 8], &[0x01]].concat();
        assert!(!is_whole(&back));
        // A node of 2^40 bytes within a graph of 8.
        assert!(!is_whole(&[0x3a, 8, 0x0a, 0x80, 0x80, 0x80, 0x80, 0x80, 0x20, 0]));
        assert!(!is_whole(&[0x3b]), "groups are of no use here");
        assert!(is_whole(&[0x08, 0x07]));
    }

    /// A field with a length below 128.
    fn field(number: u8, inside: &[u8]) -> Vec<u8> {
        [&[number << 3 | 2, inside.len() as u8], inside].concat()
    }

    #[test]
    fn every_message_of_a_model_is_looked_into() {
        let back = [&[0x1a, 0xf5][..], &[0xff; 8], &[0x01]].concat();
        let (node, tensor) = (|inside: &[u8]| field(1, inside), |inside: &[u8]| field(5, inside));
        let attribute = |inside: &[u8]| node(&field(5, inside));
        let of_type = |inside: &[u8]| field(11, &field(2, inside));
        let shape = |inside: &[u8]| of_type(&field(1, &field(2, inside)));
        let graph = |inside: Vec<u8>| field(7, &inside);
        for (name, model) in [
            ("operators", field(8, &back)),
            ("metadata", field(14, &back)),
            ("graph", graph(back.clone())),
            ("node", graph(node(&back))),
            ("attribute", graph(attribute(&back))),
            ("tensor of an attribute", graph(attribute(&field(5, &back)))),
            ("graph of an attribute", graph(attribute(&field(6, &back)))),
            ("initializer", graph(tensor(&back))),
            ("where it lies", graph(tensor(&field(13, &back)))),
            ("input", graph(field(11, &back))),
            ("output", graph(field(12, &back))),
            ("value", graph(field(13, &back))),
            ("type", graph(of_type(&back))),
            ("tensor's type", graph(of_type(&field(1, &back)))),
            ("sequence", graph(of_type(&field(4, &back)))),
            ("type in a sequence", graph(of_type(&field(4, &field(1, &back))))),
            ("shape", graph(shape(&back))),
            ("dimension", graph(shape(&field(1, &back)))),
        ] {
            assert!(!is_whole(&model), "{name}");
        }
    }

    #[test]
    fn packed_numbers_that_do_not_end_within_their_field_are_refused() {
        let tensor = |inside: &[u8]| field(7, &field(5, inside));
        for number in [5, 7] {
            assert!(is_whole(&tensor(&field(number, &[3, 0x80, 1]))));
            assert!(!is_whole(&tensor(&field(number, &[3, 0x80]))), "read on into the next field");
            assert!(!is_whole(&tensor(&field(number, &[0x80; 12]))), "read for ever");
        }
        assert!(is_whole(&tensor(&field(4, &[0; 8]))) && !is_whole(&tensor(&field(4, &[0; 6]))));
        assert!(is_whole(&tensor(&field(10, &[0; 8]))) && !is_whole(&tensor(&field(10, &[0; 12]))));
    }

    #[test]
    fn graphs_within_graphs_without_end_are_refused_and_not_followed() {
        let mut bytes = Vec::new();
        for _ in 0..2_000 {
            // An attribute's graph, in a node's attribute, in a graph's node.
            for field in [6u8, 5, 1] {
                let mut outer = vec![field << 3 | 2];
                let mut length = bytes.len();
                while length >= 0x80 {
                    outer.push(length as u8 | 0x80);
                    length >>= 7;
                }
                outer.push(length as u8);
                outer.extend(&bytes);
                bytes = outer;
            }
        }
        let mut model = vec![0x3a];
        let mut length = bytes.len();
        while length >= 0x80 {
            model.push(length as u8 | 0x80);
            length >>= 7;
        }
        model.push(length as u8);
        model.extend(&bytes);
        assert!(!is_whole(&model));
    }
}
