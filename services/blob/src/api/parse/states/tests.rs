//! Tests of how requests name states of a blob and deleted containers.

use super::*;
use crate::api::parse::tests::{assert_rejected, parsed};

const SNAPSHOT: &str = "2019-08-28T17:07:35.2821851Z";
const VERSION: &str = "2020-07-24T14:34:28.0000000Z";

fn at(name: &str) -> Ticks {
    past::parse(name).expect("a name")
}

fn request(snapshot: &str, version_id: &str, number: i32) -> proto::DeleteBlobRequest {
    proto::DeleteBlobRequest {
        snapshot: snapshot.to_owned(),
        version_id: version_id.to_owned(),
        delete_snapshots: number,
        ..Default::default()
    }
}

#[test]
fn a_call_reads_the_blob_a_snapshot_or_a_version() {
    let state = |snapshot, version| parsed(|parser| parser.state(snapshot, version));
    assert_eq!(state("", "").ok(), Some(StateName::Current));
    assert_eq!(state(SNAPSHOT, "").ok(), Some(StateName::Snapshot(at(SNAPSHOT))));
    assert_eq!(state("", VERSION).ok(), Some(StateName::Version(at(VERSION))));
    let rejected = |field| [(Reason::InvalidQueryParameterValue, field)];
    assert_rejected(state(SNAPSHOT, VERSION), &rejected("version_id"));
    assert_rejected(state("yesterday", ""), &rejected("snapshot"));
    assert_rejected(state("", &VERSION[..19]), &rejected("version_id"));
    let both = [rejected("version_id")[0], rejected("snapshot")[0]];
    assert_rejected(state("no", "none"), &both);
}

#[test]
fn a_call_deletes_what_it_names() {
    let scope = |request| parsed(|parser| parser.delete_scope(&request));
    for (number, expected) in [
        (proto::DeleteSnapshots::Unspecified, DeleteScope::Blob),
        (proto::DeleteSnapshots::Include, DeleteScope::WithSnapshots),
        (proto::DeleteSnapshots::Only, DeleteScope::SnapshotsOnly),
    ] {
        assert_eq!(scope(request("", "", number.into())).ok(), Some(expected));
    }
    assert_eq!(scope(request(SNAPSHOT, "", 0)).ok(), Some(DeleteScope::Snapshot(at(SNAPSHOT))));
    assert_eq!(scope(request("", VERSION, 0)).ok(), Some(DeleteScope::Version(at(VERSION))));
}

#[test]
fn a_choice_on_snapshots_excludes_a_named_state() {
    let scope = |request| parsed(|parser| parser.delete_scope(&request));
    let expected = [(Reason::InvalidQueryParameterValue, "delete_snapshots")];
    let choices = [proto::DeleteSnapshots::Include, proto::DeleteSnapshots::Only];
    for number in choices.map(i32::from) {
        assert_rejected(scope(request(SNAPSHOT, "", number)), &expected);
        assert_rejected(scope(request("", VERSION, number)), &expected);
    }
    for number in [-1, 3, i32::MIN] {
        assert_rejected(scope(request("", "", number)), &expected);
        assert_rejected(scope(request(SNAPSHOT, "", number)), &expected);
    }
}

#[test]
fn the_version_of_a_deleted_container_is_its_id_in_16_hexadecimal_digits() {
    let id = |version: &str| {
        let mut parser = RequestParser::default();
        let id = parser.container_version(version);
        parser.finish(id)
    };
    for (version, number) in [
        ("0000000000000000", 0),
        ("00000000000000fF", 255),
        ("ffffffffffffffff", u64::MAX),
        ("0123456789abcdef", 0x0123_4567_89AB_CDEF),
    ] {
        assert_eq!(id(version).map(|it| it.0).ok(), Some(number), "{version}");
    }
    for version in [
        "",
        "ff",
        "+00000000000000f",
        "-000000000000001",
        "000000000000000g",
        "00000000000000000",
        "0x00000000000001",
        "ééééééée",
    ] {
        assert_rejected(id(version), &[(Reason::InvalidHeaderValue, "version")]);
    }
}
