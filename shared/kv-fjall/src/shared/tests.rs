use std::io;
use std::sync::{Mutex, PoisonError};

use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use super::*;

/// The lines that are logged, with their fields.
#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<String>>>);

struct Line(String);

impl Visit for Line {
    fn record_debug(&mut self, field: &Field, value: &dyn std::fmt::Debug) {
        self.0.push_str(&format!(" {field}={value:?}"));
    }
}

impl Subscriber for Lines {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = Line(event.metadata().level().to_string());
        event.record(&mut line);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[test]
fn a_database_that_rejects_every_write_is_logged_by_the_stop_alone() {
    let lines = Lines::default();
    tracing::subscriber::with_default(lines.clone(), || {
        let full = fjall::Error::Io(io::Error::from_raw_os_error(28));
        not_now(&full, "a memtable cannot be sealed now");
        for _ in 0..7 {
            not_now(&fjall::Error::Poisoned, "a memtable cannot be sealed now");
        }
    });

    let lines = lines.0.lock().unwrap_or_else(PoisonError::into_inner);
    let error = "No space left on device (os error 28)";
    assert_eq!(*lines, [format!("WARN message=a memtable cannot be sealed now error={error}")]);
}
