//! What requests to queues ask for.

use crate::protocol::Target;

/// An operation, with what the head of its request says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
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
    /// Its queues, a page of them.
    ListQueues(Page),
    /// The settings of the service.
    GetProperties,
    /// New settings of it.
    SetProperties,
    /// How its copy is.
    GetStats,
}

/// Which page of the queues is asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Page {
    /// How the names begin.
    pub(crate) prefix: Option<String>,
    /// What the page before said.
    pub(crate) marker: Option<String>,
    /// How many queues at most.
    pub(crate) max_results: Option<u32>,
    /// Whether their metadata comes along.
    pub(crate) has_metadata: bool,
}

/// Operations on a queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnQueue {
    /// A new one.
    Create,
    /// No more of it.
    Delete,
    /// What its owner noted on it, and how many messages there are.
    GetMetadata,
    /// Other notes.
    SetMetadata,
    /// Its stored access policies.
    GetPolicies,
    /// Others.
    SetPolicies,
}

/// Operations on messages. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum OnMessages {
    /// Another one.
    Send {
        /// How long it stays hidden at first.
        hidden: Option<i64>,
        /// How long it lives.
        life: Option<Life>,
    },
    /// Some, for oneself alone.
    Receive {
        /// How many at most.
        max: Option<u32>,
        /// For how long.
        hidden: Option<i64>,
    },
    /// A look at some.
    Peek {
        /// How many at most.
        max: Option<u32>,
    },
    /// None any more.
    Clear,
    /// Another text or another time.
    Update {
        /// Of which.
        held: Held,
        /// How long it stays hidden from now on.
        hidden: i64,
    },
    /// Done with one.
    Delete {
        /// With which.
        held: Held,
    },
}

/// How long a message lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Life {
    /// So many seconds.
    Seconds(i64),
    /// For ever.
    Ever,
}

/// A message that the client holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Held {
    /// Its id.
    pub(crate) message_id: String,
    /// What shows that it is held.
    pub(crate) pop_receipt: String,
}

impl Operation {
    /// What the operation calls.
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
            Self::GetProperties => ("/trestle.queue.v1.QueueService/GetServiceProperties", true),
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
