use super::*;

/// `name|text`, or the text alone.
fn views(reply: &str) -> Vec<String> {
    let found = perspectives(reply).into_iter();
    found.map(|p| p.name.map_or(p.text.clone(), |name| format!("{name}|{}", p.text))).collect()
}

#[test]
fn perspectives_are_found_however_they_were_written() {
    let two = ["Welfare|Animals suffer there.", "Science|Much is learnt: a lot."];
    for reply in [
        r#"[{"name":"Welfare","text":"Animals suffer there."},{"name":"Science","text":"Much is learnt: a lot."}]"#,
        r#"[{"text":"Animals suffer there.","name":"Welfare","id":1},{"Title":"Science","Description":"Much is learnt: a lot."}]"#,
        r#"{"perspectives":[{"perspective":"Welfare","text":"Animals suffer there."},{"name":"Science","perspective":"Much is learnt: a lot."}]}"#,
        r#"{"question":"Why?","result":{"views":[{"name":"Welfare","text":["Animals suffer","there."]},{"name":"Science","text":"Much is learnt: a lot."}]}}"#,
        r#"{"Welfare":"Animals suffer there.","Science":"Much is learnt: a lot."}"#,
        r#"["Welfare: Animals suffer there.", "**Science** – Much is learnt: a lot."]"#,
        "Sure, here they are:\n```json\n[{\"name\":\"Welfare\",\n  \"text\":\"Animals suffer\nthere.\"},\n {\"name\":\"Science\",\"text\":\"Much is learnt: a lot.\"},]\n```\nTell me [if] more {are} wanted.",
        r#"{"name":"Welfare","text":"Animals suffer there."}
           {"name":"Science","text":"Much is learnt: a lot."}"#,
        r#"[{"name":"Welfare","text":"Animals suffer there."},{"name":"Science","text":"Much is learnt: a lot."},{"name":"Cost","text":"It is"#,
        r#""[{\"name\":\"Welfare\",\"text\":\"Animals suffer there.\"},{\"name\":\"Science\",\"text\":\"Much is learnt: a lot.\"}]""#,
        "Here are two:\n\n1. **Welfare**: Animals suffer there.\n2. **Science:** Much is learnt:\n   a lot.\n\nI hope that this helps.",
        "1) Welfare: Animals suffer there.\n\n2) Science: Much is learnt: a lot.",
        "- Welfare: Animals suffer there.\n* **Science** Much is learnt: a lot.",
        "**1. Welfare**\nAnimals suffer there.\n\n**2. Science**\n\nMuch is learnt: a lot.",
        "# Views\n\n## Welfare\n\nAnimals suffer there.\n\n## 2. Science\nMuch is learnt: a lot.",
        "Perspective 1: Welfare: Animals suffer there.\nPerspective 2: Science: Much is learnt: a lot.",
        "Two perspectives:\nWelfare: Animals suffer there.\n\n**Science:** Much is learnt: a lot.",
        "1. Welfare:\nAnimals suffer there.\n2. Science:\n\nMuch is learnt: a lot.",
    ] {
        assert_eq!(views(reply), two, "{reply}");
    }
}

#[test]
fn perspectives_need_no_names_and_numbers_are_none() {
    let two = ["Animals suffer.", "Much is learnt."];
    for reply in [
        r#"["Animals suffer.", "Much is learnt."]"#,
        r#"{"1":"Animals suffer.","2":"Much is learnt."}"#,
        r#"{"perspective_1":"Animals suffer.","perspective_2":"Much is learnt."}"#,
        r#"[{"text":"Animals suffer."},{"name":"Perspective 2","text":"Much is learnt."}]"#,
        r#"{"arguments":["Animals suffer.","Much is learnt."]}"#,
        r#"{"pro":["Animals suffer."],"con":["Much is learnt."]}"#,
        "1. \"Animals suffer.\"\n2. “Much is learnt.”",
        "• Animals suffer.\n• Much is learnt.",
        "(1) Animals suffer.\n(2) Much is learnt.",
    ] {
        assert_eq!(views(reply), two, "{reply}");
    }
}

#[test]
fn what_is_no_list_of_perspectives_has_none() {
    for reply in [
        "",
        " \n ",
        "I'm sorry, but I cannot help with that.",
        "Note: I cannot help with that.",
        "[]",
        "```json\n[]\n```",
        "{}",
        "null",
        "\"no\"",
        "[1, 2, null]",
        r#"{"error": "overloaded"}"#,
        r#"{"error": {"message": "overloaded", "code": 5}}"#,
        r#"[{"name": "", "text": ""}, {"text": "…"}, "None"]"#,
        "[{'name': 'A', 'text': 'b'},\n {'name': 'C', 'text': 'd'}]",
        "1.\n2.\n3.",
        "\u{0}\u{1b}[31m\u{feff}🦁",
        "[[[[[[[[",
        "{\"a\":{\"a\":{\"a\":",
    ] {
        assert_eq!(views(reply), [""; 0], "{reply:?}");
    }
}

#[test]
fn copied_sentences_are_found_however_they_were_written() {
    for reply in [
        r#"[{"passage":1,"sentences":["Zoos teach.","They breed."]},{"passage":3,"sentences":["Few are freed."]}]"#,
        r#"{"relevant":[{"passage":"1","title":"Zoo","sentences":["Zoos teach.","They breed."],"reason":"On it."},{"id":3,"sentence":"Few are freed."}]}"#,
        r#"{"relevant":["1","3"],"sentences":["Zoos teach.","They breed.","Few are freed."]}"#,
        r#"{"Passage 1":["Zoos teach.","They breed."],"Passage 3":"“Few are freed.”"}"#,
        r#"["Zoos teach.","They breed.","Few are freed.",]"#,
        r#"Here: {"passage": 1, "sentences": ["Zoos teach.", "They breed.", "Few are freed.", "And he"#,
        "Passage 1:\n\"Zoos teach.\"\n\"They breed.\"\n\nPassage 3: \"Few are freed.\"",
        "1. “Zoos teach.” “They breed.”\n3. “Few are freed.”",
        "- Zoos teach.\n- They breed.\n- [3] Few are freed.",
    ] {
        assert_eq!(sentences(reply), ["Zoos teach.", "They breed.", "Few are freed."], "{reply}");
    }
}

#[test]
fn what_copies_nothing_has_no_sentences() {
    for reply in [
        "",
        "[]",
        "{\"relevant\": []}",
        "No passage helps.",
        "Zoos teach.",
        r#"[{"passage":1,"sentences":[]}]"#,
        r#"{"passage": 2, "sentences": ["cut of"#,
        "none",
        "[1, 3]",
        r#"["none"]"#,
    ] {
        assert_eq!(sentences(reply), [""; 0], "{reply:?}");
    }
}

#[test]
fn of_a_reply_cut_off_anywhere_only_whole_texts_are_read() {
    let cuts = |reply: &'static str| reply.char_indices().map(|(i, _)| &reply[..i]);
    let reply = "```json\n[{\"name\":\"Wölfe\",\"text\":\"One – two [3].\"},{\"name\":\"B\",\"text\":\"Four.\"}]\n```";
    let whole = views(reply);
    assert_eq!(whole, ["Wölfe|One – two [3].", "B|Four."]);
    for cut in cuts(reply) {
        assert!(whole.starts_with(&views(cut)), "{cut}");
    }
    let reply = r#"{"found":[{"passage":1,"sentences":["Zöos “teach”.","They breed."]},{"passage":3,"sentences":["Few."]}]}"#;
    let whole = sentences(reply);
    assert_eq!(whole, ["Zöos “teach”.", "They breed.", "Few."]);
    for cut in cuts(reply) {
        assert!(whole.starts_with(&sentences(cut)), "{cut}");
    }
    for cut in cuts("# A\n**1. Wölfe**: x\n\n* **B** – “y”\n(2) Perspective 3: C: z\nName: text") {
        let _ = (views(cut), sentences(cut));
    }
}

#[test]
fn a_model_that_repeats_itself_without_end_does_no_harm() {
    for unit in ["- ", "1: ", "# ", "**", "[1] ", "Perspective 1: ", "\"", "{\"a\":", "<think>"] {
        let reply = unit.repeat(5000);
        assert!(views(&reply).is_empty(), "{unit}");
        assert!(sentences(&reply).len() < 2, "{unit}");
    }
}

#[test]
fn a_copied_sentence_keeps_the_passages_own_marks() {
    assert_eq!(
        sentences(r#"["It is **not** so, he \"said\".", "“It is.”"]"#),
        ["It is **not** so, he \"said\".", "It is."]
    );
}
