//! The division of a large table into key ranges that are read in parallel.
//!
//! The protocol reports no bounds, but the next key after any text, so prefixes of existing keys are
//! found by queries. The ranges of a table are the keys before the first bound, from each bound up to
//! the next, and from the last one on: whatever the order of the source, no entity is outside of all
//! ranges. Ranges of equal size are likely, but not guaranteed.

use trestle_command::errors::CliError;

/// Most ranges of a table.
const RANGES_MAX: usize = 8;
/// Fewer prefixes than this are extended by a character.
const PREFIXES_MIN: usize = 4;
/// Most queries of one table.
const QUERIES_MAX: usize = 160;
/// The characters of bounds: every source compares and quotes them alike; ascending.
const PLAIN: &str = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz";

/// The first partition key of a table from a text on.
pub(super) trait KeySource {
    /// See the trait; none where there is no such key.
    async fn first_from(&self, text: &str) -> Result<Option<String>, CliError>;
}

/// Bounds between ranges of a table, rising; none for a table that cannot be divided.
pub(super) async fn bounds(keys: &impl KeySource) -> Result<Vec<String>, CliError> {
    let mut search = Search { keys, left: QUERIES_MAX };
    let mut found = search.prefixes("").await?;
    while found.len() < PREFIXES_MIN {
        let mut longer = Vec::new();
        for prefix in &found {
            longer.extend(search.prefixes(prefix).await?);
        }
        if longer.is_empty() || longer.len() < found.len() {
            break;
        }
        found = longer;
    }
    let count = found.len().min(RANGES_MAX);
    let bounds = (1..count).filter_map(|at| found.get(at.saturating_mul(found.len()) / count));
    Ok(bounds.cloned().collect())
}

struct Search<'a, K> {
    keys: &'a K,
    /// The remaining number of queries.
    left: usize,
}

impl<K: KeySource> Search<'_, K> {
    /// Also none if no query remains.
    async fn first_from(&mut self, text: &str) -> Result<Option<String>, CliError> {
        let Some(left) = self.left.checked_sub(1) else { return Ok(None) };
        self.left = left;
        self.keys.first_from(text).await
    }

    /// The texts that are longer than `shared` by a plain character, and that keys begin with.
    async fn prefixes(&mut self, shared: &str) -> Result<Vec<String>, CliError> {
        let (mut found, mut from) = (Vec::new(), shared.to_owned());
        while let Some(key) = self.first_from(&from).await? {
            let Some(rest) = key.strip_prefix(shared) else { break };
            let next = rest.chars().next();
            if let Some(next) = next.filter(|next| PLAIN.contains(*next)) {
                found.push(format!("{shared}{next}"));
            }
            let later = PLAIN.chars().find(|plain| next.is_none_or(|next| *plain > next));
            let Some(later) = later else { break };
            from = format!("{shared}{later}");
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests;
