//! Makes a corpus's file of vectors: embeds its passages, or imports vectors computed elsewhere, from `.npy` or `.safetensors`, in the
//! order of the corpus.
//!
//! Imported vectors replace existing ones only after all checks: format, dimensions, every number, exactly one row for each passage.

use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use rayon::ThreadPool;

use super::array::{Array, ArrayError};
use super::encoder::{EncodeError, Encoder, Similarity};
use crate::corpus::library::Library;
use crate::corpus::{Corpus, PassageIx};
use crate::input::{self, BadLine, InputError, LISTED, read_at};
use crate::storage::checked::{Damaged, open_sum, replace_file, sum_file};
use crate::storage::move_file;
use crate::work::{Job, OnProgress, Progress, Stop, Stopped, on_all};

/// Rows between two reports of progress.
const BATCH: usize = 4_096;
/// The largest deviation of a row from unit length.
const UNIT: f64 = 1e-5;

/// Why vectors were not imported. Existing ones are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The vectors or their ids are invalid.
    #[error(transparent)]
    Input(#[from] InputError),
    /// The file has another format, or does not fit the corpus or the model.
    #[error(transparent)]
    Array(#[from] ArrayError),
    /// The rows could not be written.
    #[error("the vectors cannot be written ({0}); make room or name another folder with --data-dir")]
    Write(#[from] std::io::Error),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// The result of an import.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Imported {
    /// The number of rows.
    pub rows: usize,
    /// The smallest and the largest norm of a row.
    pub lengths: (f64, f64),
    /// The number of rows that were scaled to unit length.
    pub scaled: usize,
}

/// Writes the vectors in `file` to `place`, in the order of the corpus. `ids` names the passage of every row, one per line; without it,
/// row and passage have the same number. Vectors compared by cosine are scaled to unit length.
///
/// # Errors
/// See [`ImportError`]; `place` is then unchanged.
pub fn import(
    corpus: &Corpus,
    file: &Path,
    ids: Option<&Path>,
    (dimensions, similarity): (usize, Similarity),
    place: &Path,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Imported, ImportError> {
    let array = Array::open(file)?;
    if array.dimensions != dimensions {
        let expected = format!("rows of {dimensions} numbers, as the model returns them");
        return Err(ArrayError::unfit(file, expected, format!("rows of {}", array.dimensions)).into());
    }
    if array.rows != corpus.len() {
        let expected = format!("{} rows, one for each passage", corpus.len());
        return Err(ArrayError::unfit(file, expected, array.rows.to_string()).into());
    }
    let order = ids.map(|ids| order(corpus, ids, file, array.rows)).transpose()?;
    let unfinished = place.with_extension("f32.import");
    let unit = similarity == Similarity::Cosine;
    let written = write(&array, (order.as_deref(), unit), file, &unfinished, on_progress, stop);
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    let imported = written?;
    // Earlier codes would be read as those of the new vectors, so they go first; without an import they are computed again.
    for ending in ["i8", "i8.sums"] {
        match fs::remove_file(place.with_extension(ending)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
    }
    if let Err(error) = replace_file(&unfinished, place) {
        let _ = fs::remove_file(&unfinished);
        return Err(error.into());
    }
    // Unfinished vectors have no use any more. Left behind, they would only take room.
    for ending in ["f32.part", "f32.part.sums"] {
        let _ = fs::remove_file(place.with_extension(ending));
    }
    Ok(imported)
}

/// The row of every passage.
fn order(corpus: &Corpus, ids: &Path, file: &Path, rows: usize) -> Result<Vec<usize>, ImportError> {
    let (mut order, mut row) = (vec![None; corpus.len()], 0);
    input::lines(ids, |_, line| {
        let at = corpus.find(line.trim()).ok_or("the id of a passage of this corpus")?;
        if order[at.0 as usize].replace(row).is_some() {
            return Err("an id that no earlier line has".into());
        }
        row += 1;
        Ok(())
    })?;
    if row != rows {
        let expected = format!("{rows} ids, one for each row of {}", file.display());
        return Err(ArrayError::unfit(ids, expected, row.to_string()).into());
    }
    // There are as many ids as passages, each is known and occurs once, so every passage has a row.
    Ok(order.into_iter().flatten().collect())
}

fn write(
    array: &Array,
    (order, unit): (Option<&[usize]>, bool),
    file: &Path,
    unfinished: &Path,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<Imported, ImportError> {
    let mut out = BufWriter::with_capacity(1 << 20, File::create(unfinished)?);
    let mut imported = Imported { rows: array.rows, lengths: (f64::INFINITY, 0.0), scaled: 0 };
    let unreadable = |error: std::io::Error| InputError::unreadable(file, &error);
    let mut bad = Vec::new();
    for at in 0..array.rows {
        if at % BATCH == 0 {
            if stop.is_set() {
                return Err(Stopped.into());
            }
            on_progress(Progress { job: Job::Importing, done: at as u64, total: array.rows as u64 });
        }
        let row = order.map_or(at, |order| order[at]);
        let mut numbers = array.row(row).map_err(unreadable)?;
        let length = numbers.iter().map(|x| f64::from(*x).powi(2)).sum::<f64>().sqrt();
        if !length.is_finite() || length == 0.0 {
            let column = numbers.iter().position(|x| !x.is_finite());
            let found = column.map_or_else(
                || "only zeros".into(),
                |column| format!("{} in column {}", numbers[column], column + 1),
            );
            let expected = "a row of finite numbers that are not all 0".to_owned();
            bad.push(BadLine { file: file.into(), line: row + 1, expected, found });
            continue;
        }
        imported.lengths = (imported.lengths.0.min(length), imported.lengths.1.max(length));
        if unit && (length - 1.0).abs() > UNIT {
            imported.scaled += 1;
            numbers.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
        }
        out.write_all(&numbers.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>())?;
        if bad.len() > LISTED * 50 {
            break;
        }
    }
    if !bad.is_empty() {
        bad.sort_by_key(|bad| bad.line);
        return Err(InputError::BadLines(bad).into());
    }
    out.into_inner().map_err(|error| error.into_error())?.sync_all()?;
    on_progress(Progress { job: Job::Importing, done: array.rows as u64, total: array.rows as u64 });
    Ok(imported)
}

/// Passages a thread encodes between two writes to disk.
pub(super) const SHARE: usize = 8;

/// Why embedding a corpus ended early. The rows written so far stay.
#[derive(Debug, thiserror::Error)]
pub enum EmbedError {
    /// The model failed.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The rows could not be written.
    #[error(
        "the vectors cannot be written ({0}); make room or name another folder with --data-dir; the vectors computed so far are kept"
    )]
    Write(#[from] std::io::Error),
    /// A passage could not be read back.
    #[error(transparent)]
    Damaged(#[from] Damaged),
    /// Stopped on request.
    #[error(transparent)]
    Stopped(#[from] Stopped),
}

/// Writes the vectors of `corpus` to `place`, on all threads of `models`, in order. Resumes an interrupted call: rows are appended to
/// `KEY.f32.part`, which gets its final name after the last row; a kill loses at most one block. `KEY.f32.part.sums` holds the end and
/// the checksum of every block, so that a resumed call keeps only rows that it can prove.
///
/// # Errors
/// The model or the disk failed, or `stop` was set.
pub fn embed(
    corpus: &Corpus,
    encoder: &dyn Encoder,
    place: &Path,
    models: &ThreadPool,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), EmbedError> {
    let (part, proofs) = (place.with_extension("f32.part"), place.with_extension("f32.part.sums"));
    let row = encoder.dimensions() as u64 * 4;
    let append = |path: &Path| OpenOptions::new().create(true).append(true).read(true).open(path);
    let _remove_empty = RemoveEmpty([part.clone(), proofs.clone()]);
    let (mut file, mut proof) = (append(&part)?, append(&proofs)?);
    let (bytes, blocks) = proven(&file, &fs::read(&proofs)?, row)?;
    // A row cut short by a kill is computed again.
    file.set_len(bytes)?;
    proof.set_len(blocks * PROOF as u64)?;
    let total = corpus.len() as u64;
    let mut done = (bytes / row).min(total);
    let report = |done| on_progress(Progress { job: Job::Embedding, done, total });
    report(done);
    while done < total {
        if stop.is_set() {
            file.sync_all()?;
            return Err(Stopped.into());
        }
        let end = (done + (models.current_num_threads() * SHARE) as u64).min(total);
        let rows = on_all(models, (end - done) as usize, &Stop::never(), |i| {
            encoder.passage(&corpus.passage(PassageIx(done as u32 + i as u32)))
        });
        corpus.sound()?;
        let rows = rows.into_iter().collect::<Result<Vec<_>, EncodeError>>()?;
        let bytes: Vec<u8> = rows.iter().flatten().flat_map(|x| x.to_le_bytes()).collect();
        file.write_all(&bytes)?;
        done = end;
        proof.write_all(&[&(done * row).to_le_bytes(), &blake3::hash(&bytes).as_bytes()[..16]].concat())?;
        report(done);
    }
    file.sync_all()?;
    drop::<File>(file);
    sum_file(&part, place)?;
    move_file(&part, place)?;
    fs::remove_file(proofs)?;
    Ok(())
}

/// Begins the vectors of `place` with those of the longest corpus from which `corpus` has grown, so that [`embed`] computes only the others.
/// If that fails, there is nothing to go on from, and all are computed.
///
/// # Errors
/// `stop` was set.
pub fn carry_over(
    library: &Library,
    corpus: &Corpus,
    place: &Path,
    on_progress: OnProgress<'_>,
    stop: &Stop,
) -> Result<(), EmbedError> {
    let part = place.with_extension("f32.part");
    let earlier = library.grown_from(&corpus.fingerprint).unwrap_or_default();
    let found = earlier.into_iter().filter(|_| !part.exists()).find_map(|earlier| {
        let vectors = earlier.folder.join(place.file_name()?);
        vectors.exists().then(|| (vectors, earlier.passages()))
    });
    let Some((vectors, rows)) = found else { return Ok(()) };
    let total = corpus.len() as u64;
    let copied = begin_with((&vectors, rows), &part, stop, |done| {
        on_progress(Progress { job: Job::Embedding, done, total });
    });
    if let Err(error) = copied {
        tracing::warn!("{}: {error}", vectors.display());
        for path in [part, place.with_extension("f32.part.sums")] {
            let _ = fs::remove_file(path);
        }
    }
    if stop.is_set() { Err(Stopped.into()) } else { Ok(()) }
}

fn begin_with(
    (earlier, rows): (&Path, u64),
    part: &Path,
    stop: &Stop,
    report: impl Fn(u64),
) -> std::io::Result<()> {
    let (sums, file) = (open_sum(earlier)?, File::open(earlier)?);
    let row = sums.bytes() / rows.max(1);
    if row == 0 || row * rows != sums.bytes() {
        return Err(Damaged::new(earlier, format!("no {rows} rows of equal length")).into());
    }
    let (mut out, mut proof) = (File::create(part)?, File::create(part.with_extension("part.sums"))?);
    for first in (0..rows).step_by(BATCH).take_while(|_| !stop.is_set()) {
        let (at, end) = (first * row, (first + BATCH as u64).min(rows) * row);
        sums.check(at..end, |block, at| read_at(&file, block, at))?;
        let mut bytes = vec![0; (end - at) as usize];
        read_at(&file, &mut bytes, at)?;
        out.write_all(&bytes)?;
        proof.write_all(&[&end.to_le_bytes(), &blake3::hash(&bytes).as_bytes()[..16]].concat())?;
        report(end / row);
    }
    out.sync_all()
}

/// Removes files in which nothing was written, such as on a full disk.
pub(super) struct RemoveEmpty(pub(super) [PathBuf; 2]);

impl Drop for RemoveEmpty {
    fn drop(&mut self) {
        for path in &self.0 {
            if fs::metadata(path).is_ok_and(|about| about.len() == 0) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

/// The length of a proof: the end of a block and its checksum.
pub(super) const PROOF: usize = 24;

/// The bytes of unfinished vectors whose checksums are right, and the number of their blocks.
pub(super) fn proven(file: &File, proofs: &[u8], row: u64) -> std::io::Result<(u64, u64)> {
    let length = file.metadata()?.len();
    let (mut bytes, mut blocks) = (0, 0);
    for proof in proofs.chunks_exact(PROOF) {
        let end = proof[..8].try_into().map_or(0, u64::from_le_bytes);
        if end <= bytes || end > length || end % row > 0 {
            break;
        }
        let mut block = vec![0; (end - bytes) as usize];
        read_at(file, &mut block, bytes)?;
        if blake3::hash(&block).as_bytes()[..16] != proof[8..] {
            break;
        }
        (bytes, blocks) = (end, blocks + 1);
    }
    Ok((bytes, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::encode::array::tests::{npy, safetensors};
    use crate::encode::vectors::Vectors;

    const PASSAGES: &[u8] =
        b"{\"_id\":\"a\",\"text\":\"x\"}\n{\"_id\":\"b\",\"text\":\"x\"}\n{\"_id\":\"c\",\"text\":\"x\"}\n";

    /// Imports a file with these bytes and ids; returns the rows in the order of the corpus, or the message.
    fn imported(name: &str, bytes: &[u8], ids: Option<&str>) -> Result<(Imported, Vec<Vec<f32>>), String> {
        let (folder, corpus) = (tempfile::tempdir().unwrap(), Corpus::builtin("t", PASSAGES));
        let (file, place) = (folder.path().join(name), folder.path().join("m.f32"));
        fs::write(&file, bytes).unwrap();
        let named = ids.map(|ids| {
            let path = folder.path().join("ids.txt");
            fs::write(&path, ids).unwrap();
            path
        });
        let result = import(
            &corpus,
            &file,
            named.as_deref(),
            (2, Similarity::Cosine),
            &place,
            &|_| (),
            &Stop::never(),
        );
        let left: Vec<_> = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left.contains(&place), result.is_ok());
        assert!(!left.contains(&place.with_extension("f32.import")));
        let imported = result.map_err(|error| error.to_string())?;
        let rows = Vectors::open(&place, 2).unwrap();
        Ok((imported, (0..3).map(|i| rows.row(PassageIx(i)).unwrap().to_vec()).collect()))
    }

    #[test]
    fn vectors_that_cannot_be_replaced_and_unfinished_ones_stay() {
        let (folder, corpus) = (tempfile::tempdir().unwrap(), Corpus::builtin("t", PASSAGES));
        let (file, place) = (folder.path().join("v.npy"), folder.path().join("m.f32"));
        fs::write(&file, npy("<f4", &[3, 2], &ROWS)).unwrap();
        // A file cannot be moved onto a folder.
        fs::create_dir(&place).unwrap();
        let kept = ["f32.sums", "f32.part", "f32.part.sums"].map(|ending| place.with_extension(ending));
        for path in &kept {
            fs::write(path, "earlier").unwrap();
        }
        let shape = (2, Similarity::Cosine);
        assert!(import(&corpus, &file, None, shape, &place, &|_| (), &Stop::never()).is_err());
        for path in &kept {
            assert_eq!(fs::read_to_string(path).unwrap(), "earlier", "{path:?}");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "nothing unfinished is left");
    }

    const ROWS: [f32; 6] = [1.0, 0.0, 0.0, 1.0, 3.0, 4.0];

    #[test]
    fn rows_of_every_format_are_imported_and_scaled_to_unit_length() {
        for (name, bytes) in [
            ("v.npy", npy("<f4", &[3, 2], &ROWS)),
            ("v.npy", npy("<f2", &[3, 2], &ROWS)),
            ("v.safetensors", safetensors("F32", &[3, 2], &ROWS)),
            ("v.safetensors", safetensors("F16", &[3, 2], &ROWS)),
        ] {
            let (result, rows) = imported(name, &bytes, None).unwrap();
            assert_eq!(rows, [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]);
            assert_eq!(result, Imported { rows: 3, lengths: (1.0, 5.0), scaled: 1 });
        }
    }

    #[test]
    fn ids_put_rows_into_the_order_of_the_corpus() {
        let (_, rows) = imported("v.npy", &npy("<f4", &[3, 2], &ROWS), Some("c\na\nb\n")).unwrap();
        assert_eq!(rows, [[0.0, 1.0], [0.6, 0.8], [1.0, 0.0]]);
    }

    #[test]
    fn ids_that_do_not_match_are_reported_with_their_line() {
        let bytes = npy("<f4", &[3, 2], &ROWS);
        for (ids, line, expected) in [
            ("a\nb\nx\n", "ids.txt:3:", "the id of a passage of this corpus"),
            ("a\nb\na\n", "ids.txt:3:", "an id that no earlier line has"),
            ("a\nb\n", "ids.txt:", "3 ids, one for each row of"),
        ] {
            let message = imported("v.npy", &bytes, Some(ids)).unwrap_err();
            assert!(message.contains(line) && message.contains(expected), "{message}");
        }
    }

    #[test]
    fn rows_of_another_length_or_count_and_rows_without_finite_numbers_are_refused() {
        for (bytes, expected) in [
            (
                npy("<f4", &[2, 3], &ROWS),
                "expected rows of 2 numbers, as the model returns them, found rows of 3",
            ),
            (npy("<f4", &[2, 2], &ROWS[..4]), "expected 3 rows, one for each passage, found 2"),
            (
                npy("<f4", &[3, 2], &[1.0, 0.0, f32::NAN, 0.0, 1.0, 0.0]),
                "v.npy:2: expected a row of finite numbers that are not all 0, found `NaN in column 1`",
            ),
            (
                npy("<f2", &[3, 2], &[1.0, 0.0, 0.0, 1.0, 1.0, f32::INFINITY]),
                "v.npy:3: expected a row of finite numbers that are not all 0, found `inf in column 2`",
            ),
            (npy("<f4", &[3, 2], &[1.0, 0.0, 0.0, 0.0, 1.0, 0.0]), "found `only zeros`"),
        ] {
            let message = imported("v.npy", &bytes, None).unwrap_err();
            assert!(message.contains(expected), "{message}");
        }
    }

    #[test]
    fn unfinished_vectors_are_kept_as_far_as_their_checksums_are_right() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("v.f32.part");
        let bytes: Vec<u8> = (0..64).collect();
        let mut proofs = Vec::new();
        for end in [16usize, 48, 64] {
            let start = [0, 16, 48][[16, 48, 64].iter().position(|at| *at == end).unwrap()];
            proofs.extend((end as u64).to_le_bytes());
            proofs.extend(&blake3::hash(&bytes[start..end]).as_bytes()[..16]);
        }
        let kept = |bytes: &[u8], proofs: &[u8]| {
            fs::write(&path, bytes).unwrap();
            proven(&File::open(&path).unwrap(), proofs, 8).unwrap()
        };
        assert_eq!(kept(&bytes, &proofs), (64, 3));
        assert_eq!(kept(&bytes[..60], &proofs), (48, 2));
        assert_eq!(kept(&bytes, &[]), (0, 0));
        for at in 0..64 {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            let whole = [0, 16, 48].into_iter().filter(|start| *start <= at as u64).max().unwrap();
            assert_eq!(kept(&changed, &proofs).0, whole, "{at}");
        }
    }
}
