//! Which process of a shared store works on a stream in the background.

/// Says which of the processes that serve one store seals, merges and sweeps a stream. Nothing is correct because of
/// that: each change of a stream is decided by its rows, and of two processes that do the same one does it in vain.
pub trait StreamPlacement: Send + Sync {
    /// Whether another process works on the stream with this id.
    fn is_elsewhere(&self, stream: u64) -> bool;
}
