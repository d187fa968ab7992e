//! The forms in which clients write the signed text.

use super::Canonical;
use crate::shared_key::header_text::{collapsed, word_order};

/// One of the forms in which clients write the signed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct SignedForm {
    pub(super) order: Order,
    pub(super) white_space: WhiteSpace,
    pub(super) secondary: Secondary,
}

/// The sort order of header names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Order {
    /// By bytes, as in Go and Rust.
    Bytes,
    /// As in a culture-aware comparison, where `-` sorts last, as in Python and .NET.
    Words,
}

/// The handling of white space inside the value of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WhiteSpace {
    Kept,
    Collapsed,
}

/// Where the suffix of a read-only replica, `/account-secondary/…`, appears in the signed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Secondary {
    /// In the path, where it was sent.
    InPath,
    /// In the path and in the name of the account.
    InBoth,
    /// Nowhere.
    Nowhere,
}

impl<'a> Canonical<'a> {
    /// The possible forms of this request, the most likely one first; a dozen at most.
    pub(super) fn forms(self, account: &str) -> impl Iterator<Item = SignedForm> + use<'a> {
        let names = self.names(Order::Bytes);
        let is_sorted_alike = names.is_sorted_by_key(|name| word_order(name));
        let values = || names.iter().map(|name| self.value(name, WhiteSpace::Kept));
        let has_white_space = values().any(|value| *value != *collapsed(&value));
        let is_secondary = self.0.path_of_primary(account).is_some();

        let several = |repeated: bool| if repeated { 2 } else { 1 };
        let orders = [Order::Bytes, Order::Words].into_iter().take(several(!is_sorted_alike));
        let secondaries = [Secondary::InPath, Secondary::InBoth, Secondary::Nowhere]
            .into_iter()
            .take(if is_secondary { 3 } else { 1 });
        let white_spaces =
            [WhiteSpace::Kept, WhiteSpace::Collapsed].into_iter().take(several(has_white_space));
        secondaries.flat_map(move |secondary| {
            let orders = orders.clone();
            white_spaces.clone().flat_map(move |white_space| {
                orders.clone().map(move |order| SignedForm { order, white_space, secondary })
            })
        })
    }
}
