//! How far a load is, noted beside its file.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use prost::Message as _;
use serde::{Deserialize, Serialize};
use trestle_proto::queue::v1::OutgoingMessage;
use xxhash_rust::xxh3::Xxh3;

use crate::{
    client::Random,
    errors::{CliError, Halt},
    files,
    output::{counted, say},
    prefix::Prefix,
};

/// A request that is sent again is recognised for ten minutes; less what its send may have taken.
const RECOGNISED: Duration = Duration::from_secs(500);

/// What is loaded, and where to: a load can go on only where these are the same.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) endpoint: String,
    pub(super) queue: String,
    /// A queue that was created again is another queue.
    pub(super) queue_created: Option<String>,
    pub(super) text: bool,
}

/// A place between two lines of the file.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Place {
    /// Bytes before it.
    pub(super) byte: u64,
    /// Lines before it.
    pub(super) line: u64,
    /// Messages before it.
    pub(super) messages: u64,
}

/// A batch whose request was made: some or all of it may be sent.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
struct UnderWay {
    end: Place,
    request_id: String,
}

/// See the module.
#[derive(Serialize, Deserialize)]
pub(super) struct Notes {
    pub(super) job: Job,
    /// The name of the load, in its request ids.
    load: String,
    /// Every message before this place is sent.
    pub(super) done: Place,
    /// Of the bytes before this place; not in notes of older versions.
    #[serde(default)]
    hash: Option<String>,
    /// The batch behind this place, or the one before it once that is sent; not in notes of older versions.
    #[serde(default)]
    under_way: Option<UnderWay>,
    #[serde(skip)]
    kept: Option<Kept>,
}

/// Notes on disk. There are none of a pipe, which cannot be read again.
struct Kept {
    path: PathBuf,
    prefix: Prefix,
    /// Whether they are there by now.
    is_there: bool,
}

impl Notes {
    /// The notes of the load of a file that goes on, or new ones, which are not written yet.
    pub(super) fn begin(job: Job, file: Option<&Path>, resume: bool) -> Result<Self, CliError> {
        let mut random = Random::from_system();
        let load = format!("{:016x}{:016x}", random.next(), random.next());
        let done = Place::default();
        let mut new = Self { job, load, done, hash: None, under_way: None, kept: None };
        let Some(file) = file else { return Ok(new) };
        let (path, prefix) = (files::beside(file, ".trestle-load"), Prefix::open(file)?);
        match files::load::<Self>(&path)? {
            Some(_) if !resume => Err(CliError::Usage(format!(
                "an interrupted load was found: `{}`: go on with --resume, or remove it",
                path.display()
            ))),
            Some(found) => found.go_on(&new.job, path, prefix),
            None => {
                if resume {
                    say("no interrupted load was found; begins at line 1");
                }
                new.kept = Some(Kept { path, prefix, is_there: false });
                Ok(new)
            }
        }
    }

    fn go_on(self, job: &Job, path: PathBuf, mut prefix: Prefix) -> Result<Self, CliError> {
        let shown = path.display();
        if self.job != *job {
            return Err(CliError::Usage(format!(
                "the interrupted load was another one (endpoint, queue or --text differ, or the queue was created \
                 again): to begin anew, remove `{shown}`"
            )));
        }
        match &self.hash {
            Some(hash) => prefix.verify(self.done.byte, hash, &path)?,
            None => say(&format!(
                "warning: whether the file changed is not known: `{shown}` is of an older version"
            )),
        }
        let twice = "may be sent twice";
        match (&self.under_way, self.under_way()) {
            (None, _) => say(&format!(
                "warning: up to 100 messages {twice}: `{shown}` is of an older version"
            )),
            (_, Some(batch)) if !is_recent(&path) => {
                let messages = self.messages_of(batch);
                say(&format!("warning: {messages} {twice}: `{shown}` is old"));
            }
            _ => {}
        }
        Ok(Self { kept: Some(Kept { path, prefix, is_there: true }), ..self })
    }

    /// The batch that is sent as far as is known.
    fn under_way(&self) -> Option<&UnderWay> {
        self.under_way.as_ref().filter(|batch| batch.end != self.done)
    }

    fn messages_of(&self, batch: &UnderWay) -> String {
        counted(batch.end.messages.saturating_sub(self.done.messages), "message")
    }

    /// Where the batch ends that was under way when the load was interrupted: the next has to end there too, to be
    /// the same.
    pub(super) fn batch_end(&self) -> Option<Place> {
        self.under_way().map(|batch| batch.end)
    }

    /// Notes that the messages between what is done and `end` are to be sent; the id of the request that does it.
    ///
    /// The notes come first: the name of the load must outlive its messages. That the batch before is sent, they say
    /// only now, since it would be recognised; so a batch costs one write.
    pub(super) fn begin_batch(
        &mut self,
        end: Place,
        messages: &[OutgoingMessage],
    ) -> Result<String, CliError> {
        let request_id = self.request_id(messages);
        let batch = UnderWay { end, request_id: request_id.clone() };
        if self.under_way() == Some(&batch) {
            // As old as they are: the server counts from the first time.
            return Ok(request_id);
        }
        if let Some(changed) = self.under_way().filter(|batch| batch.request_id != request_id) {
            let messages = self.messages_of(changed);
            say(&format!(
                "warning: lines that were under way have changed: {messages} may be sent twice"
            ));
        }
        self.under_way = Some(batch);
        self.save()?;
        Ok(request_id)
    }

    /// The same for the same messages at the same place only: the server does not look at the messages of a request
    /// that it knows, so changed ones would be lost.
    fn request_id(&self, messages: &[OutgoingMessage]) -> String {
        let mut hasher = Xxh3::new();
        hasher.update(self.load.as_bytes());
        hasher.update(&self.done.byte.to_be_bytes());
        for message in messages {
            hasher.update(&message.encode_length_delimited_to_vec());
        }
        format!("load-{:032x}", hasher.digest128())
    }

    /// That every message before `end` is sent.
    pub(super) fn sent(&mut self, end: Place) {
        self.done = end;
    }

    fn save(&mut self) -> Result<(), CliError> {
        let Some(kept) = &mut self.kept else { return Ok(()) };
        self.hash = Some(kept.prefix.hash(self.done.byte)?);
        let path = kept.path.clone();
        files::save(&path, self)?;
        if let Some(kept) = &mut self.kept {
            kept.is_there = true;
        }
        Ok(())
    }

    /// The failure of a load, with what is to be done about it.
    pub(super) fn stopped(&mut self, error: CliError) -> CliError {
        let is_there = self.kept.as_ref().is_some_and(|kept| kept.is_there);
        if is_there
            && self.under_way().is_none()
            && let Err(problem) = self.save()
        {
            // What they do not know to be sent is recognised.
            say(&format!("warning: {problem}"));
        }
        match (error, &self.kept) {
            (CliError::Usage(problem), Some(Kept { is_there: true, .. })) => {
                let what = "what stands before it is sent, mend the line and go on with --resume";
                CliError::Usage(format!("{problem}; {what}"))
            }
            (CliError::Usage(problem), Some(_)) => {
                CliError::Usage(format!("{problem}; nothing was sent"))
            }
            (error, kept) => error.halted(self.done.messages > 0, || Halt {
                endpoint: self.job.endpoint.clone(),
                done: format!("{} are sent", counted(self.done.messages, "message")),
                next: match kept {
                    Some(Kept { is_there: true, .. }) => "go on with --resume".to_owned(),
                    Some(_) => "repeat it".to_owned(),
                    None => "a pipe cannot be gone on with; up to 100 more may be sent".to_owned(),
                },
            }),
        }
    }

    /// Removes the notes of a load that ran to its end.
    pub(super) fn close(self) -> Result<(), CliError> {
        self.kept.map_or(Ok(()), |kept| files::remove(&kept.path))
    }
}

/// Whether the server still knows the request that was under way when the notes were written.
fn is_recent(notes: &Path) -> bool {
    let written = notes.metadata().and_then(|metadata| metadata.modified());
    let age = written.ok().and_then(|written| written.elapsed().ok());
    age.is_none_or(|age| age < RECOGNISED)
}

#[cfg(test)]
mod tests {
    use trestle_proto::queue::v1::outgoing_message::Body;

    use super::*;

    fn job(queue: &str) -> Job {
        let (endpoint, queue_created) = ("http://here".to_owned(), None);
        Job { endpoint, queue: queue.to_owned(), queue_created, text: false }
    }

    fn place(byte: u64) -> Place {
        Place { byte, line: byte / 7, messages: byte / 7 }
    }

    fn messages(texts: &[&str]) -> Vec<OutgoingMessage> {
        let body = |text: &str| Some(Body::Text(text.to_owned()));
        texts
            .iter()
            .map(|text| OutgoingMessage { body: body(text), ..Default::default() })
            .collect()
    }

    #[test]
    fn a_load_goes_on_under_the_request_id_of_its_batch_unless_that_changed() {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("lines");
        std::fs::write(&file, "x".repeat(1000)).expect("written");
        let begin = |queue, resume| Notes::begin(job(queue), Some(&file), resume);
        let mut first = begin("jobs", false).expect("new");
        let batches = [messages(&["a", "b"]), messages(&["c"]), messages(&["C"])];
        let (middle, end) = (place(700), place(800));
        let before = first.begin_batch(middle, &batches[0]).expect("written");
        first.sent(middle);
        let id = first.begin_batch(end, &batches[1]).expect("written");
        assert!(before != id && id.len() <= 64, "{id}");

        let mut resumed = begin("jobs", true).expect("they are there");
        assert_eq!((resumed.done, resumed.batch_end()), (middle, Some(end)));
        assert_eq!(resumed.begin_batch(end, &batches[1]).expect("as it was"), id);
        assert_ne!(resumed.begin_batch(end, &batches[2]).expect("written"), id, "changed");
        assert!(begin("others", true).is_err());
        assert!(begin("jobs", false).is_err(), "not begun anew unasked");

        resumed.close().expect("removed");
        let mut again = begin("jobs", false).expect("new");
        let again_id = again.begin_batch(middle, &batches[0]).expect("written");
        assert_ne!(again_id, before, "another load");
        assert!(begin("jobs", false).is_err(), "something may be sent");
        again.close().expect("removed");
        assert_eq!(begin("jobs", true).expect("new").done, Place::default());
    }
}
