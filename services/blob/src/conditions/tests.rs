use trestle_model::fault::{Fault, Reason};

use super::*;
use crate::error::BlobError;

const SECOND: u64 = PER_SECOND;

fn at(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

/// The version of the blob in these tests: half a second after the 100th.
fn current() -> ETag {
    ETag(at(100 * SECOND + SECOND / 2))
}

fn same() -> Vec<ETagPattern> {
    vec![ETagPattern::parse(&current().quoted()).expect("an etag")]
}

fn other() -> Vec<ETagPattern> {
    vec![ETagPattern::parse("\"0x1\"").expect("an etag")]
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
                        shows_current: true,
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

/// The kind of an error, without its fields.
fn kind(error: &ConditionError) -> &'static str {
    match error {
        ConditionError::Unmet(_) => "unmet",
        ConditionError::NotMet => "overtaken",
        ConditionError::AlreadyExists => "already exists",
        ConditionError::Multiple { .. } => "multiple",
        ConditionError::OverwriteNotAuthorized => "overwrite",
        ConditionError::Unsatisfiable => "unsatisfiable",
    }
}

/// Whether a field is among those that are false.
fn names_a_false_one(error: &ConditionError, results: [Option<bool>; 4]) -> bool {
    let ConditionError::Unmet(unmet) = error else { return true };
    let [same, none_same, after, not_after] = results;
    match unmet.field {
        ConditionField::Match => same == Some(false),
        ConditionField::NoneMatch => none_same == Some(true),
        ConditionField::ModifiedSince => after == Some(false),
        ConditionField::UnmodifiedSince => not_after == Some(true),
        ConditionField::Tags => false,
    }
}

#[test]
fn reads_take_place_by_the_documented_formula_in_every_combination() {
    for (conditions, [same, none_same, after, not_after]) in combinations() {
        let found = conditions.check_read(current());
        if let Err(error) = &found {
            assert!(names_a_false_one(error, [same, none_same, after, not_after]), "{error}");
        }

        let expected = if conditions.if_none_match == any() {
            Err("unsatisfiable")
        } else if same == Some(false) || not_after == Some(true) {
            Err("unmet")
        } else {
            Ok(match (none_same.map(|same| !same), after) {
                (None, None) | (Some(true), _) | (_, Some(true)) => Freshness::Modified,
                _ => Freshness::NotModified,
            })
        };
        assert_eq!(found.map_err(|error| kind(&error)), expected, "{conditions:?}");
    }
}

#[test]
fn writes_reject_what_cannot_be_combined_and_let_the_etag_decide_in_every_combination() {
    for (conditions, [same, none_same, after, not_after]) in combinations() {
        let found = conditions.check_write(Some(current()), WriteKind::Change);
        if let Err(error) = &found {
            assert!(names_a_false_one(error, [same, none_same, after, not_after]), "{error}");
        }

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
            (true, _) => Err("multiple"),
            (false, true) => Ok(()),
            (false, false) => Err("unmet"),
        };
        assert_eq!(found.map_err(|error| kind(&error)), expected, "{conditions:?}");
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
        let expected = if is_met { Ok(()) } else { Err("unmet") };
        let found = conditions.check_write(None::<ETag>, WriteKind::Content);
        assert_eq!(found.map_err(|error| kind(&error)), expected, "{conditions:?}");
    }
}

#[test]
fn content_that_requires_an_absent_blob_already_exists() {
    let create = Conditions { if_none_match: any(), ..Conditions::default() };

    let content = create.check_write(Some(current()), WriteKind::Content);
    let change = create.check_write(Some(current()), WriteKind::Change);

    assert_eq!(content, Err(ConditionError::AlreadyExists));
    assert_eq!(change.map_err(|error| kind(&error)), Err("unmet"));
}

/// The version of the blob in the tests of messages.
fn recent() -> ETag {
    ETag(Ticks::from_unix(1_800_000_000, 500_000_000).expect("in range"))
}

fn text(found: Result<impl std::fmt::Debug, ConditionError>) -> String {
    found.expect_err("a condition is false").to_string()
}

#[test]
fn an_unmet_condition_has_its_field_its_value_and_the_current_one() {
    const UNMET: &str = "the condition specified using conditional fields is not met: ";
    let (earlier, etag) = (at(recent().0.get() - SECOND), recent().quoted());
    let shown = || Conditions { shows_current: true, ..Conditions::default() };
    let condition = TagCondition::parse("k = '1'").expect("a condition");
    let if_tags = Some(StatedTagCondition { text: "k = '1'".to_owned(), condition });
    let newer = Some(at(recent().0.get() + SECOND));
    for (conditions, expected) in [
        (
            Conditions { if_match: other(), ..shown() },
            format!("field=`conditions.if_match`, value=`\"0x1\"`, current=`{etag}`"),
        ),
        (
            Conditions { if_none_match: any(), ..shown() },
            format!("field=`conditions.if_none_match`, value=`*`, current=`{etag}`"),
        ),
        (
            Conditions { if_modified_since: newer, ..shown() },
            "field=`conditions.if_modified_since`, value=`2027-01-15T08:00:01Z`, \
             current=`2027-01-15T08:00:00Z`"
                .to_owned(),
        ),
        (
            Conditions { if_unmodified_since: Some(earlier), ..shown() },
            "field=`conditions.if_unmodified_since`, value=`2027-01-15T07:59:59Z`, \
             current=`2027-01-15T08:00:00Z`"
                .to_owned(),
        ),
        (
            Conditions { if_tags, ..shown() },
            "field=`conditions.if_tags`, value=`k = '1'`".to_owned(),
        ),
    ] {
        let found = text(conditions.check_write(Some(recent()), WriteKind::Change));
        assert_eq!(found, format!("{UNMET}{expected}"));

        let withheld = Conditions { shows_current: false, ..conditions };
        let found = text(withheld.check_write(Some(recent()), WriteKind::Change));
        let shown = expected.split(", current=").next().expect("a first part");
        assert_eq!(found, format!("{UNMET}{shown}"), "not for callers who may only delete");
    }
    let both = Conditions { if_match: [other(), other()].concat(), ..shown() };
    let expected = format!("value=`\"0x1\", \"0x1\"`, current=`{etag}`");
    assert_eq!(
        text(both.check_read(recent())),
        format!("{UNMET}field=`conditions.if_match`, {expected}")
    );
    let absent = Conditions { if_match: any(), ..shown() };
    let found = text(absent.check_write(None::<ETag>, WriteKind::Content));
    let expected = "field=`conditions.if_match`, value=`*`; there is no blob";
    assert_eq!(found, format!("{UNMET}{expected}"));
}

#[test]
fn conditions_that_a_call_does_not_have_are_named_as_fields() {
    let fault = |found: Result<(), ConditionError>| {
        let fault = Fault::from(BlobError::from(found.expect_err("it is rejected")));
        let violation = fault.violations.into_iter().next().expect("a violation");
        (fault.reason, violation.field, violation.description)
    };
    let multiple = |field: &str, rule: &str| {
        (Reason::MultipleConditionHeadersNotSupported, field.to_owned(), rule.to_owned())
    };
    let (none, since) = (Conditions::default, Some(at(1)));
    for (conditions, field, rule) in [
        (
            Conditions { if_match: [same(), other()].concat(), ..none() },
            "conditions.if_match",
            "must have at most one etag, for a write",
        ),
        (
            Conditions { if_none_match: [same(), other()].concat(), ..none() },
            "conditions.if_none_match",
            "must have at most one etag, for a write",
        ),
        (
            Conditions { if_match: same(), if_none_match: other(), ..none() },
            "conditions.if_match",
            "must not be combined with `conditions.if_none_match`, for a write",
        ),
        (
            Conditions { if_modified_since: since, if_unmodified_since: since, ..none() },
            "conditions.if_modified_since",
            "must not be combined with `conditions.if_unmodified_since`, for a write",
        ),
    ] {
        let found = conditions.check_write(Some(current()), WriteKind::Change);
        assert_eq!(fault(found), multiple(field, rule));
    }
    let read = Conditions { if_none_match: any(), ..none() }.check_read(current()).map(drop);
    let (reason, field, rule) = fault(read);
    assert_eq!(reason, Reason::UnsatisfiableCondition);
    assert_eq!(field, "conditions.if_none_match");
    assert_eq!(rule, "must name etags, for a read: value=`*`");
}
