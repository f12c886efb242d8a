//! Sentences copied from the question's first passages, and hypothetical answers, beside the question.
//!
//! A passage is read to its 128th word, words being what white space parts: a model's own count of tokens would make the prompt
//! depend on the model.

use std::collections::HashSet;

use unicode_segmentation::UnicodeSegmentation;

use super::talk::Talk;
use super::{Added, Ask, Expansion, Form, Kind, Listed, Queries, Source, keqe, prompts, replies, text};
use crate::corpus::PassageIx;
use crate::work::Stopped;

const FIRST: usize = 10;
const WORDS: usize = 128;
const COPIES: u32 = 2;
const ANSWERS: u32 = 2;
const SENTENCES: usize = 5;

pub(super) fn expand<E: From<Stopped>>(ask: &Ask<'_, E>) -> Result<Expansion, E> {
    let first = (ask.first)(FIRST)?;
    let made = |form, copies, added: Vec<Added>, notes, tokens| {
        let texts: Vec<&str> = added.iter().map(|added| added.text.as_str()).collect();
        let queries = Queries::joined(ask.question, copies, &texts);
        Expansion { kind: Kind::Csqe, form, queries, added, notes, tokens }
    };
    let (mut notes, mut tokens) = (Vec::new(), None);
    if let Some(chat) = ask.chat {
        let mut talk = Talk::new(chat, ask.stop);
        let mut written = copied(ask.question, &first, &mut talk)?;
        written.extend(keqe::answers(ask.question, ANSWERS, &mut talk)?);
        tokens = talk.tokens;
        if !written.is_empty() {
            notes.extend(talk.note(&format!("{} of {} replies are used", written.len(), COPIES + ANSWERS)));
            return Ok(made(Form::CsqeByModel, written.len(), written, notes, tokens));
        }
        notes.extend(talk.note("the first passages' own sentences are used"));
    }
    let taken = extracted(ask, &first)?;
    let mut form = Form::CsqeExtractive;
    if taken.is_empty() {
        notes.push("the question's own list has no sentence to add; the question is searched alone".into());
        form = Form::QuestionAlone;
    }
    Ok(made(form, 1, taken, notes, tokens))
}

/// What a model copies from the passages: one text a reply that has any.
fn copied(question: &str, first: &[Listed], talk: &mut Talk<'_>) -> Result<Vec<Added>, Stopped> {
    if first.is_empty() {
        talk.trouble("no passage to copy from".into());
        return Ok(Vec::new());
    }
    let contents: Vec<String> = first.iter().map(|listed| text::plain(&listed.passage.contents())).collect();
    let shown: Vec<&str> = contents.iter().map(|contents| text::cut(contents, WORDS)).collect();
    let folded: Vec<(PassageIx, String)> =
        first.iter().zip(&shown).map(|(listed, shown)| (listed.at, text::folded(shown))).collect();
    let holder = |sentence: &str| {
        let sentence = text::folded(sentence);
        folded.iter().find(|(_, passage)| passage.contains(&sentence)).map(|(at, _)| *at)
    };
    let asked = text::key(question);
    let mut written = Vec::new();
    for sample in 0..COPIES {
        let Some(reply) = talk.ask(&prompts::copies(question, &shown, sample))? else { continue };
        let mut sentences = replies::sentences(&reply.text);
        if sentences.is_empty() {
            // A model that forgets the form may still have copied; what it says of its own is not in a passage.
            let prose = reply.text.unicode_sentences().map(text::plain);
            sentences = prose.filter(|sentence| holder(sentence).is_some()).collect();
        }
        sentences.retain(|sentence| text::key(sentence) != asked);
        let source = Source::Model { model: reply.model, recorded: reply.recorded, sample };
        match joined(sentences.into_iter().map(|sentence| (holder(&sentence), sentence)), source) {
            Some(added) => written.push(added),
            None => talk.trouble("a reply without copied sentences".into()),
        }
    }
    Ok(written)
}

/// The sentences likest to the question: one text a passage that has any.
fn extracted<E: From<Stopped>>(ask: &Ask<'_, E>, first: &[Listed]) -> Result<Vec<Added>, E> {
    // A passage that repeats the question would be the likest, and add nothing.
    let mut seen = HashSet::from([text::key(ask.question)]);
    let mut sentences: Vec<(usize, String)> = Vec::new();
    for (i, listed) in first.iter().enumerate() {
        // Without its title, which has no stop behind it and would run into the first sentence.
        // In one line, as a line that ends would end a sentence.
        let contents = text::plain(&listed.passage.text);
        let all = text::cut(&contents, WORDS).unicode_sentences().map(text::plain);
        sentences
            .extend(all.filter(|sentence| text::is_new(&mut seen, sentence)).map(|sentence| (i, sentence)));
    }
    if sentences.is_empty() {
        return Ok(Vec::new());
    }
    if ask.stop.is_set() {
        return Err(Stopped.into());
    }
    let texts: Vec<&str> = sentences.iter().map(|(_, sentence)| sentence.as_str()).collect();
    let mut likest: Vec<(usize, f32)> = (ask.likeness)(&texts)?.into_iter().enumerate().collect();
    likest.retain(|(_, likeness)| likeness.is_finite());
    likest.sort_by(|a, b| b.1.total_cmp(&a.1));
    let taken: HashSet<usize> = likest.iter().take(SENTENCES).map(|(i, _)| *i).collect();
    let of = |passage: usize| {
        let all = sentences.iter().enumerate().filter(move |(_, (i, _))| *i == passage);
        all.filter(|(i, _)| taken.contains(i)).map(|(_, (_, sentence))| sentence.clone())
    };
    let added = first.iter().enumerate().filter_map(|(i, listed)| {
        let source = Source::Passage { at: listed.at, rank: i + 1 };
        joined(of(i).map(|sentence| (Some(listed.at), sentence)), source)
    });
    Ok(added.collect())
}

/// Sentences as one text that knows where each stands.
fn joined(sentences: impl Iterator<Item = (Option<PassageIx>, String)>, source: Source) -> Option<Added> {
    let mut added = Added::new(String::new(), source);
    for (holder, sentence) in sentences {
        if !added.text.is_empty() {
            added.text.push(' ');
        }
        let start = added.text.len();
        added.text.push_str(&sentence);
        added.sentences.push((start..added.text.len(), holder));
    }
    (!added.text.is_empty()).then_some(added)
}

#[cfg(test)]
mod tests;
