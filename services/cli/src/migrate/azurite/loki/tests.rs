//! Tests of the module.

use super::*;

/// Stores documents of collections that do not begin with `-`.
#[derive(Default)]
struct Kept {
    after: u64,
    seen: Vec<(String, u64, String)>,
    ended: Vec<String>,
    refuse: bool,
}

impl DatabaseReader for Kept {
    fn select(&mut self, collection: &str) -> Option<u64> {
        (!collection.starts_with('-')).then_some(self.after)
    }

    fn document(&mut self, collection: &str, number: u64, json: &str) -> Result<(), CliError> {
        self.seen.push((collection.to_owned(), number, json.to_owned()));
        match self.refuse {
            true => Err(CliError::Refused),
            false => Ok(()),
        }
    }

    fn end(&mut self, collection: &str) -> Result<(), CliError> {
        self.ended.push(collection.to_owned());
        Ok(())
    }
}

const DATABASE: &str = r#"{"filename":"x","collections":[
    {"name":"-skipped","data":[{"a":[1,{"b":2}]}],"idIndex":[1]},
    {"name":"taken","data":[{"n":1}, {"n":2} ,{"n":3}],"maxId":3},
    {"name":"empty","data":[]}],"databaseVersion":1.5}"#;

fn read_text(text: &str, kept: &mut Kept) -> Result<(), String> {
    read_from(text.as_bytes(), "db", kept).map_err(|error| error.to_string())
}

#[test]
fn selected_documents_are_read_one_by_one_with_their_number() {
    let mut kept = Kept { after: 1, ..Kept::default() };

    read_text(DATABASE, &mut kept).unwrap();

    let taken = |number, json: &str| ("taken".to_owned(), number, json.to_owned());
    assert_eq!(kept.seen, [taken(2, r#"{"n":2}"#), taken(3, r#"{"n":3}"#)]);
    assert_eq!(kept.ended, ["taken", "empty"]);
}

#[test]
fn rejects_invalid_databases_with_the_position() {
    for (text, rule) in [
        ("", "EOF"),
        ("[]", "a LokiJS database"),
        ("{}", "missing field `collections`"),
        (r#"{"collections":{}}"#, "an array of collections"),
        (r#"{"collections":[1]}"#, "a collection"),
        (r#"{"collections":[{"data":[]}]}"#, "without a name"),
        (r#"{"collections":[{"name":1}]}"#, "expected a string"),
        (r#"{"collections":[{"name":"a","data":{}}]}"#, "an array of documents"),
        (r#"{"collections":[]} x"#, "trailing characters"),
        (&DATABASE[..DATABASE.len() / 2], "line 3"),
        (&DATABASE[..DATABASE.len() - 1], "EOF"),
    ] {
        let error = read_text(text, &mut Kept::default()).unwrap_err();
        assert!(error.contains("file=`db`") && error.contains(rule), "{text}: {error}");
    }
}

#[test]
fn rejects_an_endless_document_before_it_fills_the_memory() {
    let start = r#"{"collections":[{"name":"a","data":[{"x":""#.as_bytes();
    let endless = start.chain(io::repeat(b'x').take(1 << 30));

    let error = read_from(endless, "db", &mut Kept::default()).unwrap_err().to_string();

    assert!(error.contains("larger than 16777216 bytes"), "{error}");
}

#[test]
fn an_error_of_the_reader_stops_the_scan() {
    let mut kept = Kept { refuse: true, ..Kept::default() };

    let ended = read_from(DATABASE.as_bytes(), "db", &mut kept);

    assert!(matches!(ended, Err(CliError::Refused)));
    assert_eq!(kept.seen.len(), 1);
}
