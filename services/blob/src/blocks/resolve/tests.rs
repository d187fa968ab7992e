use super::*;
use crate::record::ContentId;

fn block(id: &'static str, content: u64) -> StoredBlock {
    let part = Part { content: ContentId(content), mark: 0, size: content * 10 };
    StoredBlock { id: id.into(), part }
}

fn choose(names: &[(&'static str, BlockSource)]) -> Vec<BlockChoice> {
    let choice = |(id, source): &(&'static str, BlockSource)| BlockChoice {
        id: Bytes::from_static(id.as_bytes()),
        source: *source,
    };
    names.iter().map(choice).collect()
}

fn contents(resolved: &Resolved) -> (Vec<u64>, Vec<u64>) {
    let mut dropped: Vec<_> = resolved.dropped.iter().map(|part| part.content.0).collect();
    dropped.sort_unstable();
    (resolved.blocks.iter().map(|block| block.part.content.0).collect(), dropped)
}

#[test]
fn blocks_come_from_where_the_client_states_and_the_rest_is_dropped() {
    use BlockSource::{Committed, Latest, Uncommitted};
    let committed = [block("a", 1), block("b", 2), block("a", 1)];
    let staged = [block("a", 3), block("c", 4)];
    let resolved = |names: &[(&'static str, BlockSource)]| {
        resolve(&choose(names), &committed, &staged).map(|it| contents(&it)).expect("resolved")
    };

    assert_eq!(resolved(&[("a", Committed)]), (vec![1], vec![2, 3, 4]));
    assert_eq!(resolved(&[("a", Uncommitted)]), (vec![3], vec![1, 2, 4]));
    assert_eq!(resolved(&[("a", Latest), ("b", Latest)]), (vec![3, 2], vec![1, 4]));
    assert_eq!(resolved(&[("c", Latest), ("c", Latest)]), (vec![4, 4], vec![1, 2, 3]));
    let mixed = [("b", Committed), ("a", Uncommitted), ("a", Uncommitted)];
    assert_eq!(resolved(&mixed), (vec![2, 3, 3], vec![1, 4]));
    assert_eq!(resolved(&[]), (vec![], vec![1, 2, 3, 4]));
}

#[test]
fn a_block_that_is_not_where_the_client_states_is_named() {
    use BlockSource::{Committed, Latest, Uncommitted};
    let (committed, staged) = ([block("a", 1), block("d", 3)], [block("b", 2)]);
    for missing in [("b", Committed), ("a", Uncommitted), ("c", Latest)] {
        let choices = choose(&[("d", Latest), missing]);
        let error = resolve(&choices, &committed, &staged).expect_err("it does not exist");
        let fault = Fault::from(error);
        assert_eq!(fault.reason, Reason::InvalidBlockList);
        assert_eq!(fault.violations[0].field, "blocks[1].id");
    }
}

#[test]
fn a_block_has_one_source_wherever_it_is_named() {
    use BlockSource::{Committed, Latest, Uncommitted};
    let (committed, staged) = ([block("a", 1)], [block("a", 2)]);
    for pair in [(Committed, Uncommitted), (Uncommitted, Latest), (Latest, Committed)] {
        let choices = choose(&[("a", pair.0), ("a", pair.0), ("a", pair.1)]);
        let fault = Fault::from(resolve(&choices, &committed, &staged).expect_err("two sources"));
        assert_eq!(fault.reason, Reason::InvalidBlockList);
        assert_eq!(fault.violations[0].field, "blocks[2].source", "{pair:?}");
    }
}
