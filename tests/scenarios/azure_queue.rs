//! Queues by the Azure Storage protocol, byte for byte.

mod account;
mod bad_input;
mod grants;
mod messages;
mod queues;
mod receipts;
mod signatures;
