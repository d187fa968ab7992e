//! Bearer tokens of configured issuers: roles in every service, and their revocation.

use std::path::PathBuf;

use http::header::AUTHORIZATION;
use tempfile::TempDir;
use tonic::{Code, Streaming};
use trestle_proto::{
    log::v1::{TailRecordsRequest, TailRecordsResponse},
    service::v1::AccessPolicy,
};
use trestle_tests::{
    CallError, HANG, Server, TokenIssuer, World, entity, log_record, replace_file, seconds, text,
};

pub(crate) const ISSUER: &str = "https://login.example.com/tenant";
pub(crate) const KEY: &str =
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";

const INVALID: (Code, &str) = (Code::Unauthenticated, "INVALID_AUTHENTICATION_INFO");
const NO_PERMISSION: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PERMISSION_MISMATCH");
const NOT_AUTHORIZED: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_FAILURE");

/// An issuer for the account `acme`, and the files of a server that accepts its tokens.
pub(crate) struct Corp {
    pub(crate) issuer: TokenIssuer,
    directory: TempDir,
}

impl Corp {
    pub(crate) fn new() -> Self {
        let (issuer, directory) = (TokenIssuer::new(ISSUER), tempfile::tempdir().unwrap());
        let corp = Self { issuer, directory };
        replace_file(&corp.keys(), &corp.issuer.jwks());
        corp.configure(&corp.section());
        corp
    }

    fn keys(&self) -> PathBuf {
        self.directory.path().join("keys.json")
    }

    fn config(&self) -> PathBuf {
        self.directory.path().join("config.toml")
    }

    pub(crate) fn section(&self) -> String {
        let keys = self.keys();
        format!(
            "[gateway.issuers.corp]\nissuer = \"{ISSUER}\"\naudience = \"trestle\"\n\
             accounts = \"acme\"\nclock_skew_seconds = 0\njwks_file = \"{}\"\n",
            keys.display()
        )
    }

    /// Writes the settings: the accounts `acme` and `other` with the same key, and a section.
    pub(crate) fn configure(&self, section: &str) {
        self.configure_keys(&[KEY], section);
    }

    /// The same with other keys of `acme`.
    pub(crate) fn configure_keys(&self, keys: &[&str], section: &str) {
        let lines = keys.iter().zip(1..).map(|(key, number)| format!("key{number} = \"{key}\"\n"));
        let keys: String = lines.collect();
        let accounts = format!("[accounts.acme]\n{keys}[accounts.other]\nkey1 = \"{KEY}\"\n");
        replace_file(&self.config(), &format!("{accounts}{section}"));
    }

    pub(crate) fn server(&self) -> Server {
        Server::start(&["--ephemeral", "--config", self.config().to_str().unwrap()], &[])
    }

    /// The world for a caller with a role.
    fn caller(&self, world: &World, role: &str) -> World {
        bearer(world, &self.issuer.token(role, 600))
    }
}

fn bearer(world: &World, token: &str) -> World {
    world.with_header(AUTHORIZATION, &format!("Bearer {token}"))
}

fn kind<T>(outcome: Result<T, CallError>) -> Option<(Code, String)> {
    outcome.err().map(|error| (error.kind().0, error.kind().1.to_owned()))
}

fn denied<T>(outcome: Result<T, CallError>) {
    assert_eq!(kind(outcome), Some((NO_PERMISSION.0, NO_PERMISSION.1.to_owned())));
}

fn policy() -> Vec<AccessPolicy> {
    vec![AccessPolicy { id: "p".to_owned(), ..Default::default() }]
}

/// What each role may do with resources of an owner.
async fn each_role_permits_its_calls_in_every_service(world: &World, corp: &Corp) {
    let owner = corp.caller(world, "owner");
    owner.create("Orders").await.unwrap();
    let (jobs, files) = (owner.queue("jobs").await, owner.container("files").await);
    owner.log_stream("web").await;
    owner.existing_table("Orders").set_policies(policy()).await.unwrap();
    jobs.set_policies(policy()).await.unwrap();

    let contributor = corp.caller(world, "contributor");
    contributor.create("Ours").await.unwrap();
    let table = contributor.existing_table("Orders");
    table.insert(entity("p", "r", [])).await.unwrap();
    contributor.existing_queue("jobs").send(text("job")).await.unwrap();
    contributor.existing_container("files").write("b", "content").await.unwrap();
    contributor.existing_log_stream("web").append(&[log_record(1, "first")]).await.unwrap();
    denied(table.set_policies(policy()).await);
    denied(contributor.existing_queue("jobs").set_policies(policy()).await);
    denied(contributor.set_properties(Default::default()).await);
    denied(contributor.set_queue_properties(Default::default()).await);

    let reader = corp.caller(world, "reader");
    let table = reader.existing_table("Orders");
    table.get("p", "r").await.unwrap();
    reader.list("", None, "").await.unwrap();
    reader.properties().await.unwrap();
    assert_eq!(reader.existing_queue("jobs").peek(1).await.unwrap().len(), 1);
    reader.existing_container("files").read("b").await.unwrap();
    reader.existing_log_stream("web").read().await.unwrap();
    denied(table.insert(entity("p", "r2", [])).await);
    denied(table.delete("p", "r", None).await);
    denied(reader.create("Theirs").await);
    denied(reader.existing_queue("jobs").send(text("job")).await);
    denied(reader.existing_queue("jobs").receive(1, seconds(30)).await);
    denied(reader.existing_container("files").write("b", "other").await);
    denied(reader.existing_container("more").create().await);
    denied(reader.existing_log_stream("web").append(&[log_record(2, "second")]).await);

    denied(corp.caller(world, "visitor").list("", None, "").await);
    files.read("b").await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_permit_their_calls_in_one_process() {
    let corp = Corp::new();
    let world = World::of(corp.server()).await;
    each_role_permits_its_calls_in_every_service(&world, &corp).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn roles_permit_their_reads_and_no_more_in_another_process() {
    let corp = Corp::new();
    let keys = corp.keys();
    let settings = [
        ("TRESTLE__ACCOUNTS__ACME__KEY1", KEY),
        ("TRESTLE__GATEWAY__ISSUERS__CORP__ISSUER", ISSUER),
        ("TRESTLE__GATEWAY__ISSUERS__CORP__AUDIENCE", "trestle"),
        ("TRESTLE__GATEWAY__ISSUERS__CORP__ACCOUNTS", "acme"),
        ("TRESTLE__GATEWAY__ISSUERS__CORP__JWKS_FILE", keys.to_str().unwrap()),
    ];
    let world = World::as_separate_processes_with(&settings).await;

    corp.caller(&world, "owner").create("Orders").await.unwrap();
    let reader = corp.caller(&world, "reader");
    let (names, _) = reader.list("", None, "").await.unwrap();

    assert_eq!(names, ["Orders"]);
    denied(reader.create("Theirs").await);
    denied(reader.existing_table("Orders").insert(entity("p", "r", [])).await);
    denied(corp.caller(&world, "contributor").set_properties(Default::default()).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn invalid_tokens_and_other_accounts_are_rejected() {
    let corp = Corp::new();
    let world = World::of(corp.server()).await;
    let account = http::HeaderName::from_static("trestle-account");
    let valid = corp.issuer.token("owner", 600);
    let rejected = async |token: &str| {
        let error = bearer(&world, token).list("", None, "").await.unwrap_err();
        assert!(!error.message.contains(token), "{error:?}");
        (error.kind().0, error.kind().1.to_owned())
    };

    let forged = TokenIssuer::new(ISSUER).token("owner", 600);
    let stranger = TokenIssuer::new("https://other.example.com").token("owner", 600);
    for token in [&*forged, &*stranger, &*corp.issuer.token("owner", -1), "a.b.c"] {
        assert_eq!(rejected(token).await, (INVALID.0, INVALID.1.to_owned()));
    }
    let caller = bearer(&world, &valid);
    caller.list("", None, "").await.unwrap();
    caller.with_header(account.clone(), "acme").list("", None, "").await.unwrap();
    for name in ["other", "absent"] {
        let outcome = caller.with_header(account.clone(), name).list("", None, "").await;
        assert_eq!(kind(outcome), Some((NOT_AUTHORIZED.0, NOT_AUTHORIZED.1.to_owned())));
    }
}

async fn tail(world: &World) -> Streaming<TailRecordsResponse> {
    let request = TailRecordsRequest { stream: "web".to_owned(), ..Default::default() };
    world.logs().tail_records(request).await.unwrap().into_inner()
}

async fn end(stream: &mut Streaming<TailRecordsResponse>) -> CallError {
    loop {
        match tokio::time::timeout(HANG, stream.message()).await.expect("the stream ends") {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended without an error"),
            Err(status) => return CallError::from(status),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_when_their_issuer_is_removed() {
    let corp = Corp::new();
    let world = World::of(corp.server()).await;
    corp.caller(&world, "owner").log_stream("web").await;
    let mut stream = tail(&corp.caller(&world, "reader")).await;

    corp.configure("");
    world.hang_up();

    let error = end(&mut stream).await;
    assert_eq!(error.kind(), INVALID, "{error:?}");
    assert!(error.message.contains("by the settings of its issuer: account=`acme`"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn streams_end_when_their_token_expires() {
    let corp = Corp::new();
    let world = World::of(corp.server()).await;
    corp.caller(&world, "owner").log_stream("web").await;

    let mut stream = tail(&bearer(&world, &corp.issuer.token("reader", 3))).await;

    let error = end(&mut stream).await;
    assert_eq!(error.kind(), (Code::Unauthenticated, "AUTHENTICATION_FAILED"));
    assert!(error.message.contains("expired during the stream"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn replaced_keys_apply_without_a_restart_and_malformed_ones_change_nothing() {
    let corp = Corp::new();
    let world = World::of(corp.server()).await;
    let old = corp.caller(&world, "owner");
    old.log_stream("web").await;
    let mut stream = tail(&old).await;
    let replacement = TokenIssuer::new(ISSUER);

    replace_file(&corp.keys(), "{}");
    world.hang_up();
    old.list("", None, "").await.unwrap();
    replace_file(&corp.keys(), &replacement.jwks());
    world.hang_up();

    assert_eq!(end(&mut stream).await.kind(), INVALID);
    assert_eq!(kind(old.list("", None, "").await), Some((INVALID.0, INVALID.1.to_owned())));
    bearer(&world, &replacement.token("reader", 600)).list("", None, "").await.unwrap();
}
