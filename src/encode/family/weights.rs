//! A model's weights: safetensors in one file or several, or `pytorch_model.bin`.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use candle_core::{DType, Device, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear};
use serde::Deserialize;

use super::wrong;
use crate::input::InputError;

/// Named tensors in full precision.
pub struct Weights {
    tensors: HashMap<String, Tensor>,
    prefix: String,
    told: PathBuf,
}

/// The index of weights in several files.
#[derive(Deserialize)]
struct Index {
    weight_map: HashMap<String, String>,
}

/// The files that hold a folder's weights: safetensors where there are any.
///
/// # Errors
/// There are none, or the index of several is damaged.
pub fn weight_files(folder: &Path) -> Result<Vec<PathBuf>, InputError> {
    let one = folder.join("model.safetensors");
    if one.exists() {
        return Ok(vec![one]);
    }
    for index in ["model.safetensors.index.json", "pytorch_model.bin.index.json"] {
        let index = folder.join(index);
        let Ok(bytes) = std::fs::read(&index) else { continue };
        let read: Index = serde_json::from_slice(&bytes)
            .map_err(|error| wrong(&index, format!("no index of weights ({error}); fetch the model anew")))?;
        let names: BTreeSet<String> = read.weight_map.into_values().collect();
        if let Some(name) = names.iter().find(|name| name.contains(['/', '\\'])) {
            return Err(wrong(&index, format!("{} is no file name", crate::input::excerpt(name))));
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
    /// A file is missing, cut short or damaged, or a number in it is none.
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
                // Old checkpoints call a norm's two halves so.
                let name = name.replace("LayerNorm.gamma", "LayerNorm.weight");
                tensors.insert(name.replace("LayerNorm.beta", "LayerNorm.bias"), tensor);
            }
        }
        let told = if files.len() == 1 { files[0].clone() } else { folder.into() };
        Ok(Weights { tensors, prefix: String::new(), told })
    }

    /// Looks below the name that stands before `tail`: checkpoints of a whole task keep the network inside.
    ///
    /// # Errors
    /// There is no such tensor.
    pub(super) fn below(&mut self, tail: &str) -> Result<(), InputError> {
        let mut found: Vec<&str> = self.tensors.keys().filter_map(|name| name.strip_suffix(tail)).collect();
        found.sort_unstable();
        match found.first() {
            Some(prefix) => self.prefix = (*prefix).to_owned(),
            None => return Err(wrong(&self.told, format!("the tensor `{tail}` is missing; {ADVICE}"))),
        }
        Ok(())
    }

    /// Gives the tensors other names.
    ///
    /// # Errors
    /// Two get the same.
    pub(super) fn rename(&mut self, other: impl Fn(&str) -> String) -> Result<(), InputError> {
        let mut renamed = HashMap::with_capacity(self.tensors.len());
        for (name, tensor) in std::mem::take(&mut self.tensors) {
            let other = other(&name);
            if renamed.insert(other.clone(), tensor).is_some() {
                let reason = format!("the tensor `{other}` is there twice, wrapped and not; {ADVICE}");
                return Err(self.wrong(&reason));
            }
        }
        self.tensors = renamed;
        Ok(())
    }

    /// What is wrong with the files.
    pub(super) fn wrong(&self, reason: &str) -> InputError {
        wrong(&self.told, reason)
    }

    /// Whether there is such a tensor.
    pub fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(&format!("{}{name}", self.prefix))
    }

    /// Looks where a tensor of this name lies, if there is one.
    pub fn look_above(&mut self, tail: &str) -> bool {
        let found = self.tensors.keys().find_map(|name| name.strip_suffix(tail));
        if let Some(prefix) = found.map(str::to_owned) {
            self.prefix = prefix;
            return true;
        }
        false
    }

    /// How many numbers a tensor has along each side.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        Some(self.tensors.get(&format!("{}{name}", self.prefix))?.dims())
    }

    pub(super) fn get(&self, name: &str, shape: &[usize]) -> Result<Tensor, InputError> {
        let name = format!("{}{name}", self.prefix);
        match self.tensors.get(&name) {
            Some(tensor) if tensor.dims() == shape => Ok(tensor.clone()),
            Some(tensor) => Err(wrong(
                &self.told,
                format!(
                    "the tensor `{name}` is {:?} and config.json asks for {shape:?}; the files are of two models: {ADVICE}",
                    tensor.dims()
                ),
            )),
            None => Err(wrong(&self.told, format!("the tensor `{name}` is missing; {ADVICE}"))),
        }
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

    /// The weights of a product, lying in memory the way the product reads them: the other way round they are turned at every one.
    fn product(&self, name: &str, from: usize, to: usize) -> Result<Tensor, InputError> {
        let name = format!("{name}.weight");
        let turned = self.get(&name, &[to, from])?.t().and_then(|weight| weight.contiguous()?.t());
        turned.map_err(|error| wrong(&self.told, format!("the tensor `{name}` cannot be laid out ({error})")))
    }

    pub(super) fn norm(&self, name: &str, width: usize, eps: f64) -> Result<LayerNorm, InputError> {
        let bias = self.get(&format!("{name}.bias"), &[width])?;
        Ok(LayerNorm::new(self.get(&format!("{name}.weight"), &[width])?, bias, eps))
    }

    pub(super) fn table(&self, name: &str, rows: usize, width: usize) -> Result<Embedding, InputError> {
        Ok(Embedding::new(self.get(&format!("{name}.weight"), &[rows, width])?, width))
    }
}

const ADVICE: &str = "fetch the model anew";

fn read(file: &Path) -> Result<Vec<(String, Tensor)>, InputError> {
    if !file.exists() {
        return Err(wrong(file, format!("the index names it and it is not there; {ADVICE}")));
    }
    if file.extension().is_some_and(|end| end == "bin") {
        return candle_core::pickle::read_all(file).map_err(|error| {
            let why = format!(
                "no whole checkpoint of PyTorch 1.6 or newer ({}); {ADVICE}, or save it as safetensors",
                first_line(&error)
            );
            wrong(file, why)
        });
    }
    let read = candle_core::safetensors::load(file, &Device::Cpu);
    let read = read.map_err(|error| {
        wrong(file, format!("no whole safetensors file ({}); {ADVICE}", first_line(&error)))
    })?;
    Ok(read.into_iter().collect())
}

/// candle's errors may carry a backtrace.
fn first_line(error: &candle_core::Error) -> String {
    error.to_string().lines().next().unwrap_or_default().to_owned()
}

fn finite(tensor: Tensor) -> Result<Tensor, String> {
    let summed = || -> candle_core::Result<(Tensor, f32)> {
        let tensor = tensor.to_dtype(DType::F32)?.contiguous()?;
        let sum = tensor.abs()?.mean_all()?.to_scalar()?;
        Ok((tensor, sum))
    };
    match summed() {
        Ok((tensor, mean)) if mean.is_finite() => Ok(tensor),
        Ok(_) => Err(format!("holds numbers that are none (NaN or infinite); {ADVICE}")),
        Err(error) => Err(format!("cannot be read ({})", first_line(&error))),
    }
}
