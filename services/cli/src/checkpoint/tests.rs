//! Tests of the module.

use serde_json::json;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct Bytes(u64);

impl State for Bytes {
    const COMMAND: &'static str = "copy";

    fn source_bytes(&self) -> u64 {
        self.0
    }
}

#[test]
fn resumes_the_same_job_only_and_names_what_changed() {
    let directory = tempfile::tempdir().unwrap();
    let (path, source) = (directory.path().join("progress"), directory.path().join("source"));
    fs::write(&source, "0123456789").unwrap();
    let open = |endpoint: &str, resume| {
        let job = json!({ "endpoint": endpoint, "table_created": null });
        let mut checkpoint = Checkpoint::new(job, Bytes(0));
        checkpoint.keep(path.clone(), Some(&source)).unwrap();
        checkpoint.load(resume).map(|()| checkpoint)
    };
    let refused = |endpoint, resume| match open(endpoint, resume) {
        Err(CliError::Usage(text)) => text,
        _ => panic!("is not refused"),
    };

    let mut first = open("here", false).unwrap();
    first.state.0 = 4;
    assert!(first.written().is_none());
    first.save().unwrap();

    assert_eq!(first.written(), Some(path.as_path()));
    assert_eq!(open("here", true).unwrap().state, Bytes(4));
    assert!(refused("here", false).contains("go on with --resume, or remove it"));
    assert!(refused("there", true).contains("another one (endpoint changed): to start again"));
    fs::write(&source, "x123456789").unwrap();
    assert!(refused("here", true).contains("has changed before the place"));
    for (text, rule) in [
        ("{", "damaged"),
        (r#"{"version":2,"job":{},"source_hash":null,"state":{}}"#, "has version 2"),
    ] {
        fs::write(&path, text).unwrap();
        let error = refused("here", true);
        assert!(error.contains(rule) && error.contains("to start again, remove"), "{error}");
    }
    first.remove().unwrap();
    assert_eq!(open("here", true).unwrap().state, Bytes(0));
}
