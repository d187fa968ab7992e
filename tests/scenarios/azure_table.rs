//! Tables by the Azure Storage protocol, byte for byte, with a real server at a real socket.

mod bad_input;
mod batches;
mod conditions;
mod entities;
mod grants;
mod hostile;
mod queries;
mod settings;
mod signatures;
mod tables;
