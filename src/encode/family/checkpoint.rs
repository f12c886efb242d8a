//! A model's files: `config.json`, and weights as safetensors (one file or several) or `pytorch_model.bin`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear};
use serde::Deserialize;
use serde_json::Value;

use crate::input::{InputError, SMALL, read_regular};

/// An error about a file.
fn wrong(path: &Path, reason: impl Into<String>) -> InputError {
    InputError::Unreadable { path: path.into(), reason: reason.into() }
}

/// A model's `config.json`.
pub struct Config {
    file: PathBuf,
    value: Value,
}

impl Config {
    /// Reads `config.json` in a folder.
    ///
    /// # Errors
    /// It does not exist, or is not a JSON object.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let file = folder.join("config.json");
        let bytes = read_regular(&file, SMALL).map_err(|error| InputError::unreadable(&file, &error))?;
        match serde_json::from_slice::<Value>(&bytes) {
            Ok(value) if value.is_object() => Ok(Config { file, value }),
            Ok(_) => Err(wrong(&file, "expected a JSON object; fetch the model again")),
            Err(error) => Err(wrong(&file, format!("not valid JSON ({error}); fetch the model again"))),
        }
    }

    /// The name of the family in `transformers`.
    ///
    /// # Errors
    /// The entry is missing.
    pub fn model_type(&self) -> Result<&str, InputError> {
        let named = self.value.get("model_type").and_then(Value::as_str);
        named.ok_or_else(|| self.wrong("it has no `model_type`, so the kind of network is unknown"))
    }

    /// The length of a token row.
    ///
    /// # Errors
    /// The entry is missing.
    pub fn width(&self) -> Result<usize, InputError> {
        self.size(&["hidden_size", "dim", "d_model", "n_embd"])
    }

    /// The number of layers.
    pub(super) fn layers(&self) -> Result<usize, InputError> {
        self.size(&["num_hidden_layers", "n_layers", "n_layer"])
    }

    /// The size of the vocabulary.
    ///
    /// # Errors
    /// The entry is missing.
    pub fn vocabulary(&self) -> Result<usize, InputError> {
        self.size(&["vocab_size"])
    }

    /// The maximum number of tokens; `None` if unlimited.
    pub fn positions(&self) -> Option<usize> {
        let all = self.size(&["max_position_embeddings", "n_positions"]).ok()?;
        // RoBERTa and MPNet number positions from the padding token's number on.
        let offset = matches!(self.model_type(), Ok("roberta" | "xlm-roberta" | "camembert" | "mpnet"));
        Some(if offset { all.saturating_sub(self.padding() as usize + 1) } else { all })
    }

    /// The padding token, which shifts the positions of some families.
    pub fn padding(&self) -> u32 {
        self.size(&["pad_token_id"]).map_or(1, |id| id as u32)
    }

    /// The whole number under the first of these names that is present.
    ///
    /// # Errors
    /// No name is present, or the value is not a whole number below 2^24.
    pub fn size(&self, names: &[&str]) -> Result<usize, InputError> {
        let found = names.iter().find_map(|name| Some((name, self.value.get(name)?)));
        match found {
            Some((_, value)) if value.as_u64().is_some_and(|n| n < 1 << 24) => {
                Ok(value.as_u64().unwrap_or_default() as usize)
            }
            Some((name, value)) => Err(self.wrong(&format!("expected a size at `{name}`, found {value}"))),
            None => Err(self.wrong(&format!("it has no `{}`", names[0]))),
        }
    }

    /// Whether an entry is present.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value.get(name).is_some_and(|value| !value.is_null())
    }

    pub(super) fn switch(&self, name: &str) -> Option<bool> {
        self.value.get(name)?.as_bool()
    }

    pub(super) fn number(&self, names: &[&str], default: f64) -> f64 {
        names.iter().find_map(|name| self.value.get(name)?.as_f64()).unwrap_or(default)
    }

    pub(super) fn word(&self, names: &[&str]) -> Option<&str> {
        names.iter().find_map(|name| self.value.get(name)?.as_str())
    }

    pub(super) fn is(&self, name: &str, default: bool) -> bool {
        self.value.get(name).and_then(Value::as_bool).unwrap_or(default)
    }

    /// Words from a list, or from a text separated by `|`.
    pub(super) fn words(&self, name: &str) -> Vec<String> {
        match self.value.get(name) {
            Some(Value::String(text)) => text.split('|').map(|word| word.trim().to_lowercase()).collect(),
            Some(Value::Array(words)) => {
                words.iter().filter_map(|word| Some(word.as_str()?.trim().to_lowercase())).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The names of a classifier's classes, by number.
    ///
    /// # Errors
    /// The file names another number of classes.
    pub fn labels(&self, classes: usize) -> Result<Vec<String>, InputError> {
        // `transformers` omits default names.
        let Some(named) = self.value.get("id2label").and_then(Value::as_object) else {
            return Ok((0..classes).map(|i| format!("LABEL_{i}")).collect());
        };
        let label = |i: usize| Some(named.get(&i.to_string())?.as_str()?.to_owned());
        match (0..classes).map(label).collect() {
            Some(labels) if named.len() == classes => Ok(labels),
            _ => Err(self.wrong(&format!(
                "`id2label` does not name the {classes} classes of the weights; the files belong to two different models: fetch the model again"
            ))),
        }
    }

    /// The names that the configuration gives to its classes. Without any there are two classes with default names.
    pub fn own_labels(&self) -> Vec<String> {
        let named = self.value.get("id2label").and_then(Value::as_object);
        let count = named.map_or(2, serde_json::Map::len);
        self.labels(count).unwrap_or_default()
    }

    /// Whether each class has its own probability, independent of the other classes.
    pub fn many_labels(&self) -> bool {
        self.word(&["problem_type"]) == Some("multi_label_classification")
    }

    /// The number of heads and the width of each.
    pub(super) fn heads(&self) -> Result<(usize, usize), InputError> {
        let (heads, width) =
            (self.size(&["num_attention_heads", "n_heads", "num_heads", "n_head"])?, self.width()?);
        if heads == 0 || !width.is_multiple_of(heads) {
            return Err(
                self.wrong(&format!("a row of {width} numbers cannot be divided among {heads} heads"))
            );
        }
        Ok((heads, width / heads))
    }

    /// The base of rotary positions: under `rope_parameters`, where newer files have it (for a kind of layer, if there are several), else under
    /// `name`.
    ///
    /// # Errors
    /// The positions are scaled, or the base is not a number above 1.
    pub(super) fn rotation(&self, kind: Option<&str>, name: &str, usual: f64) -> Result<f64, InputError> {
        let new = self.value.get("rope_parameters").filter(|value| !value.is_null());
        let new = match kind {
            Some(kind) => new.and_then(|value| value.get(kind)),
            None => new,
        };
        if let Some(scaled) =
            new.and_then(|value| value.get("rope_type")?.as_str()).filter(|kind| *kind != "default")
        {
            return Err(
                self.wrong(&format!("`rope_type` is {scaled}; scaled rotary positions are not supported"))
            );
        }
        let found = new.and_then(|value| value.get("rope_theta")).or_else(|| self.value.get(name));
        match found.map(Value::as_f64) {
            None => Ok(usual),
            Some(Some(base)) if base > 1.0 => Ok(base),
            Some(_) => Err(self.wrong(&format!("expected a number above 1 at `{name}`"))),
        }
    }

    /// Whether layer `i` sees near tokens only: by `layer_types`, else by the pattern of the family.
    ///
    /// # Errors
    /// The list names too few layers, or a layer of another kind.
    pub(super) fn is_near(&self, i: usize) -> Result<bool, InputError> {
        if let Some(kinds) = self.value.get("layer_types").and_then(Value::as_array) {
            return match kinds.get(i).and_then(Value::as_str) {
                Some("sliding_attention") => Ok(true),
                Some("full_attention") => Ok(false),
                _ => Err(self.wrong(&format!(
                    "`layer_types` does not say full_attention or sliding_attention for layer {i}; fetch the model again"
                ))),
            };
        }
        let every = |names: &[&str], usual| self.size(names).unwrap_or(usual).max(1);
        Ok(match self.model_type()? {
            "modernbert" => !i.is_multiple_of(every(&["global_attn_every_n_layers"], 3)),
            "gemma3_text" => {
                !(i + 1).is_multiple_of(every(&["sliding_window_pattern", "_sliding_window_pattern"], 6))
            }
            _ => false,
        })
    }

    /// An error about the file.
    pub fn wrong(&self, reason: &str) -> InputError {
        wrong(&self.file, reason)
    }
}

/// Named tensors in f32.
pub struct Weights {
    tensors: HashMap<String, Tensor>,
    prefix: String,
    place: PathBuf,
}

/// The index of weights split over several files.
#[derive(Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

/// The files of a folder's weights, preferring safetensors.
///
/// # Errors
/// There are none, or the index is damaged.
pub fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    let one = folder.join("model.safetensors");
    if one.exists() {
        return Ok(vec![one]);
    }
    for index in ["model.safetensors.index.json", "pytorch_model.bin.index.json"] {
        let index = folder.join(index);
        let Ok(bytes) = read_regular(&index, SMALL) else { continue };
        let read: Index = serde_json::from_slice(&bytes).map_err(|error| {
            wrong(&index, format!("not an index of weights ({error}); fetch the model again"))
        })?;
        let names: BTreeSet<String> = read.weight_map.into_values().collect();
        if let Some(name) = names.iter().find(|name| name.contains(['/', '\\'])) {
            return Err(wrong(&index, format!("{} is not a file name", crate::input::excerpt(name))));
        }
        return Ok(names.iter().map(|name| folder.join(name)).collect());
    }
    let pickled = folder.join("pytorch_model.bin");
    if pickled.exists() {
        return Ok(vec![pickled]);
    }
    Err(wrong(folder, "no weights are in it; expected model.safetensors, its index, or pytorch_model.bin"))
}

impl Weights {
    /// Reads all weights of a folder.
    ///
    /// # Errors
    /// A file is missing, truncated or damaged, or contains NaN or infinity.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let files = weight_files(folder)?;
        let mut tensors = HashMap::new();
        for file in &files {
            for (name, tensor) in read(file)? {
                let float = matches!(tensor.dtype(), DType::F16 | DType::BF16 | DType::F32 | DType::F64);
                if !float {
                    continue;
                }
                let tensor =
                    finite(tensor).map_err(|why| wrong(file, format!("the tensor `{name}` {why}")))?;
                // Names in old checkpoints.
                let name = name.replace("LayerNorm.gamma", "LayerNorm.weight");
                tensors.insert(name.replace("LayerNorm.beta", "LayerNorm.bias"), tensor);
            }
        }
        let place = if files.len() == 1 { files[0].clone() } else { folder.into() };
        Ok(Weights { tensors, prefix: String::new(), place })
    }

    /// Reads a file of PyTorch that holds one product, as `linear.weight` and `linear.bias`.
    ///
    /// # Errors
    /// It is missing, truncated or damaged, or contains NaN or infinity.
    pub fn of_linear(file: &Path) -> Result<Self, InputError> {
        let mut tensors = HashMap::new();
        for (name, tensor) in read(file)? {
            let tensor = finite(tensor).map_err(|why| wrong(file, format!("the tensor `{name}` {why}")))?;
            tensors.insert(format!("linear.{name}"), tensor);
        }
        Ok(Weights { tensors, prefix: String::new(), place: file.into() })
    }

    /// Sets the prefix to the part of a name before `tail`: checkpoints of a whole task store the network under a prefix.
    ///
    /// # Errors
    /// No tensor has this name.
    pub(super) fn below(&mut self, tail: &str) -> Result<(), InputError> {
        let mut found: Vec<&str> = self.tensors.keys().filter_map(|name| name.strip_suffix(tail)).collect();
        found.sort_unstable();
        match found.first() {
            Some(prefix) => self.prefix = (*prefix).to_owned(),
            None => return Err(wrong(&self.place, format!("the tensor `{tail}` is missing; {ADVICE}"))),
        }
        Ok(())
    }

    /// Renames the tensors.
    ///
    /// # Errors
    /// Two get the same name.
    pub(super) fn rename(&mut self, other: impl Fn(&str) -> String) -> Result<(), InputError> {
        let mut renamed = HashMap::with_capacity(self.tensors.len());
        for (name, tensor) in std::mem::take(&mut self.tensors) {
            let other = other(&name);
            if renamed.insert(other.clone(), tensor).is_some() {
                let reason =
                    format!("the tensor `{other}` is in the file twice, with and without a prefix; {ADVICE}");
                return Err(self.wrong(&reason));
            }
        }
        self.tensors = renamed;
        Ok(())
    }

    /// An error about the files.
    pub(super) fn wrong(&self, reason: &str) -> InputError {
        wrong(&self.place, reason)
    }

    /// Whether a tensor is present.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(&format!("{}{name}", self.prefix))
    }

    /// Sets the prefix to that of a tensor whose name ends in `tail`; returns whether there is one.
    pub fn find_prefix(&mut self, tail: &str) -> bool {
        let found = self.tensors.keys().find_map(|name| name.strip_suffix(tail));
        if let Some(prefix) = found.map(str::to_owned) {
            self.prefix = prefix;
            return true;
        }
        false
    }

    /// The dimensions of a tensor.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        Some(self.tensors.get(&format!("{}{name}", self.prefix))?.dims())
    }

    pub(super) fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, InputError> {
        let name = format!("{}{name}", self.prefix);
        match self.tensors.get(&name) {
            Some(tensor) if tensor.dims() == shape => Ok(tensor.clone()),
            Some(tensor) => Err(wrong(
                &self.place,
                format!(
                    "the tensor `{name}` is {:?} and config.json requires {shape:?}; the files belong to two different models: {ADVICE}",
                    tensor.dims()
                ),
            )),
            None => Err(wrong(&self.place, format!("the tensor `{name}` is missing; {ADVICE}"))),
        }
    }

    /// The numbers of a tensor of `length` numbers in one dimension.
    ///
    /// # Errors
    /// It is missing or has another shape.
    pub fn column(&self, name: &str, length: usize) -> Result<Vec<f32>, InputError> {
        let column = self.get(name, &[length])?;
        column.to_vec1().map_err(|error| self.wrong(&format!("the tensor `{name}` cannot be read ({error})")))
    }

    pub(super) fn linear(&self, name: &str, from: usize, to: usize) -> Result<Linear, InputError> {
        let bias = self.get(&format!("{name}.bias"), &[to])?;
        Ok(Linear::new(self.product(name, from, to)?, Some(bias)))
    }

    pub(super) fn linear_without_bias(
        &self,
        name: &str,
        from: usize,
        to: usize,
    ) -> Result<Linear, InputError> {
        Ok(Linear::new(self.product(name, from, to)?, None))
    }

    /// A product, with its bias if there is one.
    pub(super) fn linear_of(&self, name: &str, from: usize, to: usize) -> Result<Linear, InputError> {
        if self.has(&format!("{name}.bias")) {
            self.linear(name, from, to)
        } else {
            self.linear_without_bias(name, from, to)
        }
    }

    /// Several products of one size that are stored in one tensor, one below the other.
    pub(super) fn packed(
        &self,
        name: &str,
        from: usize,
        to: usize,
        count: usize,
    ) -> Result<Vec<Linear>, InputError> {
        let weight = self.get(&format!("{name}.weight"), &[count * to, from])?;
        let bias = format!("{name}.bias");
        let bias = if self.has(&bias) { Some(self.get(&bias, &[count * to])?) } else { None };
        let part = |i: usize| -> candle_core::Result<Linear> {
            let weight = weight.narrow(0, i * to, to)?.t()?.contiguous()?.t()?;
            let bias = bias.as_ref().map(|bias| bias.narrow(0, i * to, to)?.contiguous()).transpose()?;
            Ok(Linear::new(weight, bias))
        };
        let parts = (0..count).map(part).collect::<candle_core::Result<_>>();
        parts.map_err(|error| self.wrong(&format!("the tensor `{name}` cannot be divided ({error})")))
    }

    /// The weights of a product, in the memory order in which the product reads them; otherwise every product would transpose them.
    fn product(&self, name: &str, from: usize, to: usize) -> Result<Tensor, InputError> {
        let name = format!("{name}.weight");
        let transposed = self.get(&name, &[to, from])?.t().and_then(|weight| weight.contiguous()?.t());
        transposed.map_err(|error| {
            wrong(&self.place, format!("the tensor `{name}` cannot be transposed ({error})"))
        })
    }

    pub(super) fn norm(&self, name: &str, width: usize, eps: f64) -> Result<LayerNorm, InputError> {
        let bias = self.get(&format!("{name}.bias"), &[width])?;
        Ok(LayerNorm::new(self.get(&format!("{name}.weight"), &[width])?, bias, eps))
    }

    pub(super) fn table(&self, name: &str, rows: usize, width: usize) -> Result<Embedding, InputError> {
        Ok(Embedding::new(self.get(&format!("{name}.weight"), &[rows, width])?, width))
    }
}

const ADVICE: &str = "fetch the model again";

fn read(file: &Path) -> Result<Vec<(String, Tensor)>, InputError> {
    if !file.exists() {
        return Err(wrong(file, format!("the index names it, but the file is missing; {ADVICE}")));
    }
    if file.extension().is_some_and(|end| end == "bin" || end == "pt") {
        return candle_core::pickle::read_all(file).map_err(|error| {
            let why = format!(
                "not a complete checkpoint of PyTorch 1.6 or newer ({}); {ADVICE}, or save it as safetensors",
                first_line(&error)
            );
            wrong(file, why)
        });
    }
    let read = candle_core::safetensors::load(file, &Device::Cpu);
    let read = read.map_err(|error| {
        wrong(file, format!("not a complete safetensors file ({}); {ADVICE}", first_line(&error)))
    })?;
    Ok(read.into_iter().collect())
}

/// candle's errors may contain a backtrace.
fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

/// Why a tensor cannot be used.
#[derive(Debug, thiserror::Error)]
enum TensorError {
    #[error("contains NaN or infinity; {ADVICE}")]
    NotFinite,
    #[error("cannot be read ({0})")]
    Unreadable(String),
}

fn finite(tensor: Tensor) -> Result<Tensor, TensorError> {
    let convert = || -> candle_core::Result<(Tensor, f32)> {
        let tensor = tensor.to_dtype(DType::F32)?.contiguous()?;
        let mean = tensor.abs()?.mean_all()?.to_scalar()?;
        Ok((tensor, mean))
    };
    match convert() {
        Ok((tensor, mean)) if mean.is_finite() => Ok(tensor),
        Ok(_) => Err(TensorError::NotFinite),
        Err(error) => Err(TensorError::Unreadable(first_line(&error))),
    }
}
