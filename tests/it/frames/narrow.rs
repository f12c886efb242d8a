//! A narrow screen must still show the end of a verdict, the label source, every figure, and the lane with the cursor.

use parallax::detect::LabelSource;

use super::*;

/// The frame's words without line breaks and borders.
fn words(app: &App) -> String {
    let text = frame(app, COLOURED).unwrap().dump(false);
    let text: String = text.chars().map(|c| if "│┃".contains(c) { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn row(app: &App, holds: &str) -> String {
    let text = frame(app, COLOURED).unwrap().dump(false);
    text.lines()
        .find(|line| line.contains(holds))
        .unwrap_or_else(|| panic!("no {holds} in\n{text}"))
        .to_owned()
}

fn by_model(width: u16, height: u16) -> App {
    let mut app = asked(width, height);
    app.judgments.source = LabelSource::Model;
    if let Corpus::Open(opened) = &mut app.corpus {
        opened.labelled = true;
        opened.detector = Some("experimental".into());
    }
    app
}

#[test]
fn a_verdict_is_wrapped_and_never_cut() {
    for width in [24, 30, 40, 60, 80, 140] {
        let mut app = by_model(width, 20);
        let known = PairLabels { gold: Some(false), ..said(0.91) };
        app.judgments.write(PassageIx(0), 0, known);
        press(&mut app, "<Enter>");
        assert!(words(&app).contains("supports .91 (model, gold: no)"), "{width}: {}", words(&app));
    }
}

#[test]
fn every_screen_names_the_label_source() {
    for keys in ["", "<Enter>", "r", "y", "c", "F", "t"] {
        let mut app = by_model(40, 12);
        app.line = Input::new("Should public transport be free for everybody?".into());
        press(&mut app, keys);
        assert!(row(&app, "k 5").contains("· model"), "after {keys}");
        app.judgments.source = LabelSource::Gold;
        assert!(row(&app, "k 5").contains("· gold"), "after {keys}");
    }
}

#[test]
fn the_footer_warns_of_experimental_verdicts_and_keeps_its_keys() {
    assert!(words(&by_model(80, 24)).ends_with("verdicts: experimental, L: gold"));
    for keys in ["", "<Enter>", "r", "c"] {
        let mut app = by_model(40, 12);
        press(&mut app, keys);
        let footer = row(&app, "? keys");
        assert!(footer.contains("experimental"), "after {keys}: {footer}");
        // Labels alone count now.
        app.judgments.source = LabelSource::Gold;
        assert!(!words(&app).contains("experimental"), "after {keys}");
    }
    let mut unlabelled = by_model(80, 24);
    if let Corpus::Open(opened) = &mut unlabelled.corpus {
        opened.labelled = false;
    }
    assert!(words(&unlabelled).ends_with("verdicts: experimental"));
}

#[test]
fn a_long_notice_is_wrapped() {
    let mut app = asked(40, 12);
    let notice = "two of your machines say different things of this passage: label it first";
    app.notice = Some(notice.into());
    assert!(words(&app).contains(notice), "{}", words(&app));
    app.notice = Some("much ".repeat(200));
    let text = frame(&app, COLOURED).unwrap().dump(false);
    assert_eq!(text.lines().filter(|line| line.contains("much")).count(), 3);
    assert!(text.contains("muc…"), "{text}");
}

#[test]
fn every_key_is_reported_in_full() {
    let app = help(40, 800);
    let printed = words(&app);
    for bound in app.keys.lines() {
        let help = bound.line.help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(printed.contains(&help), "{help}");
    }
}

#[test]
fn the_lane_with_the_cursor_is_whole_on_the_instruments() {
    let mut app = comparing(40, 12);
    for name in ["BM25", "Mini", "Hybr"] {
        let (head, means) = (row(&app, name), row(&app, "mean"));
        let column = head.chars().collect::<String>().find(name).unwrap();
        let figure: String = means.chars().skip(head[..column].chars().count()).take(5).collect();
        assert!(figure.contains('.'), "{head}\n{means}");
        press(&mut app, "<Tab>");
    }
    let mut app = sycophancy_screen(40, 12);
    let neutral = row(&app, "○.00");
    assert!(neutral.contains("BM25") && neutral.contains("○.00  ▲+.20 ▼-.60 shift +.80"), "{neutral}");
    press(&mut app, "<Tab><Tab>");
    assert!(words(&app).rsplit("shift").next().unwrap().contains("Hybrid"), "{}", words(&app));
}

#[test]
fn a_finished_comparison_shows_final_means() {
    let mut app = comparing(140, 36);
    assert!(words(&app).contains("means so far at k 5"));
    let one = app.comparing.questions[0].clone();
    app.comparing.questions[2] = one;
    assert!(words(&app).contains("means at k 5"));
}

#[test]
fn forms_show_complete_figures_and_no_box_without_a_curve() {
    let app = tuning(40, 12, 0);
    assert!(words(&app).contains("MRecall@5 Prec@5"), "{}", words(&app));
    assert!(words(&app).contains("diversify"));
    // The lane's list has a note, which is shown.
    assert!(words(&app).contains("2 of 4 replies are used"));
    let mut app = tuning(40, 12, 0);
    let mut list = List::clone(&app.lanes[1].ranking);
    list.trace = Trace::default();
    app.lanes[1].ranking = Arc::new(list);
    assert!(!words(&app).contains("against"), "{}", words(&app));
    assert_eq!(frame(&app, COLOURED).unwrap().dump(false).matches('┌').count(), 1);
}

#[test]
fn a_lane_shows_its_expansion_before_the_reason() {
    let mut app = asked(140, 40);
    let mut list = List::clone(&app.lanes[0].ranking);
    let note = "claude: no reply to this prompt was recorded";
    let expansion = Expansion {
        kind: Kind::Keqe,
        form: Form::KeqeStatements,
        queries: Queries::Each(vec![QUESTION.into()]),
        added: Vec::new(),
        notes: vec![note.into()],
        cost: Default::default(),
    };
    list.trace.steps.push(Step::Expand(Arc::new(expansion)));
    list.trace.note(note.into());
    app.lanes[0].ranking = Arc::new(list);
    assert!(words(&app).contains("┗ own statements (no model): claude"), "{}", words(&app));
}

#[test]
fn a_lane_of_terms_says_that_it_has_no_vectors_to_project() {
    let mut app = asked(140, 40);
    press(&mut app, "t<Tab><Tab>");
    assert!(words(&app).contains("BM25 has none"), "{}", words(&app));
}

#[test]
fn the_footer_says_which_labels_count_while_labelling() {
    for (source, printed) in [
        (LabelSource::Model, Some("the model's verdicts count here, not your labels: L changes it")),
        (LabelSource::Gold, Some("gold labels count here, not your labels: L changes it")),
        (LabelSource::Auto, None),
    ] {
        let mut app = crate::labelling::open(80, 24);
        app.judgments.source = source;
        app.labelling.pace.done = 1;
        app.notice = None;
        press(&mut app, "<Esc>");
        assert_eq!(app.notice.as_deref(), printed);
    }
}
