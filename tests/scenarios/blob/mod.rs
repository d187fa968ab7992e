//! Blobs, as their clients see them.

mod blobs;
mod blocks;
mod conditions;
mod containers;
mod leases;
mod signatures;
mod snapshots;
mod uploads;
