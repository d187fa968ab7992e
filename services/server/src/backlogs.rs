//! The metrics and the admin page of the backlogs of queues. Names of queues are data, and unbounded, so metrics have
//! ranks, and the page the names.

use std::sync::Arc;

use opentelemetry::{KeyValue, metrics::Meter};
use serde_json::{Value, json};
use trestle_queue::{Backlogs, QueueBacklog, QueueRole};
use trestle_rpc::semconv;
use trestle_runtime::{admin::AdminPage, task::Task};

use crate::{
    measured::{Measured, Points, point},
    members::StoreMembers,
};

/// Ranks that the metrics have, which bounds their label.
const RANKS: usize = 5;
/// Most queues on the page.
const SHOWN_MAX: usize = 100;

/// The task that measures the queues of a role, and the page; the metrics are on `meter`. `members` gets the numbers of
/// queues.
pub(crate) fn measured(
    queue: &QueueRole,
    members: &StoreMembers,
    meter: &Meter,
) -> (Task, AdminPage) {
    let measured = Measured::<Backlogs>::default();
    measured.observe(meter, semconv::QUEUES, |backlogs| point(backlogs.queues as f64));
    measured.observe(meter, semconv::MESSAGES, |backlogs| point(messages(backlogs, |_| true)));
    measured.observe(meter, semconv::DEAD_LETTERS, |backlogs| {
        point(messages(backlogs, |backlog| backlog.is_dead_letter_queue))
    });
    measured.observe(meter, semconv::DEEPEST_QUEUES, |backlogs| {
        ranked(backlogs.with_messages.iter().map(|backlog| backlog.messages as f64))
    });
    measured.observe(meter, semconv::OLDEST_MESSAGES, |backlogs| ranked(oldest(backlogs)));
    let (queue, members) = (queue.clone(), members.clone());
    let task = measured.task("queue-backlogs", move || {
        let (queue, mut owners) = (queue.clone(), members.count_queues());
        async move {
            let backlogs = queue.backlogs(|account, queue| owners.count(account, queue)).await?;
            owners.publish();
            Ok(backlogs)
        }
    });
    (task, page(measured))
}

/// The messages of some of the queues.
fn messages(backlogs: &Backlogs, is_counted: fn(&QueueBacklog) -> bool) -> f64 {
    let counted = backlogs.with_messages.iter().filter(|backlog| is_counted(backlog));
    counted.map(|backlog| backlog.messages).sum::<u64>() as f64
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

fn page(measured: Measured<Backlogs>) -> AdminPage {
    let json = move || {
        let Backlogs { queues, with_messages } = measured.last().unwrap_or_default();
        let shown: Vec<_> = with_messages.iter().take(SHOWN_MAX).map(row).collect();
        let page =
            json!({ "queues": queues, "with_messages": with_messages.len(), "deepest": shown });
        format!("{page:#}\n")
    };
    let about = "the queues that have the most messages, as JSON";
    AdminPage { path: "/queues", about, json: Arc::new(json) }
}

fn row(backlog: &QueueBacklog) -> Value {
    let QueueBacklog { account, queue, messages, oldest_age, is_dead_letter_queue } = backlog;
    json!({
        "account": account,
        "queue": queue,
        "messages": messages,
        "oldest_age_seconds": oldest_age.map(|age| age.as_secs()),
        "is_dead_letter_queue": is_dead_letter_queue,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn backlog(messages: u64, age: u64) -> QueueBacklog {
        let (account, queue) = ("acme".to_owned(), format!("q{messages}"));
        let oldest_age = Some(Duration::from_secs(age));
        QueueBacklog { account, queue, messages, oldest_age, is_dead_letter_queue: messages > 7 }
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
    fn dead_letters_are_the_messages_of_dead_letter_queues() {
        let with_messages = vec![backlog(9, 1), backlog(8, 1), backlog(7, 1)];
        let backlogs = Backlogs { queues: 3, with_messages };

        assert_eq!(messages(&backlogs, |_| true), 24.0);
        assert_eq!(messages(&backlogs, |backlog| backlog.is_dead_letter_queue), 17.0);
    }

    #[test]
    fn the_page_names_the_deepest_queues() {
        let backlogs = Backlogs { queues: 2, with_messages: vec![backlog(7, 30)] };
        let measured = Measured::default();
        measured.set(backlogs);
        let page = page(measured);

        let shown: Value = serde_json::from_str(&(page.json)()).expect("JSON");

        assert_eq!(shown["queues"], 2);
        let queue = json!({
            "account": "acme", "queue": "q7", "messages": 7, "oldest_age_seconds": 30,
            "is_dead_letter_queue": false
        });
        assert_eq!(shown["deepest"], json!([queue]));
    }
}
