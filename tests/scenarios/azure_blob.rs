//! Blobs by the Azure Storage protocol, byte for byte.

mod access;
mod appends;
mod batches;
mod blobs;
mod blocks;
mod conditions;
mod containers;
mod copies;
mod leases;
mod lists;
mod pages;
mod rejections;
mod states;
mod structured;
mod website;
