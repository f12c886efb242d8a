//! What a narrow screen must not lose: the end of a verdict, the labels that count, a figure, the lane with the cursor.

use parallax::detect::LabelSource;

use super::*;

/// The frame's words, whatever lines they stand in, without borders.
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
    app.book.source = LabelSource::Model;
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
        let known = Known { model: Some(Ok(0.71)), gold: Some(false), human: None };
        app.book.write(PassageIx(0), 0, known);
        press(&mut app, "<Enter>");
        assert!(words(&app).contains("supports .71 (model, gold: no)"), "{width}: {}", words(&app));
    }
}

#[test]
fn which_labels_count_stands_above_every_screen() {
    for keys in ["", "<Enter>", "r", "y", "c", "b", "t"] {
        let mut app = by_model(40, 12);
        app.line = Input::new("Should public transport be free for everybody?".into());
        press(&mut app, keys);
        assert!(row(&app, "k 5").contains("· model"), "after {keys}");
        app.book.source = LabelSource::Gold;
        assert!(row(&app, "k 5").contains("· gold"), "after {keys}");
    }
}

#[test]
fn the_footer_says_what_to_do_about_verdicts_that_are_experimental_and_keeps_its_keys() {
    assert!(words(&by_model(80, 24)).ends_with("verdicts: experimental, s: gold"));
    for keys in ["", "<Enter>", "r", "c"] {
        let mut app = by_model(40, 12);
        press(&mut app, keys);
        let footer = row(&app, "? keys");
        assert!(footer.contains("experimental"), "after {keys}: {footer}");
        // Labels alone count now.
        app.book.source = LabelSource::Gold;
        assert!(!words(&app).contains("experimental"), "after {keys}");
    }
    let mut unlabelled = by_model(80, 24);
    if let Corpus::Open(opened) = &mut unlabelled.corpus {
        opened.labelled = false;
    }
    assert!(words(&unlabelled).ends_with("verdicts: experimental"));
}

#[test]
fn a_notice_is_wrapped_where_it_does_not_fit_one_line() {
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
fn a_passage_on_which_no_label_counts_carries_no_exclamation_mark() {
    let mut app = asked(140, 40);
    let known = Known { model: Some(Ok(0.9)), gold: Some(false), human: None };
    app.book.write(PassageIx(0), 0, known);
    app.book.source = LabelSource::Gold;
    assert!(words(&app).contains('!'));
    app.book.source = LabelSource::Human;
    assert!(!words(&app).contains('!'));
}

#[test]
fn a_lane_says_what_its_query_was_expanded_with_before_it_says_why() {
    let mut app = asked(140, 40);
    let mut list = List::clone(&app.lanes[0].ranking);
    let note = "claude: no reply to this prompt was recorded";
    let expansion = Expansion {
        kind: Kind::Keqe,
        form: Form::KeqeStatements,
        queries: Queries::Each(vec![QUESTION.into()]),
        added: Vec::new(),
        notes: vec![note.into()],
        tokens: None,
    };
    list.trace.steps.push(Step::Expand(Arc::new(expansion)));
    list.trace.note(note.into());
    app.lanes[0].ranking = Arc::new(list);
    assert!(words(&app).contains("KEQE, own statements (no model)"), "{}", words(&app));
}

#[test]
fn whoever_labels_by_hand_is_told_which_labels_count_instead() {
    for (source, told) in [
        (LabelSource::Model, Some("the model's verdicts count here, not your labels: s changes it")),
        (LabelSource::Gold, Some("gold labels count here, not your labels: s changes it")),
        (LabelSource::Auto, None),
    ] {
        let mut app = crate::labelling::open(80, 24);
        app.book.source = source;
        app.labelling.pace.done = 1;
        app.notice = None;
        press(&mut app, "<Esc>");
        assert_eq!(app.notice.as_deref(), told);
    }
}
