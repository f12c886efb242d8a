//! ONNX graphs: validated, run one unpadded sequence at a time, and the built-in encoder, all-MiniLM-L6-v2.
//!
//! Dynamic int8 quantisation uses one scale for everything in a run, so batching would make a text's vector depend on the other texts.
//! Each inference runs on one thread; for more cores, call from more threads.
//!
//! [`is_whole`] runs before rten parses a file: every length must fit into its parent message. rten's parser trusts lengths. A length near
//! 2^64 moves it backwards, so it never ends; one beyond the file makes it allocate that much memory, which aborts the process; and a packed
//! number that does not end within its field makes it read into the next field, or for ever. The check reads Protocol Buffers and has a
//! table of the fields that hold messages or packed numbers; it does not interpret them.

use std::sync::{Arc, OnceLock};

use rten::{LoadError, Model, ModelOptions, NodeId, RunOptions, ThreadPool};
use rten_gemm::GemmExecutor;
use rten_tensor::NdTensor;
use rten_tensor::prelude::*;
use tokenizers::Tokenizer;
use tokenizers::models::wordpiece::WordPiece;

use super::encoder::{EncodeError, Encoder, ModelError, Role};
use super::int8::{self, varint};
use super::tokens;
use crate::assets;
use crate::work::catch_panic;

/// An ONNX graph from token numbers to numbers.
pub struct Graph {
    model: Model,
    inputs: Vec<NodeId>,
    output: NodeId,
}

thread_local! {
    static ONE_THREAD: Arc<ThreadPool> = Arc::new(ThreadPool::with_num_threads(1));
}

impl Graph {
    /// Reads a built-in graph with these inputs.
    ///
    /// # Errors
    /// The bytes are not a graph with these names.
    pub fn builtin(bytes: &'static [u8], inputs: &[&str]) -> Result<Self, EncodeError> {
        let model = match exact(bytes) {
            Some(graph) => options().external_data_static(int8::ORIGINAL, bytes).load(graph),
            None => options().load_static_slice(bytes),
        };
        let model = model.map_err(ModelError::network)?;
        let output = *model.output_ids().first().ok_or(EncodeError(ModelError::NotOnnx))?;
        Ok(Graph { inputs: input_ids(&model, inputs)?, model, output })
    }

    /// Reads a user's graph with these inputs and this output.
    ///
    /// # Errors
    /// The bytes are not a graph with these names.
    pub fn custom(bytes: Vec<u8>, inputs: &[&str], output: &str) -> Result<Self, EncodeError> {
        if !is_whole(&bytes) {
            return Err(ModelError::NotOnnx.into());
        }
        match exact(&bytes) {
            Some(graph) => Self::split(graph, bytes, inputs, output),
            None => Self::read(inputs, output, || options().load(bytes)),
        }
    }

    /// Reads a graph that [`int8::split_products`] made of a model.
    pub(super) fn split(
        graph: Vec<u8>,
        model: Vec<u8>,
        inputs: &[&str],
        output: &str,
    ) -> Result<Self, EncodeError> {
        Self::read(inputs, output, || options().external_data(int8::ORIGINAL, model).load(graph))
    }

    fn read(
        inputs: &[&str],
        output: &str,
        load: impl FnOnce() -> Result<Model, LoadError>,
    ) -> Result<Self, EncodeError> {
        let model = catch(|| load().map_err(ModelError::network))?;
        let output = model.node_id(output).map_err(ModelError::network)?;
        Ok(Graph { inputs: input_ids(&model, inputs)?, model, output })
    }

    /// Runs the graph on one sequence and returns one row. `rows` are the inputs, in the order of their names.
    ///
    /// # Errors
    /// The graph cannot be run.
    pub fn run(&self, rows: &[Vec<i32>]) -> Result<Vec<f32>, EncodeError> {
        Ok(self.numbers::<2>(rows)?.1)
    }

    /// Like [`Graph::run`], for an output of `N` dimensions. Returns its shape and its numbers, the last dimension varying fastest.
    ///
    /// # Errors
    /// The graph cannot be run or has another output.
    pub fn numbers<const N: usize>(&self, rows: &[Vec<i32>]) -> Result<([usize; N], Vec<f32>), EncodeError> {
        let inputs = self.inputs.iter().zip(rows).map(|(id, row)| {
            let tensor = NdTensor::from_data([1, row.len()], row.clone());
            (*id, tensor.into())
        });
        let options = ONE_THREAD.with(|pool| RunOptions::default().with_thread_pool(Some(Arc::clone(pool))));
        let inputs = inputs.collect();
        let run = || self.model.run_n(inputs, [self.output], Some(options)).map_err(ModelError::network);
        let [out] = catch(run)?;
        let out: NdTensor<f32, N> = out.try_into().map_err(|_| ModelError::Shape {
            expected: format!("floats of {N} dimensions"),
            found: "another type or number of dimensions".into(),
        })?;
        Ok((out.shape(), out.to_vec()))
    }
}

/// Turns a panic of rten into an error: users can supply any graph.
fn catch<T>(run: impl FnOnce() -> Result<T, ModelError>) -> Result<T, ModelError> {
    catch_panic(run).unwrap_or(Err(ModelError::Panicked))
}

/// Whether this thread belongs to rten; its panics are caught by the thread that runs the graph.
pub fn is_graph_thread() -> bool {
    std::thread::current().name().is_some_and(|name| name.starts_with("rten-"))
}

/// Whether this processor multiplies int8 numbers exactly at full speed. Others take up to twice as long for it.
pub fn multiplies_int8() -> bool {
    !GemmExecutor::<u8, i8, i32>::default().may_saturate()
}

/// The graph with products that this processor makes exactly; `None` if it does so with the graph as it is.
fn exact(graph: &[u8]) -> Option<Vec<u8>> {
    if multiplies_int8() { None } else { int8::split_products(graph) }
}

fn options() -> ModelOptions {
    let mut options = ModelOptions::with_all_ops();
    options.prepack_weights(true);
    options
}

fn input_ids(model: &Model, names: &[&str]) -> Result<Vec<NodeId>, EncodeError> {
    let ids = names.iter().map(|name| model.node_id(name).map_err(ModelError::network));
    Ok(ids.collect::<Result<_, _>>()?)
}

/// The built-in tokenizer, without padding and truncation. Read once and shared: cloning its vocabulary costs milliseconds.
///
/// # Errors
/// The built-in file is damaged.
pub fn tokenizer() -> Result<&'static Tokenizer, EncodeError> {
    static READ: OnceLock<Result<Tokenizer, EncodeError>> = OnceLock::new();
    READ.get_or_init(|| Ok(vocabulary(assets::MINILM_TOKENIZER)?)).as_ref().map_err(EncodeError::clone)
}

/// The number of bytes that the first `count` word pieces of a text take, by the built-in encoder's tokenizer.
///
/// # Errors
/// The built-in file is damaged.
pub fn first_tokens(text: &str, count: usize) -> Result<usize, EncodeError> {
    let begin = super::tokens::beginning(text, count);
    let tokens = tokenizer()?.encode(begin, false)?;
    let end = tokens.get_offsets().get(..count).and_then(<[_]>::last).map(|(_, end)| *end);
    Ok(end.filter(|end| text.is_char_boundary(*end)).unwrap_or(begin.len()))
}

/// A tokenizer of lower-case word pieces from a `tokenizer.json`. Reads the vocabulary only: `tokens::pieces` adds the rest, and
/// reading the whole file takes several times as long.
///
/// # Errors
/// The file is damaged.
pub fn vocabulary(file: &[u8]) -> tokenizers::Result<Tokenizer> {
    #[derive(serde::Deserialize)]
    struct File {
        model: WordPiece,
    }
    let File { model } = serde_json::from_slice(file)?;
    tokens::pieces(model, true)
}

const WINDOW: usize = 256;
/// The number of characters read. 256 tokens of English are always shorter; the limit bounds the work on very long texts.
const LONGEST: usize = 16_384;

/// all-MiniLM-L6-v2, int8: mean pooling, cosine, 256 tokens. All clones share one copy of the weights.
#[derive(Clone)]
pub struct MiniLm {
    graph: Arc<Graph>,
    tokenizer: &'static Tokenizer,
    key: String,
}

impl MiniLm {
    /// Loads the built-in encoder.
    ///
    /// # Errors
    /// The built-in files are damaged.
    pub fn builtin() -> Result<Self, EncodeError> {
        static READ: OnceLock<Result<MiniLm, EncodeError>> = OnceLock::new();
        READ.get_or_init(Self::read).clone()
    }

    fn read() -> Result<Self, EncodeError> {
        let hash = blake3::hash(assets::MINILM).to_hex();
        Ok(MiniLm {
            graph: Arc::new(Graph::builtin(assets::MINILM, &["input_ids"])?),
            tokenizer: tokenizer()?,
            key: format!("minilm-{}", &hash[..12]),
        })
    }
}

impl Encoder for MiniLm {
    fn key(&self) -> &str {
        &self.key
    }

    fn dimensions(&self) -> usize {
        384
    }

    fn encode(&self, text: &str, _: Role) -> Result<Vec<f32>, EncodeError> {
        let end = text.char_indices().nth(LONGEST).map_or(text.len(), |(i, _)| i);
        let tokens = self.tokenizer.encode_fast(&text[..end], true)?;
        let mut ids: Vec<i32> = tokens.get_ids().iter().map(|id| *id as i32).collect();
        if let (true, Some(last)) = (ids.len() > WINDOW, ids.last().copied()) {
            // A truncated sequence also ends with the end token.
            ids.truncate(WINDOW - 1);
            ids.push(last);
        }
        self.graph.run(&[ids])
    }
}

/// The limit of nested graphs; real models have one or two levels.
const DEEPEST: usize = 16;

/// The content of a length-delimited field: a message that contains others, or packed numbers.
#[derive(Clone, Copy)]
enum Content {
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

/// The content of a message's field; `None` for bytes and text. Covers every such field that rten-onnx 0.27 reads (`onnx.rs`).
fn content(message: Content, field: u64) -> Option<Content> {
    use Content::*;
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

/// Whether the bytes are a model with valid lengths.
pub fn is_whole(bytes: &[u8]) -> bool {
    check_message(bytes, Content::Model, 0).is_some()
}

/// `None` if a length is invalid.
fn check(mut bytes: &[u8], content: Content, depth: usize) -> Option<()> {
    match content {
        Content::Varints => {
            while !bytes.is_empty() {
                varint(&mut bytes)?;
            }
            Some(())
        }
        Content::Floats => bytes.len().is_multiple_of(4).then_some(()),
        Content::Doubles => bytes.len().is_multiple_of(8).then_some(()),
        kind => check_message(bytes, kind, depth),
    }
}

fn check_message(mut bytes: &[u8], kind: Content, depth: usize) -> Option<()> {
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
        if let (2, Some(content)) = (tag & 7, content(kind, tag >> 3)) {
            check(inside, content, depth + 1)?;
        }
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::corpus::sample;

    #[test]
    fn the_builtin_tokenizer_equals_one_read_from_the_whole_file() {
        let mut whole = Tokenizer::from_bytes(assets::MINILM_TOKENIZER).unwrap();
        whole.with_padding(None);
        whole.with_truncation(None).unwrap();
        let corpus = sample::corpus();
        let passages = corpus.places().map(|at| corpus.passage(at).contents());
        let odd =
            ["", " ", "[SEP] a [CLS]", "NAÏVE Straße 北京 🦁 e\u{301}", "x\u{0}\u{200b}y\tz", "[MASK]s"];
        for text in passages.chain(odd.map(str::to_owned)) {
            for marks in [true, false] {
                let (ours, theirs) =
                    (tokenizer().unwrap().encode(&*text, marks), whole.encode(&*text, marks));
                assert_eq!(ours.unwrap(), theirs.unwrap(), "{text}");
            }
        }
    }

    #[test]
    fn the_fixtures_are_whole_and_truncated_ones_are_not() {
        let graph = include_bytes!("../../tests/fixtures/readers/words/reader.onnx");
        assert!(is_whole(graph) && is_whole(crate::assets::DETECTOR));
        let ends = (1..graph.len()).filter(|end| is_whole(&graph[..*end])).count();
        assert!(ends < 5, "a cut is whole only between two fields of the model, {ends} times");
    }

    #[test]
    fn a_length_that_points_backwards_or_beyond_the_file_is_refused() {
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
    fn every_message_of_a_model_is_checked() {
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
    fn endlessly_nested_graphs_are_refused() {
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
