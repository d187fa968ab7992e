//! Answers in XML as records of fields: all that lists of queues, messages and policies need.

use quick_xml::{
    Reader,
    escape::resolve_predefined_entity,
    events::{BytesRef, Event},
};

/// Deepest nesting that is read.
const DEPTH_MAX: usize = 16;

/// An answer.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Answer {
    /// What is outside of records, by path below the root.
    pub(super) fields: Fields,
    /// Each record.
    pub(super) records: Vec<Fields>,
}

/// Texts of elements without children, by path such as `AccessPolicy/Start`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Fields(Vec<(String, String)>);

impl Fields {
    /// The text at a path.
    pub(super) fn get(&self, path: &str) -> Option<&str> {
        self.0.iter().find(|(other, _)| other == path).map(|(_, text)| text.as_str())
    }

    /// Names and texts of what is below a path.
    pub(super) fn below<'a>(&'a self, path: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0.iter().filter_map(move |(name, text)| {
            Some((name.strip_prefix(path)?.strip_prefix('/')?, text.as_str()))
        })
    }
}

/// An element that is open.
struct Open {
    name: String,
    text: String,
    has_children: bool,
}

/// Reads an answer whose records are elements of this name.
pub(super) fn parse(xml: &[u8], record: &str) -> Result<Answer, String> {
    let text = std::str::from_utf8(xml).map_err(|_| "is not UTF-8".to_owned())?;
    let mut reader = Reader::from_str(text.trim_start_matches('\u{feff}'));
    let (mut answer, mut open) = (Answer::default(), Vec::<Open>::new());
    let malformed = |position: u64| format!("is malformed at byte {position}");
    loop {
        let event = reader.read_event().map_err(|_| malformed(reader.error_position()))?;
        let here = reader.buffer_position();
        match event {
            Event::Start(start) => {
                let name = start.local_name().as_ref().to_owned();
                enter(&mut answer, &mut open, name, record)?;
            }
            Event::Empty(start) => {
                let name = start.local_name().as_ref().to_owned();
                enter(&mut answer, &mut open, name, record)?;
                leave(&mut answer, &mut open, record);
            }
            Event::End(_) => leave(&mut answer, &mut open, record),
            Event::Text(text) => {
                append(&mut open, &text.xml10_content());
            }
            Event::CData(text) => {
                append(&mut open, &text.xml10_content());
            }
            Event::GeneralRef(reference) => {
                append(&mut open, &resolve(&reference).ok_or_else(|| malformed(here))?);
            }
            Event::DocType(_) => return Err("has a document type".to_owned()),
            Event::Eof if open.is_empty() => return Ok(answer),
            Event::Eof => return Err("ends too early".to_owned()),
            Event::Decl(_) | Event::PI(_) | Event::Comment(_) => {}
        }
    }
}

fn resolve(reference: &BytesRef<'_>) -> Option<String> {
    if let Some(character) = reference.resolve_char_ref().ok()? {
        return Some(character.to_string());
    }
    resolve_predefined_entity(reference).map(str::to_owned)
}

fn append(open: &mut [Open], text: &str) {
    if let Some(innermost) = open.last_mut() {
        innermost.text.push_str(text);
    }
}

fn enter(
    answer: &mut Answer,
    open: &mut Vec<Open>,
    name: String,
    record: &str,
) -> Result<(), String> {
    if open.len() >= DEPTH_MAX {
        return Err(format!("is nested deeper than {DEPTH_MAX}"));
    }
    if name == record {
        answer.records.push(Fields::default());
    }
    if let Some(parent) = open.last_mut() {
        parent.has_children = true;
    }
    open.push(Open { name, text: String::new(), has_children: false });
    Ok(())
}

fn leave(answer: &mut Answer, open: &mut Vec<Open>, record: &str) {
    let Some(left) = open.pop() else { return };
    if left.has_children || left.name == record {
        return;
    }
    let inside = open.iter().rposition(|element| element.name == record);
    let above = open.iter().skip(inside.map_or(1, |at| at.saturating_add(1)));
    let mut path: Vec<&str> = above.map(|element| element.name.as_str()).collect();
    path.push(&left.name);
    let field = (path.join("/"), left.text);
    match (inside, answer.records.last_mut()) {
        (Some(_), Some(record)) => record.0.push(field),
        _ => answer.fields.0.push(field),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn queues_are_records_with_metadata_below_them() {
        let xml = "\u{feff}<?xml version=\"1.0\"?><EnumerationResults ServiceEndpoint=\"x\"><Queues>\
            <Queue><Name>a</Name><Metadata><k>v&amp;w</k><l/></Metadata></Queue>\
            <Queue><Name>b</Name><Metadata /></Queue></Queues><NextMarker>/x/c</NextMarker>\
            </EnumerationResults>";

        let answer = parse(xml.as_bytes(), "Queue").unwrap();

        assert_eq!(answer.fields.get("NextMarker"), Some("/x/c"));
        assert_eq!(answer.records.len(), 2);
        assert_eq!(answer.records[0].get("Name"), Some("a"));
        let metadata: Vec<_> = answer.records[0].below("Metadata").collect();
        assert_eq!(metadata, [("k", "v&w"), ("l", "")]);
        assert_eq!(answer.records[1].below("Metadata").count(), 0);
    }

    #[test]
    fn the_text_of_a_message_is_kept_to_the_letter() {
        let xml = "<QueueMessagesList><QueueMessage><MessageText> a &lt;b&gt; &#xD;\n\
            <![CDATA[<c>&]]>é </MessageText></QueueMessage></QueueMessagesList>";

        let answer = parse(xml.as_bytes(), "QueueMessage").unwrap();

        assert_eq!(answer.records[0].get("MessageText"), Some(" a <b> \r\n<c>&é "));
    }

    #[test]
    fn what_is_not_such_xml_is_refused() {
        let deep = format!("{}{}", "<a>".repeat(17), "</a>".repeat(17));
        for (xml, rule) in [
            ("<a>", "ends too early"),
            ("<a></b>", "malformed"),
            ("<a>&unknown;</a>", "malformed"),
            ("<!DOCTYPE a [<!ENTITY b \"c\">]><a>&b;</a>", "document type"),
            (deep.as_str(), "deeper"),
        ] {
            let error = parse(xml.as_bytes(), "r").unwrap_err();
            assert!(error.contains(rule), "{xml}: {error}");
        }
        assert!(parse(b"\xff", "r").is_err());
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(xml in "(<[/a-r!?\\[&;#x]{0,6}>|[&;#x0-9a<>\\[\\]]){0,30}") {
            let _ = parse(xml.as_bytes(), "r");
        }
    }
}
