//! Formats what is printed: marks for statements, and the results of commands as text, JSON and TSV. Computes nothing but layout.
//!
//! This file describes long jobs in words (progress, rate, time left), and draws an SVG as PNG with a built-in font, so that it looks the same
//! on every machine. May use: everything below `cli` and `tui` (ARCHITECTURE.md).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use resvg::tiny_skia::{Pixmap, Transform};
use resvg::usvg::{FontResolver, Options, Tree, fontdb};

use crate::work::{Job, Progress};

pub mod agreement;
pub(crate) mod analysis;
mod cell;
pub(crate) mod decisions;
pub mod explanations;
pub mod marks;
pub(crate) mod means;
pub mod page;
pub mod plot;
pub(crate) mod reading;
pub mod safe;
pub mod search;
pub mod table;
pub(crate) mod verdicts;

/// Measures the rates of running jobs. Of each it knows two earlier moments; the rate counts from the first.
#[derive(Default)]
pub struct Rates(Vec<(Job, [(Instant, u64); 2])>);

impl Rates {
    /// Describes the progress of a job, with its rate in this process over the last 15 to 30 seconds.
    pub fn text(&mut self, progress: Progress, now: Instant) -> String {
        const RECENT: Duration = Duration::from_secs(15);
        let here = (now, progress.done);
        self.0.retain(|(job, [_, (_, done)])| *job != progress.job || *done <= progress.done);
        let at = self.0.iter().position(|(job, _)| *job == progress.job).unwrap_or_else(|| {
            self.0.push((progress.job, [here; 2]));
            self.0.len() - 1
        });
        let marks = &mut self.0[at].1;
        if now - marks[1].0 >= RECENT {
            *marks = [marks[1], here];
        }
        text(progress, progress.done - marks[0].1, now - marks[0].0)
    }
}

/// Describes the progress of a job of which `made` steps took `took`: `embedding 12,000/36,000 · 81/s · 4 min 56 s left`.
pub fn text(progress: Progress, made: u64, took: Duration) -> String {
    let Progress { job, done, total } = progress;
    match job {
        Job::Waiting { process: 0 } => {
            return "waiting for another process, which builds the same corpus".into();
        }
        Job::Waiting { process } => {
            return format!("waiting for process {process}, which builds the same corpus");
        }
        _ => {}
    }
    let rate = made as f64 / took.as_secs_f64().max(1e-3);
    let mut text = format!("{} {}", job.name(), thousands(done));
    if total > 0 {
        text.push_str(&format!("/{}", thousands(total)));
    }
    if made > 0 {
        let shown = if rate < 1.0 { format!("{rate:.1}") } else { thousands(rate as u64) };
        text.push_str(&format!(" · {shown}/s"));
        if total > done && rate > 0.0 {
            let left = ((total - done) as f64 / rate).ceil() as u64;
            text.push_str(&match left / 60 {
                0 => format!(" · {left} s left"),
                minutes => format!(" · {minutes} min {:02} s left", left % 60),
            });
        }
    }
    text
}

/// Writes a number with commas: `36,012`.
pub fn thousands(n: u64) -> String {
    let digits = n.to_string();
    let groups = digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok());
    groups.collect::<Vec<_>>().join(",")
}

/// DejaVu Sans Mono, with only the glyphs that frames and plots need.
static FONT: &[u8] = include_bytes!("../../assets/font/DejaVuSansMono-subset.ttf");
/// The most pixels of a PNG: about 270 MB of memory while it is drawn.
const MOST_PIXELS: f64 = 67_000_000.0;

/// The reason why there is no picture.
#[derive(Debug, thiserror::Error)]
pub enum PictureError {
    /// The picture would have too many pixels, or none.
    #[error("no PNG of {wide:.0}x{high:.0} pixels")]
    Size {
        /// The width of the picture.
        wide: f32,
        /// The height of the picture.
        high: f32,
    },
    /// It could not be drawn.
    #[error("could not draw the picture: {0}")]
    Drawing(String),
}

/// Draws an SVG as PNG with `scale` pixels per unit. Whole scales are sharpest.
///
/// # Errors
/// The drawing is not valid SVG, or the PNG would have no pixels or too many.
pub fn png(drawing: &str, scale: f32) -> Result<Vec<u8>, PictureError> {
    let pixels = draw(drawing, |_| scale)?;
    encode(&pixels)
}

/// Writes a PNG. It has a palette, which makes it a third as large, if its colours are opaque and 256 once three bits are rounded away.
fn encode(pixels: &Pixmap) -> Result<Vec<u8>, PictureError> {
    let failed = |reason: png::EncodingError| PictureError::Drawing(reason.to_string());
    let plain = || pixels.encode_png().map_err(|reason| PictureError::Drawing(reason.to_string()));
    if pixels.pixels().iter().any(|colour| colour.alpha() < u8::MAX) {
        return plain();
    }
    for bits in 0..=3 {
        let mut palette: HashMap<[u8; 3], u8> = HashMap::new();
        let round = |part: u8| (part >> bits << bits) | (part >> (8 - bits.max(1)) & ((1 << bits) - 1));
        let index = |colour: &resvg::tiny_skia::PremultipliedColorU8| {
            let colour = [colour.red(), colour.green(), colour.blue()].map(round);
            let next = u8::try_from(palette.len()).ok();
            palette.get(&colour).copied().or_else(|| {
                palette.insert(colour, next?);
                next
            })
        };
        let Some(indexed) = pixels.pixels().iter().map(index).collect::<Option<Vec<u8>>>() else { continue };
        let mut colours: Vec<([u8; 3], u8)> = palette.into_iter().collect();
        colours.sort_by_key(|(_, index)| *index);
        let mut out = Vec::new();
        let mut encoder = png::Encoder::new(&mut out, pixels.width(), pixels.height());
        encoder.set_color(png::ColorType::Indexed);
        encoder.set_palette(colours.into_iter().flat_map(|(colour, _)| colour).collect::<Vec<u8>>());
        encoder.set_compression(png::Compression::High);
        let mut writer = encoder.write_header().map_err(failed)?;
        writer.write_image_data(&indexed).map_err(failed)?;
        writer.finish().map_err(failed)?;
        return Ok(out);
    }
    plain()
}

/// A drawing in pixels.
#[derive(Clone, Debug, PartialEq)]
pub struct Pixels {
    /// Pixels from left to right.
    pub wide: usize,
    /// Pixels from top to bottom.
    pub high: usize,
    /// Red, green and blue of every pixel on white paper, row by row.
    pub colours: Vec<[u8; 3]>,
    /// The same as PNG.
    pub png: Vec<u8>,
}

/// Draws an SVG as large as fits into `room`, its columns and rows in pixels.
///
/// # Errors
/// The drawing is not valid SVG, or there is no room.
pub fn fitted(drawing: &str, room: (f32, f32)) -> Result<Pixels, PictureError> {
    // Rounding up must not leave the room.
    let scale = |(wide, high): (f32, f32)| ((room.0 - 1.0) / wide).min((room.1 - 1.0) / high);
    let pixels = draw(drawing, scale)?;
    let on_white = |colour: resvg::tiny_skia::PremultipliedColorU8| {
        let white = u8::MAX - colour.alpha();
        [colour.red(), colour.green(), colour.blue()].map(|part| part.saturating_add(white))
    };
    Ok(Pixels {
        wide: pixels.width() as usize,
        high: pixels.height() as usize,
        colours: pixels.pixels().iter().map(|colour| on_white(*colour)).collect(),
        png: encode(&pixels)?,
    })
}

/// Draws an SVG with a scale that depends on its width and height.
fn draw(drawing: &str, scale: impl Fn((f32, f32)) -> f32) -> Result<Pixmap, PictureError> {
    let mut fonts = fontdb::Database::new();
    let face = fonts.load_font_source(fontdb::Source::Binary(Arc::new(FONT))).first().copied();
    let face = face.ok_or_else(|| PictureError::Drawing("its font cannot be read".into()))?;
    let options = Options {
        fontdb: Arc::new(fonts),
        font_resolver: FontResolver {
            select_font: Box::new(move |_, _| Some(face)),
            select_fallback: FontResolver::default_fallback_selector(),
        },
        ..Options::default()
    };
    let failed = |reason: &dyn std::fmt::Display| PictureError::Drawing(reason.to_string());
    let tree = Tree::from_str(drawing, &options).map_err(|reason| failed(&reason))?;
    let scale = scale((tree.size().width(), tree.size().height()));
    let side = |length: f32| (length * scale).ceil();
    let (wide, high) = (side(tree.size().width()), side(tree.size().height()));
    // Also false if the scale is not a number.
    let fits = wide >= 1.0 && high >= 1.0 && f64::from(wide) * f64::from(high) <= MOST_PIXELS;
    let pixels = if fits { Pixmap::new(wide as u32, high as u32) } else { None };
    let mut pixels = pixels.ok_or(PictureError::Size { wide, high })?;
    resvg::render(&tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    Ok(pixels)
}

pub(crate) mod lists {
    //! Writes the lists and labels behind a table in the formats of other tools, for `--write FOLDER`.
    //!
    //! Every lane has one TREC run and one BERDS JSONL. Two qrels files have all labels of the questions, also of passages that no lane
    //! found: `labels.qrels` says whether a passage supports any statement, `labels.div.qrels` which ones (the iteration is the statement's
    //! number). `probabilities.jsonl` has the model's probabilities where its verdict counts; a passage whose verdict is `unclear` is not
    //! judged. From these files alone the printed means can be worked out again: `tools/measures/from_written.py`.

    use std::collections::{BTreeMap, BTreeSet};
    use std::fs;
    use std::io;
    use std::path::{Path, PathBuf};

    use serde_json::{Value, json};

    use super::PictureError;
    use crate::detect::{By, LabelSource, PairLabels};
    use crate::engine::{Outcome, Query, Recipe, Setup};
    use crate::measure::expected::Chances;
    use crate::measure::trec::{RankedPassage, write_run};
    use crate::question::Question;
    use crate::storage::replace;

    /// The reason why a file could not be saved.
    #[derive(Debug, thiserror::Error)]
    pub enum SaveError {
        /// The folder cannot be made.
        #[error("{} cannot be made", path.display())]
        Folder {
            /// The folder.
            path: PathBuf,
            /// The reason.
            source: io::Error,
        },
        /// The file cannot be written.
        #[error("{} cannot be written", path.display())]
        File {
            /// The file.
            path: PathBuf,
            /// The reason.
            source: io::Error,
        },
        /// The lists of a lane cannot be written as a TREC run.
        #[error("the run of {recipe}")]
        Run {
            /// The lane.
            recipe: String,
            /// The reason.
            source: io::Error,
        },
        /// A plot cannot be drawn.
        #[error("{name}")]
        Plot {
            /// The file's name.
            name: String,
            /// The reason.
            source: PictureError,
        },
    }

    /// The lists and labels collected so far.
    #[derive(Default)]
    pub struct Found {
        /// The lists of every lane, question by question.
        runs: Vec<Vec<(String, Vec<RankedPassage>)>>,
        /// The lists of every lane as BERDS writes them.
        results: Vec<Vec<Value>>,
        /// From question and passage to the label of every statement; `None` for a statement without one.
        labels: BTreeMap<(String, String), Vec<Option<bool>>>,
        /// From question and passage to the model's probabilities, where its verdict counts, and whether that is unclear.
        probabilities: BTreeMap<(String, String), (Value, bool)>,
    }

    impl Found {
        /// Adds the lists of one question, all its labels, and the model's probabilities that count.
        pub fn take(&mut self, outcome: &Outcome, setup: &Setup) {
            self.runs.resize_with(outcome.lanes.len(), Vec::new);
            self.results.resize_with(outcome.lanes.len(), Vec::new);
            let Query { question, source, .. } = &outcome.query;
            let labels = |id: &str| -> Vec<Option<bool>> {
                let known = question.perspectives.iter().map(|statement| setup.labelled(statement, id));
                let known: Vec<PairLabels> = known.collect();
                let by_hand = match source {
                    LabelSource::Model => return vec![None; known.len()],
                    LabelSource::Human => true,
                    LabelSource::Gold => false,
                    LabelSource::Auto => known.iter().any(PairLabels::by_hand),
                };
                known.iter().map(|pair| if by_hand { pair.human } else { pair.gold }).collect()
            };
            // Measures with an ideal order need every labelled passage, also those that no lane found.
            let pool = setup.label_pool(question, *source).into_iter().map(|(id, _)| id);
            let listed =
                outcome.lists().into_iter().flatten().flatten().map(|ranked| ranked.passage.id.clone());
            for id in pool.chain(listed).collect::<BTreeSet<String>>() {
                let labels = labels(&id);
                if labels.iter().any(Option::is_some) {
                    self.labels.insert((question.id.clone(), id), labels);
                }
            }
            for (lane, found) in outcome.lanes.iter().enumerate() {
                let Ok(list) = &found.ranking else { continue };
                let mut passages = Vec::new();
                let mut results = Vec::new();
                for ranked in list.iter() {
                    let (id, score) = (ranked.passage.id.clone(), f64::from(ranked.score));
                    let pair = (question.id.clone(), id.clone());
                    let verdicts = if outcome.judgments.owner(ranked.at) == By::Model {
                        let set = outcome.judgments.support(ranked.at);
                        if let Some(chances) = outcome.judgments.chances(ranked.at) {
                            let p = match &chances {
                                Chances::Two(p) => json!({"first, second, both, neither": p}),
                                Chances::Each(p) => json!({"each statement": p}),
                            };
                            self.probabilities.insert(pair, (p, set.is_none()));
                        }
                        set.map(|set| {
                            (0..question.perspectives.len()).map(|i| Some(set.contains(i))).collect()
                        })
                    } else {
                        self.labels.get(&pair).cloned()
                    };
                    results.push(json!({
                        "id": id,
                        "title": ranked.passage.title,
                        "text": ranked.passage.text,
                        "score": score,
                        "parallax-preds": verdicts,
                    }));
                    passages.push(RankedPassage { id, score, ..RankedPassage::default() });
                }
                self.runs[lane].push((question.id.clone(), passages));
                self.results[lane].push(json!({
                    "id": question.id,
                    "question": question.text,
                    "perspectives": question.perspectives,
                    "supports": question.supports,
                    "ctxs": results,
                }));
            }
        }

        /// Writes all files. Each is replaced as a whole. Returns the name of every lane's files, without ending.
        ///
        /// # Errors
        /// A file cannot be written, or an id contains white space, which TREC runs do not allow.
        pub fn write(
            &self,
            lanes: &[Recipe],
            questions: &[&Question],
            folder: &Path,
        ) -> Result<Vec<String>, SaveError> {
            make_folder(folder)?;
            let names = file_names(lanes);
            for ((recipe, name), (runs, results)) in
                lanes.iter().zip(&names).zip(self.runs.iter().zip(&self.results))
            {
                let mut run = Vec::new();
                write_run(&mut run, name, runs.iter().map(|(id, list)| (id.as_str(), list.as_slice())))
                    .map_err(|source| SaveError::Run { recipe: recipe.to_string(), source })?;
                put(folder, &format!("{name}.run"), &run)?;
                let lines: String = results.iter().map(|line| format!("{line}\n")).collect();
                put(folder, &format!("{name}.jsonl"), lines.as_bytes())?;
            }
            let question = |question: &&Question| {
                let Question { id, text, perspectives, supports, .. } = question;
                let line =
                    json!({"id": id, "question": text, "perspectives": perspectives, "supports": supports});
                format!("{line}\n")
            };
            put(folder, "questions.jsonl", questions.iter().map(question).collect::<String>().as_bytes())?;
            let (mut any, mut each) = (String::new(), String::new());
            for ((question, passage), labels) in &self.labels {
                // A passage without a yes is a no only if every statement has a label.
                if labels.contains(&Some(true)) || labels.iter().all(Option::is_some) {
                    any += &format!("{question} 0 {passage} {}\n", u8::from(labels.contains(&Some(true))));
                }
                for (i, label) in labels.iter().enumerate().filter_map(|(i, label)| Some((i, (*label)?))) {
                    each += &format!("{question} {} {passage} {}\n", i + 1, u8::from(label));
                }
            }
            put(folder, "labels.qrels", any.as_bytes())?;
            put(folder, "labels.div.qrels", each.as_bytes())?;
            let lines = self.probabilities.iter().map(|((question, passage), (p, unclear))| {
                let line = json!({"question": question, "passage": passage, "p": p, "unclear": unclear});
                format!("{line}\n")
            });
            put(folder, "probabilities.jsonl", lines.collect::<String>().as_bytes())?;
            Ok(names)
        }
    }

    /// Makes a folder, if it does not exist.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn make_folder(folder: &Path) -> Result<(), SaveError> {
        fs::create_dir_all(folder).map_err(|source| SaveError::Folder { path: folder.into(), source })
    }

    /// Writes a file as a whole.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn put(folder: &Path, name: &str, bytes: &[u8]) -> Result<(), SaveError> {
        let path = folder.join(name);
        replace(&path, bytes).map_err(|source| SaveError::File { path, source })
    }

    /// The names of the lanes' files, which are also the tags of their runs. They hold no sign with a meaning in a recipe, so that
    /// `--lane run:FILE` takes the name as it is, and no two are the same.
    fn file_names(lanes: &[Recipe]) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for recipe in lanes {
            let plain = |c: char| if c.is_ascii_alphanumeric() || "_.=".contains(c) { c } else { '-' };
            let name: String = recipe.to_string().chars().map(plain).take(150).collect();
            let mut own = name.clone();
            let mut number = 2;
            while names.contains(&own) {
                own = format!("{name}-{number}");
                number += 1;
            }
            names.push(own);
        }
        names
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_written_run_is_a_lane_by_its_own_name_and_no_two_lanes_share_a_file() {
            let recipes: Vec<Recipe> =
                ["bm25@k1=1.2,b=.75", "minilm+mmr@.75", "bm25@k1=1.2,b=.75", "bm25+rm3"]
                    .map(|text| text.parse().unwrap())
                    .to_vec();
            let names = file_names(&recipes);
            assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 4, "{names:?}");
            for name in names {
                let lane: Recipe = format!("run:out/{name}.run").parse().unwrap();
                assert_eq!(lane.run().unwrap().path, Path::new(&format!("out/{name}.run")));
                assert_eq!(lane, lane.plain(), "{name}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_of_few_colours_has_a_palette_and_the_same_pixels() {
        let square = r#"<rect width="9" height="9" fill="white"/><rect width="4" height="9" fill="red"/>"#;
        let drawing =
            format!(r#"<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9">{square}</svg>"#);
        let bytes = png(&drawing, 1.0).unwrap();
        let (pixels, indexed) = (Pixmap::decode_png(&bytes).unwrap(), 3);
        assert_eq!(bytes[25], indexed, "the colour type");
        assert_eq!([2, 7].map(|x| pixels.pixel(x, 2).unwrap().blue()), [0, 255]);
    }

    #[test]
    fn progress_has_a_rate_and_an_end() {
        let progress = Progress { job: Job::Embedding, done: 12_000, total: 36_000 };
        assert_eq!(
            text(progress, 6_000, Duration::from_secs(60)),
            "embedding 12,000/36,000 · 100/s · 4 min 00 s left"
        );
        let unknown = Progress { job: Job::Importing, done: 2_000, total: 0 };
        assert_eq!(text(unknown, 0, Duration::ZERO), "importing 2,000");
        let waiting = Progress { job: Job::Waiting { process: 4_711 }, done: 0, total: 1 };
        let message = "waiting for process 4711, which builds the same corpus";
        assert_eq!(text(waiting, 0, Duration::ZERO), message);
    }

    #[test]
    fn invalid_svg_and_too_many_pixels_are_errors() {
        assert!(matches!(png("<svg", 1.0), Err(PictureError::Drawing(_))));
        let drawing = "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\" height=\"10\"/>";
        assert!(png(drawing, 1.0).unwrap().starts_with(b"\x89PNG"));
        for scale in [0.0, -1.0, f32::NAN, f32::INFINITY, 1e6] {
            assert!(matches!(png(drawing, scale), Err(PictureError::Size { .. })), "{scale}");
        }
    }
}
