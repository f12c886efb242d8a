//! What `--llm` names: the address of a server, or the file of a model.

use std::path::Path;
use std::sync::Arc;

use super::{BadEndpoint, Chat, Endpoint, OpenAi};
use crate::input::excerpt;

/// The model behind `gguf:FILE`, or behind the address of an OpenAI-compatible server and its name there.
///
/// # Errors
/// There can be none: the address is none, the file is no model that can be read or was given a name, or this build reads none.
pub fn named(llm: &str, model: &str) -> Result<Arc<dyn Chat>, BadEndpoint> {
    match llm.trim().strip_prefix("gguf:") {
        Some(_) if !model.trim().is_empty() => Err(BadEndpoint(format!(
            "a model from a GGUF file is named by its file, not {}; leave --llm-model (PARALLAX_LLM_MODEL) out",
            excerpt(model)
        ))),
        Some(file) => local(Path::new(file)),
        None => Ok(Arc::new(OpenAi::new(Endpoint::from_env(llm, model))?)),
    }
}

#[cfg(feature = "local-llm")]
fn local(file: &Path) -> Result<Arc<dyn Chat>, BadEndpoint> {
    let model = super::Local::open(file).map_err(|error| BadEndpoint(error.to_string()))?;
    Ok(Arc::new(model))
}

#[cfg(not(feature = "local-llm"))]
fn local(_: &Path) -> Result<Arc<dyn Chat>, BadEndpoint> {
    Err(BadEndpoint(
        "this build reads no GGUF files; make one that does with `cargo build --release --features local-llm`"
            .into(),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_and_an_address_are_told_apart() {
        let told =
            |llm: &str| named(llm, "m").map(|chat| chat.model().to_owned()).map_err(|bad| bad.to_string());
        assert_eq!(told("http://localhost:1/v1"), Ok("m".into()));
        assert!(told("model.gguf").unwrap_err().contains("--llm gguf:FILE"));
        let word =
            if cfg!(feature = "local-llm") { "none.gguf: no such file" } else { "--features local-llm" };
        assert!(named("gguf:none.gguf", "").err().unwrap().to_string().contains(word));
        assert!(told("gguf:none.gguf").unwrap_err().contains("leave --llm-model"));
    }
}
