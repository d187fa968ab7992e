//! Tables by the Azure Storage protocol, byte for byte.

mod entities;
