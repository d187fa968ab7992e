//! Part of the filter language.
