//! Trestle.
