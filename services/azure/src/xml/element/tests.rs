use proptest::prelude::*;

use super::*;

fn text_of(inside: &str) -> Result<String, Fault> {
    let document = format!("<A>{inside}</A>");
    Element::root(document.as_bytes(), "A")?.into_text().map(Cow::into_owned)
}

fn error(document: &str) -> String {
    let fault = parse(document.as_bytes(), ELEMENTS_MAX).expect_err(document);
    assert_eq!(fault.reason, Reason::InvalidXmlDocument, "{document}");
    fault.message
}

#[test]
fn text_is_kept_as_it_was_written_with_line_breaks() {
    for (written, text) in [
        ("", ""),
        (" a \r\n\tb\r", " a \r\n\tb\r"),
        ("a&#xD;&#10;b&#x1F600;", "a\r\nb\u{1f600}"),
        ("&lt;&gt;&amp;&quot;&apos;", "<>&\"'"),
        ("&amp;amp;&#38;lt;", "&amp;&lt;"),
        ("<![CDATA[<b>&amp;]]> c", "<b>&amp; c"),
        ("a<!-- not this -->b<?nor this?>c", "abc"),
        ("\u{feff}é\u{10ffff}", "\u{feff}é\u{10ffff}"),
        ("]]&gt; ]>", "]]> ]>"),
    ] {
        assert_eq!(text_of(written).as_deref(), Ok(text), "{written}");
    }
}

#[test]
fn accepts_every_document_start_that_clients_send() {
    for prolog in [
        "",
        "\u{feff}",
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>",
        "<?xml version='1.0' encoding='UTF-8'?>\n",
        "\u{feff}<?xml version='1.0'?>\r\n  ",
        "<?xml version=\"1.0\" encoding=\"utf-8\" standalone=\"yes\"?><!-- made by hand -->",
        "<?xml version='1.0' encoding='US-ASCII'?>",
    ] {
        let document =
            format!("{prolog}<A x='1' y='&lt;&#9;\"'>\n <B>b</B>\n <C /></A>\n<!-- end -->\n");
        let root = Element::root(document.as_bytes(), "A").expect(prolog);
        let names: Vec<_> = root.children.iter().map(|child| child.name.as_str()).collect();
        assert_eq!(names, ["B", "C"], "{prolog}");
    }
}

#[test]
fn rejects_malformed_documents() {
    for document in [
        "",
        " ",
        "text",
        "<A>",
        "<A><B></A></B>",
        "</A>",
        "<A/><B/>",
        "<A/>text",
        "text<A/>",
        "<![CDATA[ ]]><A/>",
        "<A/><![CDATA[]]>",
        "&#32;<A/>",
        "\u{feff}\u{feff}<A/>",
        "<A",
        "<A>&unknown;</A>",
        "<A>&</A>",
        "<A>a & b</A>",
        "<A>&#0;</A>",
        "<A>&#x1F;</A>",
        "<A>&#xD800;</A>",
        "<A>&#x110000;</A>",
        "<A>&#99999999999;</A>",
        "<A>&#+65;</A>",
        "<A>&#;</A>",
        "<A>\u{1}</A>",
        "<A>\u{ffff}</A>",
        "<A><![CDATA[\u{2}]]></A>",
        "<A><![CDATA[</A>",
        "<A><!-- </A>",
        "<A><!-- a -- b --></A>",
        "<A b></A>",
        "<A b=1></A>",
        "<A b='1' b='2'></A>",
        "<A b='<'></A>",
        "<A b='&unknown;'/>",
        "<A b='&#1;'/>",
        "<A b='\u{1}'/>",
        "<A><!-- \u{1} --></A>",
        "<A>a ]]> b</A>",
        "<A>text<B/></A>",
        "<B/><?xml version='1.0'?>",
        " <?xml version='1.0'?><A/>",
        "<?xml version='1.1'?><A/>",
        "<?xml encoding='utf-8'?><A/>",
        "<?xml version='1.0' encoding='utf-16'?><A/>",
    ] {
        error(document);
    }
    assert!(parse(b"<A>\xff</A>", ELEMENTS_MAX).is_err());
    assert!(parse(b"\xfe\xff\0<\0A\0/\0>", ELEMENTS_MAX).is_err());
}

#[test]
fn entities_of_a_document_are_never_expanded() {
    let laughs = "<!DOCTYPE A [<!ENTITY l \"ha\"><!ENTITY m \"&l;&l;\">]><A>&m;</A>";
    let file = "<!DOCTYPE A SYSTEM \"file:///etc/passwd\"><A>&f;</A>";

    for document in [laughs, file] {
        let message = error(document);
        assert!(message.contains("document type"), "{message}");
    }
}

#[test]
fn depth_and_number_of_elements_are_bounded() {
    let deep = |depth: usize| format!("{}{}", "<A>".repeat(depth), "</A>".repeat(depth));
    let wide = |children: usize| format!("<A>{}</A>", "<B/>".repeat(children));

    assert!(parse(deep(DEPTH_MAX).as_bytes(), ELEMENTS_MAX).is_ok());
    assert!(error(&deep(DEPTH_MAX + 1)).contains("12 elements deep"));
    assert!(parse(wide(ELEMENTS_MAX - 1).as_bytes(), ELEMENTS_MAX).is_ok());
    assert!(error(&wide(ELEMENTS_MAX)).contains("1000 elements"));
}

#[test]
fn an_error_quotes_a_bounded_part_of_the_document() {
    let long = "x".repeat(100_000);
    for document in [format!("<A>&{long};</A>"), format!("<A>t<{long}/></A>")] {
        assert!(error(&document).len() < 500);
    }
    let document = format!("<{long}/>");
    let fault = Element::root(document.as_bytes(), "A").expect_err("another name");
    assert!(fault.message.len() < 500);
}

proptest! {
    #[test]
    fn no_bytes_make_the_reader_fail_otherwise(
        document in "[<>&;#xA-C!\\[\\]/?='\" \\n\u{1}-\u{3}\u{e9}-]{0,60}"
    ) {
        let _ = parse(document.as_bytes(), ELEMENTS_MAX);
    }

    #[test]
    fn a_written_document_survives_parsing(text in "[\\t\\n\\r -\u{2ff}\u{1f600}-\u{1f64f}]{0,60}") {
        let allowed: String = text.chars().filter(|c| is_allowed(*c)).collect();
        let document = super::super::write::XmlWriter::document("A", |writer| {
            writer.text("B", &allowed);
        });
        let mut root = Element::root(document.as_bytes(), "A").expect("well-formed");
        let read = root.required("B").expect("B").into_text().expect("text");
        prop_assert_eq!(read, allowed);
    }
}
