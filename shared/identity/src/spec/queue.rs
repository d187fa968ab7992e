//! The signatures of queues: the call names the queue, and nothing bounds the messages.

use trestle_model::{fault::Violations, name::QueueName};

use super::{DelegationForm, ResourceType, ServiceSpec, whole, without_empty};
use crate::{
    caller::QUEUE_HEADER,
    field_values::FieldValues,
    sas::{OLDEST_VERSION, Scope},
    shared_key::all_headers,
};

/// The first version of tokens that a user delegation key signs.
const SIGNS_USERS: &str = "2025-07-05";

/// Queues.
pub const QUEUE: ServiceSpec = ServiceSpec {
    name: "queue",
    letter: 'q',
    is_served: true,
    permissions: &[('r', "read"), ('a', "add"), ('u', "update"), ('p', "process")],
    orders_permissions: false,
    name_field: None,
    name_header: Some(QUEUE_HEADER),
    is_name,
    ignores_case: false,
    has_paths: false,
    container: "queue",
    objects: "messages",
    resource_types: &[ResourceType {
        code: "",
        since: OLDEST_VERSION,
        name_in: whole,
        covers_below: false,
    }],
    fields: &[],
    delegation: Some(DelegationForm {
        since: SIGNS_USERS,
        fields: &[("skdutid", SIGNS_USERS), ("sduoid", SIGNS_USERS)],
    }),
    normalize: without_empty,
    describe: |_| String::new(),
    signed_texts: all_headers::texts,
    ambiguity: all_headers::ambiguity,
};

impl Scope {
    /// The messages of a queue.
    #[must_use]
    pub fn of_queue(name: impl Into<String>) -> Self {
        Self::of_resource(&QUEUE, name, FieldValues::default())
    }
}

fn is_name(text: &str) -> bool {
    QueueName::parse(text.to_owned(), QUEUE_HEADER, &mut Violations::default()).is_some()
}
