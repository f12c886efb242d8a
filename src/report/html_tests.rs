use super::*;
use crate::report::markup::assert_balanced;
use crate::report::plot;

fn table() -> Table {
    let cell = |mean, p| Some(Cell { mean, interval: Some((0.1, 0.9)), n: 217, p, ..Cell::default() });
    Table {
        suite: "berds",
        columns: vec!["MRecall@5".into(), "Cover".into()],
        rows: vec![
            Row { lane: "bm25".into(), cells: vec![cell(0.5, None), None], ..Row::default() },
            Row {
                lane: "minilm+mmr@0.75".into(),
                cells: vec![cell(0.75, Some(0.01)), cell(17.8, Some(0.4))],
                failed: vec![("q1".into(), "timed out".into())],
                judged: Some(0.98),
                ..Row::default()
            },
        ],
        questions: 217,
        k: Some(5),
        label_source: "gold".into(),
        notes: vec!["Only two-sided questions count.".into()],
        provenance: json!({"version": "0.1.0", "corpus": "a<b"}),
        ..Table::default()
    }
}

fn of(table: &Table) -> String {
    let section = Section {
        heading: "BERDS".into(),
        text: "One.\nStill one.\n\nTwo.".into(),
        tables: vec![table],
        plots: vec![plot::intervals(&[("bm25".into(), 0.5, 0.1, 0.9)])],
    };
    page("Report", "parallax eval", &[section])
}

#[test]
fn a_cell_has_its_value_interval_star_and_n() {
    let html = of(&table());
    assert_balanced(&html);
    assert!(
        html.contains("<b>0.7500</b><sup>*</sup><br><small><span>(.10–.90)</span> n&#160;217</small></td>"),
        "{html}"
    );
    assert!(html.contains("<b>17.80</b><br>"), "a p of .4 has no star");
    assert!(html.contains("<td>–</td>") && html.contains("(1 failed)"));
}

#[test]
fn the_remarks_of_the_table_stand_below_it() {
    let html = of(&table());
    for remark in ["217 questions · labels: gold", "counted as 0 (first q1: timed out)", "Only two-sided"] {
        assert!(html.contains(remark), "{remark}");
    }
    assert!(!html.contains("<li>lane"));
}

#[test]
fn text_is_split_into_paragraphs_at_empty_lines() {
    assert!(of(&table()).contains("<p>One. Still one.</p>\n<p>Two.</p>"));
}

#[test]
fn nothing_from_outside_becomes_markup() {
    let evil = "</pre></script><img src=x onerror=\"a()\">&'";
    let mut table = table();
    table.rows[0].lane = evil.into();
    table.columns[0] = evil.into();
    table.notes = vec![evil.into()];
    table.label_source = evil.into();
    table.rows[1].failed[0].1 = evil.into();
    table.provenance = json!({ evil: evil });
    let section =
        Section { heading: evil.into(), text: evil.into(), tables: vec![&table], ..Section::default() };
    let html = page(evil, evil, &[section.clone(), section.clone(), section]);
    assert_balanced(&html);
    assert!(!html.contains("<img"), "{html}");
}

#[test]
fn nothing_is_loaded_from_elsewhere() {
    let html = of(&table()).replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "src=", "@import", "url("] {
        assert!(!html.contains(outside), "{outside}");
    }
}

#[test]
fn the_same_tables_give_the_same_page() {
    assert_eq!(of(&table()), of(&table()));
}

#[test]
fn a_page_of_nothing_is_still_a_page() {
    let html = page("", "", &[]);
    assert_balanced(&html);
    assert!(html.contains("&quot;sources&quot;: []"), "{html}");
    assert_balanced(&of(&Table::default()));
}

#[test]
fn tables_that_share_their_provenance_name_it_once() {
    let (first, second) = (table(), Table { suite: "pir", ..table() });
    let section = Section { tables: vec![&first, &second, &first], ..Section::default() };
    let value = provenance("c", &[section]);
    assert_eq!(value["sources"][0]["suites"], json!(["berds", "pir"]));
    assert_eq!(value["sources"].as_array().unwrap().len(), 1);
}

#[test]
fn what_is_no_number_is_a_dash_and_short_rows_keep_their_columns() {
    let mut table = table();
    table.rows[0].cells = vec![Some(Cell { mean: f64::NAN, ..Cell::default() })];
    table.rows[1].judged = Some(0.5);
    let html = of(&table);
    let row = html.lines().find(|line| line.contains(">bm25</th>")).unwrap();
    assert_eq!(row.matches("<td>–</td>").count(), 3, "{row}");
}

#[test]
fn a_cell_without_an_interval_has_its_n_alone() {
    let mut table = table();
    table.rows[0].cells[0] = Some(Cell { mean: 0.5, n: 9, ..Cell::default() });
    assert!(of(&table).contains("<b>0.5000</b><br><small>n&#160;9</small>"));
}
