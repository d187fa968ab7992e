//! Blobs, as their clients see them.

mod append;
mod batches;
mod blobs;
mod blocks;
mod changes;
mod conditions;
mod containers;
mod copies;
mod from_source;
mod leases;
mod pages;
mod public_access;
mod retention;
mod signatures;
mod snapshots;
mod tags;
mod tiers;
mod uploads;
mod versions;
