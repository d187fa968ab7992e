//! What is measured.

/// What is measured.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    Insert,
    Delete,
    Get,
    PageOf100,
    PageOf1000,
    Update,
    Merge,
    Upsert,
    Batch,
    QueueSend,
    QueueCycle,
}

impl Operation {
    pub(in crate::rest) fn name(self) -> &'static str {
        match self {
            Self::Insert => "insert 1 KiB",
            Self::Delete => "delete",
            Self::Get => "get 1 KiB",
            Self::PageOf100 => "page of 100",
            Self::PageOf1000 => "page of 1,000",
            Self::Update => "update",
            Self::Merge => "merge",
            Self::Upsert => "upsert",
            Self::Batch => "entities in $batch of 100",
            Self::QueueSend => "queue put",
            Self::QueueCycle => "queue put + get + delete",
        }
    }

    pub(super) fn is_of_queue(self) -> bool {
        matches!(self, Self::QueueSend | Self::QueueCycle)
    }
}
