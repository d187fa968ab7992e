//! The metrics and the admin page of the backlogs of queues. Names of queues are data, and unbounded, so metrics have
//! ranks, and the page the names.

use std::sync::{Arc, Mutex, PoisonError};

use opentelemetry::{KeyValue, metrics::Meter};
use serde_json::{Value, json};
use trestle_queue::{Backlogs, QueueBacklog, QueueRole};
use trestle_runtime::{admin::AdminPage, task::Task};
use trestle_service::semconv::{self, Described};

use crate::count;

/// Ranks that the metrics have, which bounds their label.
const RANKS: usize = 5;
/// Most queues on the page.
const SHOWN_MAX: usize = 100;

/// The last measurement; none before the first.
type Last = Arc<Mutex<Option<Backlogs>>>;

/// The task that measures the queues of a role, and the page; the metrics are on `meter`.
pub(crate) fn measured(queue: &QueueRole, meter: &Meter) -> (Task, AdminPage) {
    let last = Last::default();
    observe(&last, meter, semconv::QUEUES, |backlogs| vec![(backlogs.queues as f64, Vec::new())]);
    observe(&last, meter, semconv::MESSAGES, |backlogs| {
        let messages: u64 = backlogs.with_messages.iter().map(|backlog| backlog.messages).sum();
        vec![(messages as f64, Vec::new())]
    });
    observe(&last, meter, semconv::DEEPEST_QUEUES, |backlogs| {
        ranked(backlogs.with_messages.iter().map(|backlog| backlog.messages as f64))
    });
    observe(&last, meter, semconv::OLDEST_MESSAGES, |backlogs| ranked(oldest(backlogs)));
    let (queue, measured) = (queue.clone(), Arc::clone(&last));
    let task = Task::new("queue-backlogs", count::EVERY, move || {
        let (queue, measured) = (queue.clone(), Arc::clone(&measured));
        async move {
            let backlogs = queue.backlogs().await?;
            *measured.lock().unwrap_or_else(PoisonError::into_inner) = Some(backlogs);
            Ok(false)
        }
    });
    (task, page(last))
}

/// Values with their labels.
type Points = Vec<(f64, Vec<KeyValue>)>;

fn observe(last: &Last, meter: &Meter, metric: Described, read: fn(&Backlogs) -> Points) {
    let last = Arc::clone(last);
    let gauge = meter.f64_observable_gauge(metric.name).with_unit(metric.unit);
    let gauge = gauge.with_description(metric.help).with_callback(move |observer| {
        if let Some(backlogs) = &*last.lock().unwrap_or_else(PoisonError::into_inner) {
            for (value, labels) in read(backlogs) {
                observer.observe(value, &labels);
            }
        }
    });
    let _ = gauge.build();
}

/// The first values, with their ranks.
fn ranked(values: impl Iterator<Item = f64>) -> Points {
    let ranks = (1_i64..).zip(values.take(RANKS));
    ranks.map(|(rank, value)| (value, vec![KeyValue::new(semconv::QUEUE_RANK, rank)])).collect()
}

/// The ages of the oldest messages in seconds, the greatest first.
fn oldest(backlogs: &Backlogs) -> impl Iterator<Item = f64> + use<> {
    let ages = backlogs.with_messages.iter().filter_map(|backlog| backlog.oldest_age);
    let mut ages: Vec<_> = ages.collect();
    ages.sort_unstable_by(|one, other| other.cmp(one));
    ages.into_iter().map(|age| age.as_secs_f64())
}

fn page(last: Last) -> AdminPage {
    let json = move || {
        let backlogs = last.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Backlogs { queues, with_messages } = backlogs.unwrap_or_default();
        let shown: Vec<_> = with_messages.iter().take(SHOWN_MAX).map(row).collect();
        let page =
            json!({ "queues": queues, "with_messages": with_messages.len(), "deepest": shown });
        format!("{page:#}\n")
    };
    let about = "the queues that have the most messages, as JSON";
    AdminPage { path: "/queues", about, json: Arc::new(json) }
}

fn row(backlog: &QueueBacklog) -> Value {
    let QueueBacklog { account, queue, messages, oldest_age } = backlog;
    json!({
        "account": account,
        "queue": queue,
        "messages": messages,
        "oldest_age_seconds": oldest_age.map(|age| age.as_secs()),
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn backlog(messages: u64, age: u64) -> QueueBacklog {
        let (account, queue) = ("acme".to_owned(), format!("q{messages}"));
        QueueBacklog { account, queue, messages, oldest_age: Some(Duration::from_secs(age)) }
    }

    #[test]
    fn ages_have_ranks_of_their_own_and_only_the_first_are_reported() {
        let with_messages = (1..=9).rev().map(|messages| backlog(messages, 100 - messages));
        let backlogs = Backlogs { queues: 20, with_messages: with_messages.collect() };

        let ages = ranked(oldest(&backlogs));

        assert_eq!(ages.len(), RANKS);
        assert_eq!(ages[0], (99.0, vec![KeyValue::new(semconv::QUEUE_RANK, 1)]));
        assert_eq!(ages[4].0, 95.0);
    }

    #[test]
    fn the_page_names_the_deepest_queues() {
        let backlogs = Backlogs { queues: 2, with_messages: vec![backlog(7, 30)] };
        let page = page(Arc::new(Mutex::new(Some(backlogs))));

        let shown: Value = serde_json::from_str(&(page.json)()).expect("JSON");

        assert_eq!(shown["queues"], 2);
        let queue = json!({
            "account": "acme", "queue": "q7", "messages": 7, "oldest_age_seconds": 30
        });
        assert_eq!(shown["deepest"], json!([queue]));
    }
}
