//! From the blocks that a client names to those of the new content: a pure decision.

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod tests;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use trestle_model::fault::{Fault, Reason, quoted};

use crate::{
    error::BlobError,
    record::{Part, StoredBlock},
};

/// A block that a client names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BlockChoice {
    /// Its id.
    pub(crate) id: Bytes,
    /// Where it is.
    pub(crate) source: BlockSource,
}

/// Where a named block is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BlockSource {
    /// In the content.
    Committed,
    /// Among the staged blocks.
    Uncommitted,
    /// Among the staged blocks, or else in the content.
    Latest,
}

/// The blocks of the new content, and what nothing refers to after it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Resolved {
    pub(super) blocks: Vec<StoredBlock>,
    pub(super) dropped: Vec<Part>,
}

/// Finds the named blocks.
///
/// # Errors
/// [`Reason::InvalidBlockList`] for a block that does not exist, or that is named with several sources.
pub(super) fn resolve(
    choices: &[BlockChoice],
    committed: &[StoredBlock],
    staged: &[StoredBlock],
) -> Result<Resolved, BlobError> {
    // Of several committed blocks with one id, the first counts.
    let by_id = |blocks: &[StoredBlock]| -> HashMap<Bytes, Part> {
        blocks.iter().rev().map(|block| (block.id.clone(), block.part)).collect()
    };
    let (in_content, in_staging) = (by_id(committed), by_id(staged));
    let mut blocks = Vec::with_capacity(choices.len());
    let mut sources = HashMap::with_capacity(choices.len());
    for (index, BlockChoice { id, source }) in choices.iter().enumerate() {
        let part = match source {
            BlockSource::Committed => in_content.get(id),
            BlockSource::Uncommitted => in_staging.get(id),
            BlockSource::Latest => in_staging.get(id).or_else(|| in_content.get(id)),
        };
        let invalid = |field, rule| {
            let rule = format!("{rule}: base64=`{}`", quoted(&STANDARD.encode(id)));
            Fault::violation(Reason::InvalidBlockList, format!("blocks[{index}].{field}"), rule)
        };
        if sources.insert(id, source).is_some_and(|earlier| earlier != source) {
            let rule = "must be the same wherever the block occurs";
            return Err(invalid("source", rule).into());
        }
        let part = *part.ok_or_else(|| invalid("id", "the block does not exist"))?;
        blocks.push(StoredBlock { id: id.clone(), part });
    }
    let mut kept: HashSet<_> = blocks.iter().map(|block| block.part.content).collect();
    let all = committed.iter().chain(staged).map(|block| block.part);
    // Each once: a content may have been committed at several places.
    let dropped = all.filter(|part| kept.insert(part.content)).collect();
    Ok(Resolved { blocks, dropped })
}
