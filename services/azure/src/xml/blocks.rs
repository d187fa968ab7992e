//! Lists of the blocks of a blob.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use trestle_model::fault::{Fault, Reason, quoted};
use trestle_model::limits::BLOCKS_MAX;
use trestle_proto::blob::v1::{Block, BlockRef, BlockSource};

use super::{element::Element, write::XmlWriter};

/// Parses the blocks to commit, in their order.
///
/// # Errors
/// A malformed document, another element than one of a block, too many blocks, or an id that is not base64.
pub fn read_blocks(body: &[u8]) -> Result<Vec<BlockRef>, Fault> {
    // One more than are allowed, and the root: a longer list has an error of its own.
    let root = Element::root_within(body, "BlockList", BLOCKS_MAX + 2)?;
    if root.children.len() > BLOCKS_MAX {
        let rule = format!("must have at most {BLOCKS_MAX} blocks");
        return Err(Fault::violation(Reason::BlockListTooLong, "BlockList", rule));
    }
    let text = root.text.trim_ascii();
    if !text.is_empty() {
        let rule = format!("must have elements inside, and no text: value=`{}`", quoted(text));
        return Err(Fault::violation(Reason::InvalidXmlDocument, "BlockList", rule));
    }
    root.children.into_iter().map(read_block).collect()
}

fn read_block(element: Element<'_>) -> Result<BlockRef, Fault> {
    let source = match element.name.as_str() {
        "Committed" => BlockSource::Committed,
        "Uncommitted" => BlockSource::Uncommitted,
        "Latest" => BlockSource::Latest,
        other => {
            let rule = "is no element of BlockList: it has Committed, Uncommitted and Latest";
            return Err(Fault::violation(Reason::InvalidXmlDocument, quoted(other), rule));
        }
    };
    let name = element.name.clone();
    let text = element.into_text()?;
    let id = STANDARD.decode(text.trim_ascii()).map_err(|_| {
        let rule = format!("must be the id of a block, in base64: value=`{}`", quoted(&text));
        Fault::violation(Reason::InvalidBlockList, name, rule)
    })?;
    Ok(BlockRef { id: id.into(), source: source.into() })
}

/// The lists that a request selects, each with its blocks.
#[derive(Debug, Clone, Copy)]
pub struct BlockLists<'a> {
    /// Those of the content.
    pub committed: Option<&'a [Block]>,
    /// Those that are staged.
    pub uncommitted: Option<&'a [Block]>,
}

/// The response to a request for the blocks of a blob.
#[must_use]
pub fn write_block_lists(lists: &BlockLists<'_>) -> String {
    XmlWriter::document("BlockList", |writer| {
        let lists =
            [("CommittedBlocks", lists.committed), ("UncommittedBlocks", lists.uncommitted)];
        for (name, blocks) in lists {
            let Some(blocks) = blocks else { continue };
            writer.element(name, |writer| {
                for block in blocks {
                    write_block(writer, &block.id, block.size);
                }
            });
        }
    })
}

fn write_block(writer: &mut XmlWriter, id: &Bytes, size: u64) {
    writer.element("Block", |writer| {
        writer.text("Name", &STANDARD.encode(id));
        writer.value("Size", &size);
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_is_read_in_its_order_with_white_space_around() {
        let body = b"<?xml version=\"1.0\"?>\n<BlockList>\n  <Latest> QQ== </Latest>\n\
            <Uncommitted>QUI=</Uncommitted><Committed>QQ==</Committed>\n</BlockList>\n";

        let blocks = read_blocks(body).expect("a list");

        let of = |id: &'static str, source: BlockSource| BlockRef {
            id: Bytes::from_static(id.as_bytes()),
            source: source.into(),
        };
        let expected = [
            of("A", BlockSource::Latest),
            of("AB", BlockSource::Uncommitted),
            of("A", BlockSource::Committed),
        ];
        assert_eq!(blocks, expected);
        assert_eq!(read_blocks(b"<BlockList/>"), Ok(Vec::new()));
    }

    #[test]
    fn as_many_blocks_as_a_blob_may_have_are_read_and_no_more() {
        let list =
            |count| format!("<BlockList>{}</BlockList>", "<Latest>QQ==</Latest>".repeat(count));

        let most = read_blocks(list(BLOCKS_MAX).as_bytes()).expect("the most");

        assert_eq!(most.len(), BLOCKS_MAX);
        let reason = |count| read_blocks(list(count).as_bytes()).expect_err("too many").reason;
        assert_eq!(reason(BLOCKS_MAX + 1), Reason::BlockListTooLong);
        assert_eq!(reason(BLOCKS_MAX + 2), Reason::InvalidXmlDocument);
    }

    #[test]
    fn rejects_what_is_no_list_of_blocks() {
        for (inside, expected) in [
            ("text", Reason::InvalidXmlDocument),
            ("<Block>QQ==</Block>", Reason::InvalidXmlDocument),
            ("<Latest><Id/></Latest>", Reason::InvalidXmlDocument),
            ("<Latest>not base64</Latest>", Reason::InvalidBlockList),
        ] {
            let body = format!("<BlockList>{inside}</BlockList>");
            assert_eq!(read_blocks(body.as_bytes()).expect_err(inside).reason, expected);
        }
    }

    #[test]
    fn only_the_selected_lists_are_written() {
        let block = Block { id: Bytes::from_static(b"A"), size: 7 };
        let committed = Some(std::slice::from_ref(&block));
        let text = write_block_lists(&BlockLists { committed, uncommitted: Some(&[]) });
        assert!(
            text.ends_with(
                "<BlockList><CommittedBlocks><Block><Name>QQ==</Name><Size>7</Size></Block>\
                 </CommittedBlocks><UncommittedBlocks /></BlockList>"
            ),
            "{text}"
        );
        let none = write_block_lists(&BlockLists { committed: Some(&[]), uncommitted: None });
        assert!(none.ends_with("<BlockList><CommittedBlocks /></BlockList>"), "{none}");
    }
}
