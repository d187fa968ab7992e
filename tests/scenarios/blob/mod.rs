//! Blobs, as their clients see them.

mod append;
mod blobs;
mod blocks;
mod conditions;
mod containers;
mod leases;
mod pages;
mod signatures;
mod uploads;
