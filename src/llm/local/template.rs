//! A prompt in the form that a model was taught to answer: the file's Jinja template, or the plain text if it has none.

use minijinja::syntax::SyntaxConfig;
use minijinja::{Environment, Error, ErrorKind, context};

use crate::llm::Request;

/// No template takes a thousandth of it, and none can go round for ever.
const STEPS: u64 = 10_000_000;

/// How a conversation is written down.
pub(super) struct Template(Option<Environment<'static>>);

impl Template {
    /// Takes a template, if there is one.
    pub fn new(source: Option<&str>) -> Result<Self, String> {
        let Some(source) = source else { return Ok(Template(None)) };
        let wrong = |error: Error| {
            format!("its chat template cannot be read ({error}); take another file of this model")
        };
        let mut jinja = Environment::new();
        // As Python's transformers, for which these templates are written.
        let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build().map_err(wrong)?;
        jinja.set_syntax(syntax);
        jinja.set_unknown_method_callback(minijinja_contrib::pycompat::unknown_method_callback);
        jinja.add_function("raise_exception", |why: String| {
            Err::<String, _>(Error::new(ErrorKind::InvalidOperation, why))
        });
        jinja.set_fuel(Some(STEPS));
        jinja.add_template_owned("chat", source.to_owned()).map_err(wrong)?;
        Ok(Template(Some(jinja)))
    }

    /// The text that the model goes on from.
    pub fn prompt(&self, request: &Request, [begin, end]: &[String; 2]) -> Result<String, String> {
        let (system, prompt) = (request.system.as_str(), request.prompt.as_str());
        let both = if system.is_empty() { prompt.to_owned() } else { format!("{system}\n\n{prompt}") };
        let Some(jinja) = &self.0 else { return Ok(both + "\n\n") };
        let written = |messages: &[(&str, &str)]| {
            let messages: Vec<_> = messages
                .iter()
                .map(|(role, content)| context! { role => *role, content => *content })
                .collect();
            // A reply may be short, and thoughts would take its place.
            let values = context! {
                messages, add_generation_prompt => true, enable_thinking => false, bos_token => begin, eos_token => end
            };
            jinja.get_template("chat").and_then(|template| template.render(values))
        };
        let told = |error: Error| {
            format!("its chat template refuses the prompt ({error}); take another file of this model")
        };
        if system.is_empty() {
            return written(&[("user", prompt)]).map_err(told);
        }
        // Some models know no system's words and say so.
        written(&[("system", system), ("user", prompt)])
            .or_else(|_| written(&[("user", &both)]))
            .map_err(told)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(system: &str) -> Request {
        Request { system: system.into(), prompt: "Zoos?".into(), temperature: 0.0, max_tokens: 9, sample: 0 }
    }

    fn written(source: &str, system: &str) -> Result<String, String> {
        Template::new(Some(source))?.prompt(&request(system), &["<s>".into(), "</s>".into()])
    }

    #[test]
    fn a_template_is_rendered_as_pythons_transformers_would() {
        let source = "{{ bos_token }}{%- for m in messages %}\n    {% if m['role'].startswith('s') %}\nS:{{ m.content | trim }}\n    \
                      {% else %}\nU:{{ m['content'].strip() }}{{ eos_token }}\n    {% endif %}\n{% endfor %}\n\
                      {% if add_generation_prompt %}A:{% endif %}\n";
        assert_eq!(written(source, " brief ").unwrap(), "<s>S:brief\nU:Zoos?</s>\nA:");
    }

    #[test]
    fn a_model_that_knows_no_systems_words_is_told_them_by_the_user() {
        let source = "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}{{ messages[0].content }}";
        assert_eq!(written(source, "Be brief.").unwrap(), "Be brief.\n\nZoos?");
    }

    #[test]
    fn without_a_template_the_text_stands_plain() {
        let plain = Template::new(None).unwrap().prompt(&request("Be brief."), &Default::default());
        assert_eq!(plain.unwrap(), "Be brief.\n\nZoos?\n\n");
    }

    #[test]
    fn a_template_that_is_none_or_goes_round_for_ever_is_told() {
        assert!(Template::new(Some("{% if")).err().unwrap().contains("cannot be read"));
        let endless = "{% for a in range(9999) %}{% for b in range(9999) %}x{% endfor %}{% endfor %}";
        assert!(written(endless, "").unwrap_err().contains("refuses the prompt"));
    }
}
