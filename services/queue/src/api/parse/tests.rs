//! Tests of the rules that requests are held to.
