//! The behaviour of queues for their clients.

mod batches;
mod commands;
mod dead_letters;
mod groups;
mod limits;
mod messages;
mod properties;
mod queues;
mod receipts;
mod signatures;
mod streams;
mod upgrade;
mod waiting;
mod worked_example;
