use super::*;
use crate::{
    record::{ContainerId, ContainerRecord, PublicAccess},
    tier::{AssignedTier, Tier},
};

fn ticks(ticks: u64) -> Ticks {
    Ticks::new(ticks).expect("in range")
}

fn leases() -> [ResourceLease; 4] {
    let id = Uuid::from_u128(0xA);
    let term = LeaseTerm { duration: Duration::from_secs(15), until: ticks(99) };
    [
        ResourceLease::Absent,
        ResourceLease::Held { id, term: None },
        ResourceLease::Held { id, term: Some(term) },
        ResourceLease::Breaking { id, until: ticks(100) },
    ]
}

fn part(content: u64) -> Part {
    Part { content: ContentId(content), mark: content * 7, size: content * 1000 }
}

fn blob(lease: ResourceLease, content: Content) -> BlobRecord {
    BlobRecord {
        etag: ETag(ticks(5)),
        created_at: ticks(4),
        properties: ContentProperties {
            content_type: "text/plain".to_owned(),
            encoding: "gzip".to_owned(),
            language: "en".to_owned(),
            disposition: "inline".to_owned(),
            cache_control: "no-store".to_owned(),
            md5: Some([7; 16]),
        },
        metadata: vec![("Name".to_owned(), "value".to_owned())],
        lease,
        content,
        tier: Some(AssignedTier { tier: Tier::Archive, changed_at: ticks(3) }),
        history: BlobHistory { snapshots: 3, newest_shared: Some(ticks(6)) },
        copy: Some(BlobCopy {
            origin: CopyOrigin { id: Uuid::from_u128(0xB), source: "logs/a".to_owned() },
            completed_at: ticks(7),
            size: Some(8),
        }),
        deletion: Some(Deletion { at: ticks(8), until: ticks(9) }),
        tags: vec![("k".to_owned(), "v".to_owned())],
        version: Some(ticks(10)),
    }
}

fn survives<T: Stored + PartialEq + std::fmt::Debug>(record: &T) {
    let encoded = record.encode();
    assert_eq!(T::decode(&encoded).expect("readable"), *record);

    let mut later = encoded.to_vec();
    later[0] = FORMAT + 1;
    for damaged in [&b""[..], &later, &[FORMAT, 0xFF]] {
        assert!(matches!(T::decode(damaged), Err(BlobError::Corrupt(_))), "{damaged:?}");
    }
}

#[test]
fn records_survive_and_unreadable_ones_are_corrupt() {
    let contents = [
        Content::Inline { size: 3 },
        Content::Whole(part(1)),
        Content::Blocks { list: 8, size: 9 },
        Content::Append(AppendContent {
            generation: 1,
            size: 2,
            blocks: 3,
            is_sealed: true,
            compacted_to: 4,
            row_bytes: 5,
        }),
        Content::Pages(PageContent { generation: 1, size: 512, sequence_number: 3 }),
    ];
    for lease in leases() {
        for content in contents {
            survives(&blob(lease, content));
        }
        survives(&ContainerRecord {
            id: ContainerId(1),
            etag: ETag(ticks(2)),
            created_at: ticks(1),
            metadata: vec![("a".to_owned(), String::new())],
            policies: Bytes::from_static(b"policies"),
            lease,
            deletion: Some(Deletion { at: ticks(8), until: ticks(9) }),
            public_access: PublicAccess::Container,
        });
    }
    survives(&part(3));
    survives(&vec![
        StoredBlock { id: "a".into(), part: part(1) },
        StoredBlock { id: "b".into(), part: part(2) },
    ]);
    survives(&Staging { generation: 1, changed_at: ticks(2), id_bytes: 3, count: 4, size: 5 });
    let staging = Some(RetiredStaging { generation: 6, with_contents: true });
    survives(&Retired {
        parts: vec![part(1), part(2)],
        list: Some(5),
        staging,
        generation: Some(7),
    });
    survives(&Retired { parts: vec![part(1)], ..Retired::default() });
}

#[test]
fn every_tier_survives_and_an_unknown_one_is_corrupt() {
    for (number, tier) in (1..).zip(Tier::ALL) {
        let tier = Some(AssignedTier { tier, changed_at: ticks(3) });
        let record = BlobRecord { tier, ..blob(ResourceLease::Absent, Content::Whole(part(1))) };
        survives(&record);
        assert_eq!(tier.map(tier_form), Some(TierForm::numbered(number, 3)));
    }
    for unknown in [0, 16] {
        assert_eq!(tier_of(&TierForm::numbered(unknown, 3)), None);
    }
}

#[test]
fn the_form_of_a_blob_on_disk_does_not_change() {
    let record = BlobRecord {
        properties: ContentProperties::default(),
        metadata: Vec::new(),
        tier: None,
        history: BlobHistory::default(),
        copy: None,
        deletion: None,
        tags: Vec::new(),
        version: None,
        ..blob(ResourceLease::Absent, Content::Whole(Part { mark: 0, ..part(1) }))
    };

    // Field 1: etag 5; 2: created 4; 11: size 1000; 12: content 1.
    let before = [1, 0x08, 5, 0x10, 4, 0x58, 0xE8, 0x07, 0x60, 1];
    assert_eq!(record.encode().as_ref(), before);
    // 16: mark 7.
    let marked = BlobRecord { content: Content::Whole(part(1)), ..record };
    assert_eq!(
        marked.encode().as_ref(),
        [&before[..], &[0x81, 0x01, 7, 0, 0, 0, 0, 0, 0, 0]].concat()
    );
}
