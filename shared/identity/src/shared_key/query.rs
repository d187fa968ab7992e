//! The query of a request, as it is signed.

use std::collections::BTreeMap;

use percent_encoding::percent_decode_str;

/// The parameters of a query, decoded: names in lower case and sorted, and the values of each, sorted too. Equal ones
/// are signed as often as they occur.
pub(super) fn parameters(query: &str) -> BTreeMap<String, Vec<String>> {
    let mut parameters = BTreeMap::<_, Vec<_>>::new();
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
        parameters.entry(decoded(name).to_lowercase()).or_default().push(decoded(value));
    }
    parameters.values_mut().for_each(|values| values.sort());
    parameters
}

fn decoded(text: &str) -> String {
    let spaced = text.replace('+', " ");
    percent_decode_str(&spaced).decode_utf8_lossy().into_owned()
}
