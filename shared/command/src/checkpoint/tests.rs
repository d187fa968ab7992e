//! Checkpoints on disk: what resumes, what is rejected, and with which hint.

use serde_json::json;
use tempfile::TempDir;

use super::*;

#[derive(Debug, PartialEq, Serialize, Deserialize)]
struct CopiedBytes {
    bytes: u64,
}

impl CheckpointState for CopiedBytes {
    const COMMAND: &'static str = "import";

    fn source_bytes(&self) -> u64 {
        self.bytes
    }
}

/// A folder with a source file of ten bytes.
struct SourceFolder(TempDir);

impl SourceFolder {
    fn new() -> Self {
        let folder = Self(tempfile::tempdir().unwrap());
        folder.write("0123456789");
        folder
    }

    fn source(&self) -> PathBuf {
        self.0.path().join("source")
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("checkpoint")
    }

    fn write(&self, content: &str) {
        fs::write(self.source(), content).unwrap();
    }

    fn checkpoint(&self, bytes: u64) -> Checkpoint<CopiedBytes> {
        self.of_job(json!({ "server": "http://a", "table_name": "t" }), bytes)
    }

    fn of_job(&self, job: Value, bytes: u64) -> Checkpoint<CopiedBytes> {
        let mut checkpoint = Checkpoint::new(job, CopiedBytes { bytes });
        checkpoint.keep(self.path(), Some(&self.source())).unwrap();
        checkpoint
    }

    fn interrupted_at(bytes: u64) -> Self {
        let folder = Self::new();
        folder.checkpoint(bytes).save().unwrap();
        folder
    }

    /// The error of a resumption.
    fn rejection(&self) -> String {
        rejection(&mut self.checkpoint(0), true)
    }
}

fn rejection(checkpoint: &mut Checkpoint<CopiedBytes>, resume: bool) -> String {
    let before = checkpoint.state.bytes;
    let error = checkpoint.load(resume).unwrap_err();
    assert!(matches!(error, CliError::Usage(_)), "{error:?}");
    assert_eq!(checkpoint.state.bytes, before, "a rejected checkpoint changes nothing");
    error.to_string()
}

#[test]
fn a_saved_state_is_resumed() {
    for bytes in [0, 4, 10] {
        let folder = SourceFolder::interrupted_at(bytes);
        let mut resumed = folder.checkpoint(0);
        assert_eq!(resumed.written(), None);

        resumed.load(true).unwrap();

        assert_eq!(resumed.state, CopiedBytes { bytes });
        assert_eq!(resumed.written(), Some(folder.path().as_path()));
    }
}

#[test]
fn a_checkpoint_that_does_not_exist_starts_from_the_beginning() {
    let folder = SourceFolder::new();
    for resume in [true, false] {
        let mut checkpoint = folder.checkpoint(0);

        checkpoint.load(resume).unwrap();

        assert_eq!(checkpoint.state.bytes, 0);
        assert_eq!(checkpoint.written(), None);
        assert!(!folder.path().exists(), "nothing is written before a save");
    }
}

#[test]
fn an_existing_checkpoint_is_rejected_without_resume() {
    let folder = SourceFolder::interrupted_at(4);

    let error = rejection(&mut folder.checkpoint(0), false);

    assert!(error.contains("--resume"), "{error}");
    assert!(error.contains(&folder.path().display().to_string()), "{error}");
    assert!(folder.path().exists());
}

#[test]
fn a_checkpoint_of_another_job_is_rejected_with_each_difference() {
    let folder = SourceFolder::interrupted_at(4);
    let source = json!({ "account": "a", "--queues": "skip" });
    let job = json!({ "server": "http://b", "table_name": "t", "mode": 7, "source": source });
    let file = fs::read_to_string(folder.path()).unwrap();
    let of_source = r#""job":{"source":{"account":"a","--queues":"peek"},"#;
    fs::write(folder.path(), file.replacen(r#""job":{"#, of_source, 1)).unwrap();

    let error = rejection(&mut folder.of_job(job, 0), true);

    assert!(error.contains("server changed: was=`http://a`, is=`http://b`"), "{error}");
    assert!(error.contains("mode changed: was=`none`, is=`7`"), "{error}");
    assert!(error.contains("--queues changed: was=`peek`, is=`skip`"), "{error}");
    assert!(!error.contains("table name changed") && !error.contains('{'), "{error}");
}

#[test]
fn a_source_that_changed_before_the_position_is_rejected() {
    for changed in ["0x23456789", "012", ""] {
        let folder = SourceFolder::interrupted_at(4);
        folder.write(changed);

        let error = folder.rejection();

        assert!(error.contains("has changed before the position"), "{changed}: {error}");
    }
}

#[test]
fn a_source_that_changed_after_the_position_is_resumed() {
    for changed in ["0123xx", "0123", "0123456789abc"] {
        let folder = SourceFolder::interrupted_at(4);
        folder.write(changed);
        let mut resumed = folder.checkpoint(0);

        resumed.load(true).unwrap();

        assert_eq!(resumed.state.bytes, 4, "{changed}");
    }
}

#[test]
fn a_resumed_checkpoint_hashes_the_whole_prefix_at_its_next_save() {
    let folder = SourceFolder::interrupted_at(4);
    let mut resumed = folder.checkpoint(0);
    resumed.load(true).unwrap();
    resumed.state.bytes = 9;
    resumed.save().unwrap();
    drop(resumed);

    let mut again = folder.checkpoint(0);
    again.load(true).unwrap();
    assert_eq!(again.state.bytes, 9);
    folder.write("x123456789");
    assert!(folder.rejection().contains("has changed"));
}

#[test]
fn rejects_a_damaged_checkpoint_and_one_of_another_version() {
    let folder = SourceFolder::interrupted_at(4);
    let saved = fs::read_to_string(folder.path()).unwrap();
    let other = saved.replace("\"version\":1", "\"version\":2");
    assert_ne!(other, saved);
    for (text, expected) in [
        (other.as_str(), "has version 2, this command reads 1"),
        ("", "is damaged"),
        ("{}", "is damaged"),
        (saved.split_at(saved.len() / 2).0, "is damaged"),
        (&saved.replace("\"bytes\":4", "\"bytes\":-4"), "is damaged"),
    ] {
        fs::write(folder.path(), text).unwrap();

        let error = folder.rejection();

        assert!(error.contains(expected), "{text}: {error}");
        assert!(error.contains("remove `"), "{error}");
    }
}

#[test]
fn a_save_replaces_the_file_and_leaves_no_other() {
    let folder = SourceFolder::interrupted_at(2);
    folder.checkpoint(6).save().unwrap();

    let mut names: Vec<_> =
        fs::read_dir(folder.0.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();

    assert_eq!(names, ["checkpoint", "source"]);
    let mut resumed = folder.checkpoint(0);
    resumed.load(true).unwrap();
    assert_eq!(resumed.state.bytes, 6);
}

#[test]
fn a_source_that_shrank_under_the_command_fails_the_save() {
    let folder = SourceFolder::new();
    let mut checkpoint = folder.checkpoint(11);

    let error = checkpoint.save().unwrap_err();

    assert!(matches!(error, CliError::File { .. }), "{error:?}");
    assert_eq!(checkpoint.written(), None);
    assert!(!folder.path().exists());
}

#[test]
fn removal_is_idempotent_and_ends_the_interrupted_command() {
    let folder = SourceFolder::interrupted_at(4);
    let checkpoint = folder.checkpoint(4);

    checkpoint.remove().unwrap();
    checkpoint.remove().unwrap();

    assert!(!folder.path().exists());
    folder.checkpoint(0).load(false).unwrap();
}

#[test]
fn a_pipe_has_no_checkpoint() {
    let mut checkpoint = Checkpoint::new(json!({}), CopiedBytes { bytes: 3 });

    checkpoint.save().unwrap();
    checkpoint.load(true).unwrap();
    checkpoint.remove().unwrap();

    assert_eq!(checkpoint.state.bytes, 3);
    assert!(!checkpoint.is_kept() && !checkpoint.is_due());
    assert_eq!(checkpoint.written(), None);
}

#[test]
fn a_command_whose_checkpoint_cannot_be_written_continues_but_is_not_kept() {
    let folder = SourceFolder::new();
    let mut checkpoint = Checkpoint::new(json!({}), CopiedBytes { bytes: 0 });
    checkpoint.keep(folder.0.path().join("missing/checkpoint"), None).unwrap();
    assert!(checkpoint.is_kept());

    checkpoint.save_or_warn(&ProgressBar::hidden());

    assert!(!checkpoint.is_kept());
    assert!(matches!(checkpoint.save().unwrap_err(), CliError::File { .. }));
}

#[tokio::test(start_paused = true)]
async fn a_checkpoint_is_due_half_a_second_after_its_last_save() {
    let folder = SourceFolder::new();
    let mut checkpoint = folder.checkpoint(0);
    assert!(!checkpoint.is_due());
    tokio::time::advance(SAVE_EVERY).await;
    assert!(checkpoint.is_due());

    checkpoint.save().unwrap();

    assert!(!checkpoint.is_due());
    tokio::time::advance(SAVE_EVERY / 2).await;
    assert!(!checkpoint.is_due());
}

#[cfg(unix)]
#[test]
fn a_link_at_the_name_of_the_part_is_not_followed() {
    let folder = SourceFolder::new();
    let (victim, part) = (folder.0.path().join("victim"), folder.0.path().join("checkpoint~"));
    fs::write(&victim, "kept").unwrap();
    std::os::unix::fs::symlink(&victim, &part).unwrap();

    folder.checkpoint(5).save().unwrap();

    assert_eq!(fs::read_to_string(&victim).unwrap(), "kept");
    assert!(!part.exists() && folder.path().exists());
    // What an interrupted command left is replaced.
    fs::write(&part, "half of a checkpoi").unwrap();
    folder.checkpoint(6).save().unwrap();
    assert!(fs::read_to_string(folder.path()).unwrap().contains("6"));
}
