//! Whose passages stand at the top? The share of every value of an attribute among the first k against its share of the corpus, and
//! what is brought up where a question asks for one value (PIR, Figures 3, 5 and 6).
//!
//! Values are numbers from 0; what they stand for is known outside. Shares over a question set are taken of all its passages together.

/// One value among the first k and in the corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Standing {
    /// Passages of the first k that have it.
    pub top: usize,
    /// Passages among the first k.
    pub of: usize,
    /// Passages of the corpus that have it.
    pub corpus: usize,
    /// Passages of the corpus.
    pub passages: usize,
}

impl Standing {
    /// Its share of the first k; none where there are no passages.
    pub fn top_share(self) -> Option<f64> {
        share(self.top, self.of)
    }

    /// Its share of the corpus; none where that is empty.
    pub fn corpus_share(self) -> Option<f64> {
        share(self.corpus, self.passages)
    }

    /// log2 of the one share over the other: 1 is twice as often as in the corpus, −1 half as often, 0 the same. None where either
    /// share is 0 or there is none: no number says how much less than ever is never.
    pub fn over(self) -> Option<f64> {
        let (top, corpus) = (self.top_share()?, self.corpus_share()?);
        (top > 0.0 && corpus > 0.0).then(|| (top / corpus).log2())
    }
}

fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// Every value's standing. The counts are passages a value.
pub fn standings(top: &[usize], corpus: &[usize]) -> Vec<Standing> {
    let (of, passages) = (top.iter().sum(), corpus.iter().sum());
    top.iter()
        .zip(corpus)
        .map(|(top, corpus)| Standing { top: *top, of, corpus: *corpus, passages })
        .collect()
}

/// Total variation: half the sum of the differences of the shares. 0 is made up as the corpus is, 1 has nothing in common with it.
pub fn distance(standings: &[Standing]) -> Option<f64> {
    let differences: Option<Vec<f64>> =
        standings.iter().map(|one| Some((one.top_share()? - one.corpus_share()?).abs())).collect();
    differences.filter(|all| !all.is_empty()).map(|all| all.iter().sum::<f64>() / 2.0)
}

/// Counts of several questions added up, a value each.
pub fn pooled<'a>(counts: impl IntoIterator<Item = &'a [usize]>, values: usize) -> Vec<usize> {
    let mut sum = vec![0; values];
    for counts in counts {
        for (sum, count) in sum.iter_mut().zip(counts) {
            *sum += count;
        }
    }
    sum
}

/// What the questions that ask for one value brought up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Crossed {
    /// The value that is asked for.
    pub desired: usize,
    /// The questions that ask for it, by their place.
    pub questions: Vec<usize>,
    /// Passages of their first k, a value each.
    pub retrieved: Vec<usize>,
}

/// Desired × retrieved: a row for every value that some question asks for. A question that asks for several counts in each row.
/// `desired` and `retrieved` have an entry a question.
pub fn crossed(desired: &[Vec<usize>], retrieved: &[Vec<usize>], values: usize) -> Vec<Crossed> {
    let row = |value: usize| {
        let questions: Vec<usize> = (0..desired.len()).filter(|i| desired[*i].contains(&value)).collect();
        let counts = questions.iter().filter_map(|i| retrieved.get(*i)).map(Vec::as_slice);
        let retrieved = pooled(counts, values);
        (!questions.is_empty()).then_some(Crossed { desired: value, questions, retrieved })
    };
    (0..values).filter_map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_twice_as_frequent_as_in_the_corpus_is_over_by_one() {
        // 2 of 4 against 25 of 100; 2 of 4 against 50; none of 4 against 25.
        let all = standings(&[2, 2, 0], &[25, 50, 25]);
        assert_eq!((all[0].top_share(), all[0].corpus_share()), (Some(0.5), Some(0.25)));
        assert_eq!((all[0].over(), all[1].over()), (Some(1.0), Some(0.0)));
        assert_eq!((all[2].top_share(), all[2].over()), (Some(0.0), None), "never is not a number of times");
        assert_eq!(distance(&all), Some(0.25));
    }

    #[test]
    fn where_there_is_nothing_there_is_no_share() {
        let all = standings(&[0, 0], &[3, 1]);
        assert_eq!((all[0].top_share(), all[0].over(), distance(&all)), (None, None, None));
        assert_eq!(distance(&[]), None);
        assert_eq!(standings(&[1], &[0])[0].corpus_share(), None);
    }

    #[test]
    fn a_top_made_up_as_the_corpus_is_at_no_distance_and_one_of_a_rare_value_near_one() {
        assert_eq!(distance(&standings(&[1, 3], &[10, 30])), Some(0.0));
        assert_eq!(distance(&standings(&[4, 0], &[1, 99])), Some(0.99));
    }

    #[test]
    fn questions_count_in_the_row_of_every_value_they_ask_for_and_in_none_otherwise() {
        let rows = crossed(&[vec![0], vec![], vec![0, 2]], &[vec![3, 1, 0], vec![9, 9, 9], vec![0, 0, 4]], 3);
        let row = |desired, questions, retrieved| Crossed { desired, questions, retrieved };
        assert_eq!(rows, [row(0, vec![0, 2], vec![3, 1, 4]), row(2, vec![2], vec![0, 0, 4])]);
    }
}
