//! Texts to sign and signatures of other implementations, for every existing layout.

use base64::{Engine as _, engine::general_purpose::STANDARD};

use crate::{
    account::{Account, AccountKey},
    sas::{NamedResource, Token, mint, string_to_sign},
    spec::{BLOB, QUEUE},
};

const ACCOUNT: &str = "devstoreaccount1";
/// Of the vectors of tables.
const TABLE_TIMES: &str = "st=2026-01-01T00:00:00Z&se=2036-01-01T00:00:00Z";
/// Of the vectors of queues and blobs.
const OTHER_TIMES: &str = "st=2025-11-21T00:00:00Z&se=2035-11-21T00:00:00Z";

/// Fields without the signature, the text that is signed, and the signature.
struct Vector {
    fields: String,
    resource: Option<NamedResource>,
    text: &'static str,
    signature: &'static str,
}

fn vector(times: &str, fields: &str, text: &'static str, signature: &'static str) -> Vector {
    let separator = if times.is_empty() { "" } else { "&" };
    Vector { fields: format!("{times}{separator}{fields}"), resource: None, text, signature }
}

fn tables() -> Vec<Vector> {
    vec![
        vector(
            TABLE_TIMES,
            "sp=raud&sv=2019-02-02&tn=MyTable",
            "raud\n2026-01-01T00:00:00Z\n2036-01-01T00:00:00Z\n/table/devstoreaccount1/mytable\n\
             \n\n\n2019-02-02\n\n\n\n",
            "V+Pw4sMiRz+Rn85tY8GqS7W2A40isFItVAjCjzruwO0=",
        ),
        vector(
            TABLE_TIMES,
            "sp=r&sv=2019-02-02&tn=mytable&sip=127.0.0.1-127.0.0.9&spr=https,http\
             &spk=a&srk=1&epk=b&erk=9",
            "r\n2026-01-01T00:00:00Z\n2036-01-01T00:00:00Z\n/table/devstoreaccount1/mytable\n\n\
             127.0.0.1-127.0.0.9\nhttps,http\n2019-02-02\na\n1\nb\n9",
            "PYgPnlrp7mhWk8YUgD05/yhQMs2E4KXjqqaJJFMVmNg=",
        ),
        vector(
            "",
            "si=policy1&sv=2019-02-02&tn=mytable",
            "\n\n\n/table/devstoreaccount1/mytable\npolicy1\n\n\n2019-02-02\n\n\n\n",
            "7fk7F8vYktbK9ITerPezirtr6NZNSL8zDLE5ET8adv8=",
        ),
        vector(
            TABLE_TIMES,
            "sp=r&sv=2013-08-15&tn=mytable",
            "r\n2026-01-01T00:00:00Z\n2036-01-01T00:00:00Z\n/devstoreaccount1/mytable\n\n\
             2013-08-15\n\n\n\n",
            "IfGVK/yfSxL57imla9rk/PvSy23P7W/6DVvWW1vhnbo=",
        ),
        vector(
            TABLE_TIMES,
            "sp=r&sv=2015-02-21&tn=mytable",
            "r\n2026-01-01T00:00:00Z\n2036-01-01T00:00:00Z\n/table/devstoreaccount1/mytable\n\n\
             2015-02-21\n\n\n\n",
            "B2LxYOHX+I+s0B+MmrOSknhqUJe8ZQKHLWLIi6oMQUk=",
        ),
    ]
}

fn accounts() -> Vec<Vector> {
    vec![
        vector(
            TABLE_TIMES,
            "sp=rwdlacu&ss=t&srt=sco&sv=2019-02-02",
            "devstoreaccount1\nrwdlacu\nt\nsco\n2026-01-01T00:00:00Z\n2036-01-01T00:00:00Z\n\n\n\
             2019-02-02\n",
            "0I6PMRUftM2ulpiv5GKeBu8b56qs+xCN/5o8wmwPrCo=",
        ),
        vector(
            TABLE_TIMES,
            "sp=rwdlacu&ss=t&srt=sco&sv=2020-12-06&spr=https,http",
            "devstoreaccount1\nrwdlacu\nt\nsco\n2026-01-01T00:00:00Z\n2036-01-01T00:00:00Z\n\n\
             https,http\n2020-12-06\n\n",
            "zsQp31Uz1SutE6Ar7gUcq3hNSCCBRJZS+dBU37Ajuk0=",
        ),
        vector(
            OTHER_TIMES,
            "sp=rwdlacup&ss=bq&srt=sco&sv=2021-12-02&spr=https,http",
            "devstoreaccount1\nrwdlacup\nbq\nsco\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n\n\
             https,http\n2021-12-02\n\n",
            "86Zc0ArE9XfkCK1oX7mR+ezKUcpP+yYyykfgQ3tgMa4=",
        ),
        vector(
            OTHER_TIMES,
            "sp=rl&ss=b&srt=sco&sv=2019-02-02",
            "devstoreaccount1\nrl\nb\nsco\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n\n\n\
             2019-02-02\n",
            "ifYDVQ03gq2WUVxHAezm0tOUJtI1uVjoyiF8OjNEBQM=",
        ),
    ]
}

fn queues() -> Vec<Vector> {
    let vectors = [
        vector(
            OTHER_TIMES,
            "sp=raup&sv=2021-12-02",
            "raup\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n/queue/devstoreaccount1/orders\n\n\n\n\
             2021-12-02",
            "K03YP9Hem8peR46CXBoHweINKnidlDsS7zHMFDXXw9I=",
        ),
        // These four were computed with another implementation of HMAC from the published layouts.
        vector(
            "",
            "sp=p&sv=2015-04-05&si=workers&sip=127.0.0.1-127.0.0.9&spr=https,http",
            "p\n\n\n/queue/devstoreaccount1/orders\nworkers\n127.0.0.1-127.0.0.9\nhttps,http\n\
             2015-04-05",
            "wofARs+ig5nOP/GZ56wmkAWaaaFCg8XZdZG/XDLs4Zg=",
        ),
        vector(
            OTHER_TIMES,
            "sp=raup&sv=2015-02-21",
            "raup\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n/queue/devstoreaccount1/orders\n\n\
             2015-02-21",
            "AtoWsuG9vuc9Ves8ryVvM1NAlDVsLEc5HMGJRvVjSbw=",
        ),
        vector(
            OTHER_TIMES,
            "sp=raup&sv=2013-08-15",
            "raup\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n/devstoreaccount1/orders\n\n\
             2013-08-15",
            "0SoQ9qzqaUmhM74MvPNyZDq53Q+e0NdxPAaJ26iAYQU=",
        ),
        vector(
            OTHER_TIMES,
            "sp=raup&sv=2012-02-12",
            "raup\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n/devstoreaccount1/orders\n\n\
             2012-02-12",
            "5nVK7DstKuuf08uIDipDNV4NUvX6xnMU1q8qbg/J4Yo=",
        ),
    ];
    let queue = Some(NamedResource::new(&QUEUE, "orders"));
    vectors.map(|vector| Vector { resource: queue.clone(), ..vector }).into()
}

fn containers() -> Vec<Vector> {
    let vectors = [
        vector(
            OTHER_TIMES,
            "sp=rl&sv=2021-12-02&sr=c",
            "rl\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n/blob/devstoreaccount1/logs\n\n\n\n\
             2021-12-02\nc\n\n\n\n\n\n\n",
            "gz0AYirMLUWsKjDTE+HBD2mVmtJNDDqKrTxKz+HLkhE=",
        ),
        vector(
            "",
            "si=pol1&sv=2021-12-02&sr=c",
            "\n\n\n/blob/devstoreaccount1/logs\npol1\n\n\n2021-12-02\nc\n\n\n\n\n\n\n",
            "jENo1gsB3eneVNSddN5WrJMMx2yIdSUjNAVAjy9st94=",
        ),
        vector(
            OTHER_TIMES,
            "sp=rl&sv=2015-04-05&sr=c",
            "rl\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n/blob/devstoreaccount1/logs\n\n\n\n\
             2015-04-05\n\n\n\n\n",
            "/SnmdxraS9tHvJtKCKqv7x+yMMLx58VTPJ2Y5nRU7Bs=",
        ),
    ];
    let container = Some(NamedResource::new(&BLOB, "logs"));
    vectors.map(|vector| Vector { resource: container.clone(), ..vector }).into()
}

fn blobs() -> Vec<Vector> {
    let vectors = [
        vector(
            OTHER_TIMES,
            "sp=rcw&sv=2021-12-02&sr=b&rsct=text/plain",
            "rcw\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n\
             /blob/devstoreaccount1/logs/dir/a b.txt\n\n\n\n2021-12-02\nb\n\n\n\n\n\n\ntext/plain",
            "5kzEb/EecvPkrfj9ANzFvLBxZ548RhqWXqjRGDKkLEg=",
        ),
        vector(
            OTHER_TIMES,
            "sp=r&sv=2018-11-09&sr=b",
            "r\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n\
             /blob/devstoreaccount1/logs/dir/a b.txt\n\n\n\n2018-11-09\nb\n\n\n\n\n\n",
            "ayQog29GKbQ++Ltgk265/rbUrfhKLme7U8czAJwnUPs=",
        ),
        vector(
            OTHER_TIMES,
            "sp=r&sv=2015-04-05&sr=b",
            "r\n2025-11-21T00:00:00Z\n2035-11-21T00:00:00Z\n\
             /blob/devstoreaccount1/logs/dir/a b.txt\n\n\n\n2015-04-05\n\n\n\n\n",
            "ahLFBKIXOCKp4AMJ0HbNekFxz+s0zsQJDtABaNI9wGM=",
        ),
    ];
    let blob = Some(NamedResource::new(&BLOB, "logs/dir/a b.txt"));
    vectors.map(|vector| Vector { resource: blob.clone(), ..vector }).into()
}

fn all() -> Vec<Vector> {
    [tables(), accounts(), queues(), containers(), blobs()].into_iter().flatten().collect()
}

impl Vector {
    /// The token with a signature, escaped as clients do.
    fn token(&self, signature: &str) -> Token {
        let escaped = signature.replace('+', "%2B").replace('=', "%3D");
        let text = format!("{}&sig={escaped}", self.fields);
        Token::parse(&text, self.resource.clone()).expect(&text)
    }
}

#[test]
fn reproduces_the_string_to_sign_and_signature_of_every_vector() {
    for vector in all() {
        let token = vector.token(vector.signature);

        let text = string_to_sign(&token.terms, ACCOUNT);

        assert_eq!(text, vector.text);
        let signature = AccountKey::development().sign(&text);
        assert_eq!(STANDARD.encode(signature), vector.signature, "{text}");
        assert!(Account::development().verifies(&text, &token.signature), "{text}");
    }
}

#[test]
fn a_minted_token_matches_its_vector_and_survives_parsing() {
    for vector in all() {
        let recorded = vector.token(vector.signature);

        // Two of the vectors have their letters in another order than clients use.
        let minted = mint(recorded.terms.clone(), ACCOUNT, &AccountKey::development());
        let minted = minted.expect(vector.text);
        let read = Token::parse(&minted.to_query(), vector.resource.clone()).expect(vector.text);

        assert_eq!(read, minted, "{}", vector.text);
        if recorded.terms.permissions == minted.terms.permissions {
            assert_eq!(minted, recorded, "{}", vector.text);
        }
    }
}

#[test]
fn older_layouts_of_blobs_omit_what_their_versions_do_not_sign() {
    let text = |version: &str| {
        let fields = format!("sp=r&se=2035-11-21&sv={version}&sr=c&rsct=text/plain&sig=");
        let signature = STANDARD.encode([0; 32]).replace('=', "%3D");
        let resource = Some(NamedResource::new(&BLOB, "logs"));
        let token = Token::parse(&format!("{fields}{signature}"), resource).expect(version);
        string_to_sign(&token.terms, "acme")
    };

    let headers = "\n\n\n\n\ntext/plain";
    let of_2013 = format!("r\n\n2035-11-21\n/acme/logs\n\n2013-08-15{headers}");
    assert_eq!(text("2013-08-15"), of_2013);
    let of_2015 = format!("r\n\n2035-11-21\n/blob/acme/logs\n\n2015-02-21{headers}");
    assert_eq!(text("2015-02-21"), of_2015);
}

#[test]
fn a_token_of_a_snapshot_signs_the_time_of_the_request_and_a_directory_its_path() {
    let signed = |fields: &str, path: &str, snapshot: Option<&str>| {
        let signature = STANDARD.encode([0; 32]).replace('=', "%3D");
        let mut named = NamedResource::new(&BLOB, path);
        snapshot.into_iter().for_each(|time| named.fields.set("snapshot", time));
        let text = format!("sp=r&se=2035-11-21&sv=2021-12-02&{fields}&sig={signature}");
        Some(string_to_sign(&Token::parse(&text, Some(named)).ok()?.terms, "acme"))
    };
    let text = |name: &str, kind: &str, time: &str| {
        Some(format!(
            "r\n\n2035-11-21\n/blob/acme/{name}\n\n\n\n2021-12-02\n{kind}\n{time}\n\n\n\n\n\n"
        ))
    };

    let time = "2025-11-21T00:00:00.0000000Z";
    assert_eq!(signed("sr=bs", "logs/a", Some(time)), text("logs/a", "bs", time));
    assert_eq!(signed("sr=bv", "logs/a", Some(time)), text("logs/a", "bv", time));
    assert_eq!(signed("sr=b", "logs/a", Some(time)), text("logs/a", "b", ""));
    assert_eq!(signed("sr=c", "logs/a", Some(time)), text("logs", "c", ""));
    assert_eq!(signed("sr=d&sdd=2", "logs/a/b/c", None), text("logs/a/b", "d", ""));
    for (fields, path) in [("sr=d", "logs/a"), ("sr=d&sdd=3", "logs/a/b"), ("sr=x", "logs/a")] {
        assert_eq!(signed(fields, path, None), None, "{fields} {path}");
    }
}

#[test]
fn a_version_that_signs_one_resource_like_another_is_none_of_blobs() {
    let parse = |version: &str, kind: &str| {
        let signature = STANDARD.encode([0; 32]).replace('=', "%3D");
        let mut named = NamedResource::new(&BLOB, "logs/a");
        named.fields.set("snapshot", "2025-11-21T00:00:00.0000000Z");
        let text = format!("sp=r&se=2035-11-21&sv={version}&sr={kind}&sdd=1&sig={signature}");
        Token::parse(&text, Some(named)).map(drop).map_err(|error| error.to_string())
    };
    for (kind, before, first) in [
        ("c", "2012-02-12", "2013-08-15"),
        ("b", "2013-08-14", "2013-08-15"),
        ("bs", "2018-03-28", "2018-11-09"),
        ("bv", "2015-04-05", "2018-11-09"),
        ("d", "2015-02-21", "2018-11-09"),
    ] {
        let error = parse(before, kind).expect_err(kind);
        assert!(error.contains(&format!("needs sv {first} or newer")), "{kind}: {error}");
        assert_eq!(parse(first, kind), Ok(()), "{kind}");
    }
}
