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
