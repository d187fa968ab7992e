//! The operations of requests to queues.

use crate::protocol::Target;

/// An operation, with the parameters in the head of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum QueueOperation {
    /// One on the account.
    Account(OnAccount),
    /// One on a queue, by name.
    Queue(String, OnQueue),
    /// One on the messages of a queue, by name.
    Messages(String, OnMessages),
}

/// Operations on an account.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnAccount {
    /// Lists its queues, one page.
    ListQueues(ListPage),
    /// Gets the settings of the service.
    GetProperties,
    /// Sets the settings of the service.
    SetProperties,
    /// Gets the replication statistics.
    GetStats,
    /// Gets a user delegation key.
    GetDelegationKey,
}

/// The requested page of the queues.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct ListPage {
    /// The prefix of the names.
    pub(crate) prefix: Option<String>,
    /// The continuation token of the page before.
    pub(crate) marker: Option<String>,
    /// Most queues of the page.
    pub(crate) max_results: Option<u32>,
    /// Whether to include their metadata.
    pub(crate) has_metadata: bool,
}

/// Operations on a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnQueue {
    /// Creates it.
    Create,
    /// Deletes it.
    Delete,
    /// Gets its metadata, and the approximate number of messages.
    GetMetadata,
    /// Sets its metadata.
    SetMetadata,
    /// Gets its stored access policies.
    GetPolicies,
    /// Sets its stored access policies.
    SetPolicies,
}

/// Operations on messages. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnMessages {
    /// Sends a message.
    Send {
        /// The initial visibility timeout.
        visibility_timeout: Option<i64>,
        /// The time to live (TTL).
        time_to_live: Option<TimeToLive>,
    },
    /// Receives messages.
    Receive {
        /// Most messages.
        max: Option<u32>,
        /// The visibility timeout.
        visibility_timeout: Option<i64>,
    },
    /// Peeks at messages.
    Peek {
        /// Most messages.
        max: Option<u32>,
    },
    /// Deletes all messages.
    Clear,
    /// Updates the text or the visibility timeout of a message.
    Update {
        /// The message.
        message: MessageReceipt,
        /// The new visibility timeout.
        visibility_timeout: i64,
    },
    /// Deletes a message.
    Delete {
        /// The message.
        message: MessageReceipt,
    },
}

/// The time to live of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeToLive {
    /// So many seconds.
    Seconds(i64),
    /// No expiry.
    Never,
}

/// A message that the client received.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MessageReceipt {
    /// Its id.
    pub(crate) message_id: String,
    /// Its receipt.
    pub(crate) pop_receipt: String,
}

impl QueueOperation {
    /// The target of the operation.
    pub(crate) fn target(&self) -> Target {
        let (path, reads) = match self {
            Self::Account(operation) => operation.target(),
            Self::Queue(_, operation) => operation.target(),
            Self::Messages(_, operation) => operation.target(),
        };
        Target { path, reads }
    }
}

impl OnAccount {
    fn target(&self) -> (&'static str, bool) {
        match self {
            Self::ListQueues(_) => ("/trestle.queue.v1.QueueService/ListQueues", true),
            Self::GetProperties | Self::GetDelegationKey => {
                ("/trestle.queue.v1.QueueService/GetServiceProperties", true)
            }
            Self::SetProperties => ("/trestle.queue.v1.QueueService/SetServiceProperties", false),
            Self::GetStats => ("/trestle.queue.v1.QueueService/GetServiceStats", true),
        }
    }

    /// The path of the method.
    pub(crate) fn path(&self) -> &'static str {
        self.target().0
    }
}

impl OnQueue {
    fn target(self) -> (&'static str, bool) {
        match self {
            Self::Create => ("/trestle.queue.v1.QueueService/CreateQueue", false),
            Self::Delete => ("/trestle.queue.v1.QueueService/DeleteQueue", false),
            Self::GetMetadata => ("/trestle.queue.v1.QueueService/GetQueue", true),
            Self::SetMetadata => ("/trestle.queue.v1.QueueService/UpdateQueue", false),
            Self::GetPolicies => ("/trestle.queue.v1.QueueService/GetQueueAccessPolicies", true),
            Self::SetPolicies => ("/trestle.queue.v1.QueueService/SetQueueAccessPolicies", false),
        }
    }

    /// The path of the method.
    pub(crate) fn path(self) -> &'static str {
        self.target().0
    }
}

impl OnMessages {
    fn target(&self) -> (&'static str, bool) {
        match self {
            Self::Send { .. } => ("/trestle.queue.v1.QueueService/SendMessages", false),
            Self::Receive { .. } => ("/trestle.queue.v1.QueueService/ReceiveMessages", false),
            Self::Peek { .. } => ("/trestle.queue.v1.QueueService/PeekMessages", true),
            Self::Clear => ("/trestle.queue.v1.QueueService/ClearMessages", false),
            Self::Update { .. } => ("/trestle.queue.v1.QueueService/UpdateMessage", false),
            Self::Delete { .. } => ("/trestle.queue.v1.QueueService/DeleteMessages", false),
        }
    }

    /// The path of the method.
    pub(crate) fn path(&self) -> &'static str {
        self.target().0
    }
}
