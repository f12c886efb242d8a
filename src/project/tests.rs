use super::*;

fn unit(x: &[f32]) -> Vec<f32> {
    let length = dot(x, x).sqrt();
    x.iter().map(|x| x / length).collect()
}

/// Vectors without meaning, the same every time.
fn drawn(seed: u64) -> Vec<f32> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1u64 << 24) as f32 - 0.5
    };
    unit(&(0..16).map(|_| next()).collect::<Vec<_>>())
}

fn cos(a: &[f32], b: &[f32]) -> f32 {
    dot(a, b) / (dot(a, a) * dot(b, b)).sqrt()
}

fn each(a: &[f32], b: &[f32], f: impl Fn(f32, f32) -> f32) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| f(*a, *b)).collect()
}

fn project(x: &[f32], p: &[f32]) -> Vec<f32> {
    let share = dot(x, p) / dot(p, p);
    each(x, p, |x, p| x - share * p)
}

/// The definitions, written out on whole vectors.
fn by_definition(variant: Variant, q: &[f32], r: &[f32], p: &[f32], c: &[f32]) -> f32 {
    let (add, sub) = (|x: f32, y: f32| x + y, |x: f32, y: f32| x - y);
    match variant {
        Variant::None => cos(q, c),
        Variant::Add => cos(&each(r, p, add), c),
        Variant::AddPlus => cos(&each(q, p, add), c),
        Variant::Concat => cos(&[r, p].concat(), &[c, p].concat()),
        Variant::ConcatPlus => cos(&[q, p].concat(), &[c, p].concat()),
        Variant::Cast => cos(&each(q, p, sub), c),
        Variant::CastPlus => cos(&each(q, p, sub), &each(c, p, sub)),
        Variant::DualSum => cos(r, c) + cos(p, c),
        Variant::TriSum => cos(r, c) + cos(p, c) + cos(q, c),
        Variant::Pap => cos(&project(q, p), c),
        Variant::PapPlus => cos(&project(q, p), &project(c, p)),
    }
}

fn parts(seed: u64) -> (Vec<f32>, Vec<f32>, Vec<f32>) {
    (drawn(seed), drawn(seed + 1000), drawn(seed + 2000))
}

fn prepared(variant: Variant, q: &[f32], r: &[f32], p: &[f32]) -> Projection {
    let parts = Parts { q: q.to_vec(), r: r.to_vec(), p: Perspective::Text(p.to_vec()) };
    let (projection, degenerate) = Projection::new(variant, parts);
    assert_eq!(degenerate, None, "{variant}");
    projection
}

#[test]
fn every_variant_scores_as_its_definition_on_whole_vectors() {
    for seed in 1..40 {
        let (q, r, p) = parts(seed);
        for variant in Variant::ALL {
            let projection = prepared(variant, &q, &r, &p);
            for c in (0..20).map(|i| drawn(seed * 100 + i + 5000)) {
                let (found, expected) = (projection.score(&c), by_definition(variant, &q, &r, &p, &c));
                assert!((found - expected).abs() < 2e-6, "{variant}: {found} {expected}");
            }
        }
    }
}

#[test]
fn pap_worked_by_hand_takes_the_perspective_away() {
    // q lies between the topic (first axis) and the perspective (second axis).
    let (q, r, p) = ([0.6, 0.8, 0.0], [1.0, 0.0, 0.0], [0.0, 2.0, 0.0]);
    let pap = prepared(Variant::Pap, &q, &r, &p);
    let plus = prepared(Variant::PapPlus, &q, &r, &p);
    assert!((pap.score(&[1.0, 0.0, 0.0]) - 1.0).abs() < 1e-6);
    assert!((pap.score(&[0.6, 0.8, 0.0]) - 0.6).abs() < 1e-6);
    assert!((plus.score(&[0.6, 0.8, 0.0]) - 1.0).abs() < 1e-6);
    assert_eq!(plus.remove(&[0.6, 0.8, 0.0]), [1.0, 0.0, 0.0]);
    // A passage that is nothing but the perspective has nothing left to compare.
    assert_eq!(plus.score(&[0.0, 1.0, 0.0]), 0.0);
}

fn order(projection: &Projection, passages: &[Vec<f32>]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..passages.len()).collect();
    order.sort_by(|a, b| projection.score(&passages[*b]).total_cmp(&projection.score(&passages[*a])));
    order
}

#[test]
fn on_unit_vectors_add_ranks_as_dual_sum_concat_as_the_root_and_concat_plus_as_none() {
    for seed in 1..60 {
        let (q, r, p) = parts(seed);
        let passages: Vec<Vec<f32>> = (0..40).map(|i| drawn(seed * 77 + i)).collect();
        let ranks = |variant| order(&prepared(variant, &q, &r, &p), &passages);
        assert_eq!(ranks(Variant::Add), ranks(Variant::DualSum));
        assert_eq!(ranks(Variant::Concat), order(&prepared(Variant::None, &r, &r, &p), &passages));
        assert_eq!(ranks(Variant::ConcatPlus), ranks(Variant::None));
    }
}

#[test]
fn a_perspective_that_is_the_query_or_missing_is_the_query_without_its_root() {
    let (q, r, _) = parts(3);
    let c = drawn(9);
    let contrast = each(&q, &r, |q, r| q - r);
    for variant in Variant::ALL.into_iter().filter(|variant| variant.removes()) {
        for p in [Perspective::Query, Perspective::Missing] {
            let (projection, degenerate) = Projection::new(variant, Parts { q: q.clone(), r: r.clone(), p });
            assert_eq!(degenerate, None);
            assert!((projection.score(&c) - by_definition(variant, &q, &r, &contrast, &c)).abs() < 2e-6);
        }
    }
    let parts = Parts { q: q.clone(), r: r.clone(), p: Perspective::Query };
    let (sum, _) = Projection::new(Variant::DualSum, parts);
    assert!((sum.score(&c) - cos(&r, &c) - cos(&q, &c)).abs() < 2e-6);
}

#[test]
fn what_cannot_be_projected_ranks_as_none_and_says_why() {
    let (q, r, _) = parts(4);
    let c = drawn(11);
    let made = |variant, r: &[f32], p| Projection::new(variant, Parts { q: q.clone(), r: r.to_vec(), p });
    let cases = [
        (made(Variant::Pap, &r, Perspective::Text(vec![0.0; 16])), Degenerate::NoDirection),
        (made(Variant::PapPlus, &q, Perspective::Missing), Degenerate::NoDirection),
        (made(Variant::Pap, &r, Perspective::Text(q.clone())), Degenerate::NothingLeft),
        (made(Variant::Cast, &r, Perspective::Text(q.clone())), Degenerate::NothingLeft),
        (made(Variant::Add, &r, Perspective::Missing), Degenerate::NoPerspective),
    ];
    for ((projection, degenerate), expected) in cases {
        assert_eq!(degenerate, Some(expected));
        assert_eq!(projection.variant(), Variant::None);
        assert!((projection.score(&c) - cos(&q, &c)).abs() < 1e-6);
    }
}

#[test]
fn a_name_is_read_back_and_a_wrong_one_lists_the_right_ones() {
    for variant in Variant::ALL {
        assert_eq!(variant.to_string().parse(), Ok(variant));
    }
    assert_eq!("PAP+".parse(), Ok(Variant::PapPlus));
    assert!("papp".parse::<Variant>().unwrap_err().to_string().contains("dual-sum"));
}
