use super::*;

const SECOND: u64 = PER_SECOND;

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

/// The version of the blob in these tests: half a second after the 100th.
fn current() -> ETag {
    ETag(at(100 * SECOND + SECOND / 2))
}

fn same() -> Vec<ETagPattern> {
    vec![ETagPattern::parse(&current().quoted())]
}

fn other() -> Vec<ETagPattern> {
    vec![ETagPattern::parse("\"0x1\"")]
}

fn any() -> Vec<ETagPattern> {
    vec![ETagPattern::Any]
}

/// Each etag condition with its result for the current version.
fn etags() -> [(Vec<ETagPattern>, Option<bool>); 5] {
    let both = [other(), same()].concat();
    [
        (Vec::new(), None),
        (same(), Some(true)),
        (other(), Some(false)),
        (any(), Some(true)),
        (both, Some(true)),
    ]
}

/// Each time condition with whether the current version is after it.
fn times() -> [(Option<Ticks>, Option<bool>); 5] {
    [
        (None, None),
        (Some(at(99 * SECOND)), Some(true)),
        (Some(at(100 * SECOND)), Some(false)),
        (Some(at(101 * SECOND - 1)), Some(false)),
        (Some(at(101 * SECOND)), Some(false)),
    ]
}

/// Every combination of conditions, with the result of each.
fn combinations() -> Vec<(Conditions, [Option<bool>; 4])> {
    let mut all = Vec::new();
    for (if_match, same) in etags() {
        for (if_none_match, none_same) in etags() {
            for (if_modified_since, after) in times() {
                for (if_unmodified_since, not_after) in times() {
                    let conditions = Conditions {
                        if_tags: None,
                        creates_only: false,
                        if_match: if_match.clone(),
                        if_none_match: if_none_match.clone(),
                        if_modified_since,
                        if_unmodified_since,
                    };
                    all.push((conditions, [same, none_same, after, not_after]));
                }
            }
        }
    }
    all
}

#[test]
fn reads_take_place_by_the_documented_formula_in_every_combination() {
    for (conditions, [same, none_same, after, not_after]) in combinations() {
        let found = conditions.check_read(current());

        let expected = if conditions.if_none_match == any() {
            Err(ConditionError::Unsatisfiable)
        } else if same == Some(false) || not_after == Some(true) {
            Err(ConditionError::NotMet)
        } else {
            Ok(match (none_same.map(|same| !same), after) {
                (None, None) | (Some(true), _) | (_, Some(true)) => Freshness::Modified,
                _ => Freshness::NotModified,
            })
        };
        assert_eq!(found, expected, "{conditions:?}");
    }
}

#[test]
fn writes_reject_what_cannot_be_combined_and_let_the_etag_decide_in_every_combination() {
    for (conditions, [same, none_same, after, not_after]) in combinations() {
        let found = conditions.check_write(Some(current()), WriteKind::Change);

        let are_many = conditions.if_match.len() > 1 || conditions.if_none_match.len() > 1;
        let is_pair = |one: Option<bool>, other: Option<bool>| one.is_some() && other.is_some();
        let rejected = are_many
            || is_pair(same, none_same)
            || is_pair(same, after)
            || is_pair(none_same, not_after)
            || is_pair(after, not_after);
        let is_met = match (same, none_same) {
            (Some(same), _) => same,
            (_, Some(none_same)) => !none_same,
            (None, None) => after != Some(false) && not_after != Some(true),
        };
        let expected = match (rejected, is_met) {
            (true, _) => Err(ConditionError::Multiple),
            (false, true) => Ok(()),
            (false, false) => Err(ConditionError::NotMet),
        };
        assert_eq!(found, expected, "{conditions:?}");
    }
}

#[test]
fn an_absent_blob_fulfils_none_match_and_modified_since_only() {
    let none = Conditions::default;
    for (conditions, is_met) in [
        (none(), true),
        (Conditions { if_match: any(), ..none() }, false),
        (Conditions { if_match: other(), ..none() }, false),
        (Conditions { if_none_match: any(), ..none() }, true),
        (Conditions { if_none_match: same(), ..none() }, true),
        (Conditions { if_modified_since: Some(at(1)), ..none() }, true),
        (Conditions { if_unmodified_since: Some(at(1)), ..none() }, false),
    ] {
        let expected = if is_met { Ok(()) } else { Err(ConditionError::NotMet) };
        assert_eq!(
            conditions.check_write(None::<ETag>, WriteKind::Content),
            expected,
            "{conditions:?}"
        );
    }
}

#[test]
fn content_that_requires_an_absent_blob_already_exists() {
    let create = Conditions { if_none_match: any(), ..Conditions::default() };

    let content = create.check_write(Some(current()), WriteKind::Content);
    let change = create.check_write(Some(current()), WriteKind::Change);

    assert_eq!(content, Err(ConditionError::AlreadyExists));
    assert_eq!(change, Err(ConditionError::NotMet));
}
