//! Authentication: keys, SAS tokens, and the errors without valid ones.

use std::{fs, process::Command, time::Duration};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::header::AUTHORIZATION;
use tonic::Code;
use trestle_identity::{
    account::AccountKey,
    caller::KeyRange,
    sas::{AddressRange, Protocol, Scope, Terms, Time, mint},
};
use trestle_model::time::{Clock as _, SystemClock, Ticks};
use trestle_proto::table::v1::StreamEntitiesRequest;
use trestle_tests::{
    CallError, HANG, Server, World, entity, int, over_account, replace_file, scenario_with,
    server_binary, string, terms, text,
};

/// Base64 of 64 bytes, each the number of the key.
const KEY_1: &str =
    "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQ==";
const KEY_2: &str =
    "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAg==";
const KEY_3: &str =
    "AwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAwMDAw==";

/// The development account is on beside configured accounts only where the settings have it.
const DEVELOPMENT: (&str, &str) = ("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "loopback");

/// The development account, an account with two keys, and a disabled one.
const ACCOUNTS: &[(&str, &str)] = &[
    DEVELOPMENT,
    ("TRESTLE__ACCOUNTS__ACME__KEY1", KEY_1),
    ("TRESTLE__ACCOUNTS__ACME__KEY2", KEY_2),
    ("TRESTLE__ACCOUNTS__CLOSED__KEY1", KEY_3),
    ("TRESTLE__ACCOUNTS__CLOSED__DISABLED", "true"),
];

scenario_with!(
    ACCOUNTS;
    account_key_grants_full_access_to_its_account_only,
    unknown_account_and_wrong_key_are_indistinguishable,
    disabled_account_is_reported_to_its_key_holder_only,
    sas_is_valid_for_its_account_time_and_address,
    rejects_malformed_credentials_without_repeating_them,
    loopback_call_without_credentials_uses_the_development_account,
);

const NOT_AUTHENTIC: (Code, &str) = (Code::Unauthenticated, "AUTHENTICATION_FAILED");
const MALFORMED: (Code, &str) = (Code::Unauthenticated, "INVALID_AUTHENTICATION_INFO");
const NONE: (Code, &str) = (Code::Unauthenticated, "NO_AUTHENTICATION_INFORMATION");
const DISABLED: (Code, &str) = (Code::PermissionDenied, "ACCOUNT_IS_DISABLED");
const WRONG_ADDRESS: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_SOURCE_IP_MISMATCH");
const WRONG_PROTOCOL: (Code, &str) = (Code::PermissionDenied, "AUTHORIZATION_PROTOCOL_MISMATCH");

/// The world for a client that sends an account and a key.
fn basic(world: &World, account: &str, key: &str) -> World {
    let value = STANDARD.encode(format!("{account}:{key}"));
    world.with_header(AUTHORIZATION, &format!("Basic {value}"))
}

fn signed(terms: Terms, account: &str, key: &str) -> String {
    let key = AccountKey::decode(key).unwrap();
    mint(terms, account, &key).unwrap().to_query()
}

/// The names of the tables, or the error instead.
async fn tables(world: &World) -> Result<Vec<String>, CallError> {
    world.list("", None, "").await.map(|(names, _)| names)
}

async fn rejected(world: &World) -> CallError {
    tables(world).await.unwrap_err()
}

async fn account_key_grants_full_access_to_its_account_only(world: &World) {
    world.create("Shared").await.unwrap();
    basic(world, "acme", KEY_1).create("Ours").await.unwrap();

    let ours = tables(&basic(world, "acme", KEY_2)).await.unwrap();
    let shared = tables(world).await.unwrap();

    assert_eq!(ours, ["Ours"]);
    assert_eq!(shared, ["Shared"]);
}

async fn unknown_account_and_wrong_key_are_indistinguishable(world: &World) {
    let wrong_key = rejected(&basic(world, "acme", KEY_3)).await;
    let no_account = rejected(&basic(world, "absent", KEY_1)).await;
    let wrong_signature = signed(terms(over_account("t", "sco"), "rl"), "acme", KEY_3);
    let wrong_signature = rejected(&world.signed(&wrong_signature)).await;
    let stranger = signed(terms(over_account("t", "sco"), "rl"), "absent", KEY_1);
    let stranger = rejected(&world.signed(&stranger)).await;

    assert_eq!(wrong_key.kind(), NOT_AUTHENTIC);
    assert_eq!(wrong_key, no_account);
    assert_eq!(wrong_key, wrong_signature);
    assert_eq!(wrong_key, stranger);
}

async fn disabled_account_is_reported_to_its_key_holder_only(world: &World) {
    let owner = rejected(&basic(world, "closed", KEY_3)).await;
    let signature = signed(terms(over_account("t", "sco"), "rl"), "closed", KEY_3);
    let holder = rejected(&world.signed(&signature)).await;
    let other = rejected(&basic(world, "closed", KEY_1)).await;

    assert_eq!([owner.kind(), holder.kind()], [DISABLED; 2]);
    assert_eq!(other.kind(), NOT_AUTHENTIC);
}

async fn sas_is_valid_for_its_account_time_and_address(world: &World) {
    let owner = basic(world, "acme", KEY_1);
    let ours = owner.table("Ours").await;
    ours.insert(entity("p", "r", [int("n", 1)])).await.unwrap();
    let scope = || Scope::of_table("oURS", &KeyRange::default());
    let time = |text: &str| Some(Time::parse("st", text.to_owned()).unwrap());
    let addresses = |text: &str| Some(AddressRange::parse(text.to_owned()).unwrap());
    let get = async |terms: Terms, account: &str, key: &str| {
        let table = world.signed(&signed(terms, account, key)).existing_table("Ours");
        table.get("p", "r").await.map(drop).map_err(|error| error.kind().0)
    };
    let kind = async |terms: Terms| {
        let holder = world.signed(&signed(terms, "acme", KEY_2)).existing_table("Ours");
        let error = holder.get("p", "r").await.err();
        error.map(|error| error.kind().1.to_owned()).unwrap_or_default()
    };

    for key in [KEY_1, KEY_2] {
        assert_eq!(get(terms(scope(), "r"), "acme", key).await, Ok(()));
    }
    let everything = signed(terms(over_account("t", "sco"), "rl"), "acme", KEY_1);
    assert_eq!(tables(&world.signed(&everything)).await.unwrap(), ["Ours"]);
    let expired = Terms { expiry: time("2021-01-01"), ..terms(scope(), "r") };
    assert_eq!(kind(expired).await, NOT_AUTHENTIC.1);
    let early = Terms { start: time("2089-01-01"), ..terms(scope(), "r") };
    assert_eq!(kind(early).await, NOT_AUTHENTIC.1);
    let local = Terms { addresses: addresses("127.0.0.0-127.0.0.9"), ..terms(scope(), "r") };
    assert_eq!(kind(local).await, "");
    let elsewhere = Terms { addresses: addresses("10.0.0.1"), ..terms(scope(), "r") };
    assert_eq!(kind(elsewhere).await, WRONG_ADDRESS.1);
    let changed = signed(terms(scope(), "r"), "acme", KEY_1).replace("sp=r&", "sp=raud&");
    let changed = world.signed(&changed).existing_table("Ours").get("p", "r").await;
    assert_eq!(changed.unwrap_err().kind(), NOT_AUTHENTIC);
}

/// Values of `authorization`, each malformed in its own way.
fn malformed() -> Vec<String> {
    let good = signed(terms(over_account("t", "sco"), "rl"), "acme", KEY_1);
    let but = |old: &str, new: &str| {
        assert!(good.contains(old), "{old}: {good}");
        format!("SharedAccessSignature {}", good.replace(old, new))
    };
    let more = |field: &str| format!("SharedAccessSignature {good}&{field}");
    let basic = |text: &str| format!("Basic {}", STANDARD.encode(text));
    vec![
        "hunter2".to_owned(),
        "Bearer hunter2".to_owned(),
        "SharedKey acme:hunter2".to_owned(),
        "Basic".to_owned(),
        "Basic hunter2!".to_owned(),
        basic("acme"),
        basic("acme:hunter2"),
        "SharedAccessSignature ".to_owned(),
        "SharedAccessSignature hunter2".to_owned(),
        more("sv=2019-02-02"),
        more("sp=rl"),
        more("unknown=hunter2"),
        more("si=hunter2"),
        more("spk=%"),
        more("spk=%zz"),
        more("spk=%ff"),
        more("sip=10.0.0.9-10.0.0.1"),
        more("sip=::1"),
        more("spr=http"),
        more(&format!("spk={}", "a".repeat(9000))),
        but("sv=2019-02-02", "sv=2011-01-01"),
        but("sv=2019-02-02", "sv=next"),
        but("sp=rl", "sp=r%00"),
        but("sp=rl", "sp=rr"),
        but("ss=t", "ss=z"),
        but("srt=sco", "srt="),
        but("se=2090-01-01", "se=2090-02-30"),
        but("se=", "SE="),
        but("&sig=", "&sig=hunter2"),
        but("&sig=", "&gis="),
    ]
}

async fn rejects_malformed_credentials_without_repeating_them(world: &World) {
    for value in malformed() {
        let error = rejected(&world.with_header(AUTHORIZATION, &value)).await;

        assert_eq!(error.kind(), MALFORMED, "{value}: {}", error.message);
        let secret = value.split("sig=").nth(1).unwrap_or("hunter2");
        assert!(!error.message.contains(secret), "{}", error.message);
        assert!(!error.message.contains("hunter2"), "{}", error.message);
    }
}

async fn loopback_call_without_credentials_uses_the_development_account(world: &World) {
    world.create("Shared").await.unwrap();

    let public = trestle_identity::account::DEVELOPMENT_KEY;
    let with_key = tables(&basic(world, "devstoreaccount1", public)).await.unwrap();
    let name = http::HeaderName::from_static("trestle-account");
    let claimed = rejected(&world.with_header(name.clone(), "acme")).await;
    let grant = http::HeaderName::from_static("trestle-grant-bin");
    let ignored = tables(&world.with_header(grant, "////")).await.unwrap();

    assert_eq!([with_key, ignored], [["Shared"]; 2]);
    assert_eq!(claimed.kind(), NONE, "an account is not had by naming it");
}

/// Waits until a key is accepted, or rejected.
async fn until(world: &World, key: &str, is_accepted: bool) {
    let world = basic(world, "acme", key);
    let changed = async {
        while tables(&world).await.is_ok() != is_accepted {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let waited = tokio::time::timeout(HANG, changed).await;
    assert!(
        waited.is_ok(),
        "the key is still {}",
        if is_accepted { "rejected" } else { "accepted" }
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_rotate_on_reload() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    let (key, config, log) = (path("key"), path("config.toml"), path("log"));
    replace_file(&key, &format!("{KEY_1}\n"));
    let section =
        |more: &str| format!("[accounts.acme]\nkey1_file = \"{}\"\n{more}", key.display());
    replace_file(&config, &section(""));
    let args = ["--ephemeral", "--config", config.to_str().unwrap()];
    let server = Server::start_logging(&log, &args, &[]);
    let endpoint = server.endpoint();
    let world = World::of(server).await;
    until(&world, KEY_1, true).await;
    until(&world, KEY_2, false).await;

    // Its file changes, without a signal.
    replace_file(&key, KEY_2);
    until(&world, KEY_2, true).await;
    assert_eq!(rejected(&basic(&world, "acme", KEY_1)).await.kind(), NOT_AUTHENTIC);
    // The settings change, and the process gets SIGHUP.
    replace_file(&config, &section(&format!("key2 = \"{KEY_3}\"\n")));
    world.hang_up();
    until(&world, KEY_3, true).await;
    assert!(tables(&basic(&world, "acme", KEY_2)).await.is_ok(), "both keys");
    // What is broken changes nothing.
    replace_file(&key, "hunter2");
    world.hang_up();
    let read = |word: &str| fs::read_to_string(&log).unwrap().contains(word);
    while !read("must be base64") {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(tables(&basic(&world, "acme", KEY_2)).await.is_ok(), "{endpoint}");
    assert!(tables(&basic(&world, "acme", KEY_3)).await.is_ok());
    assert!(read("SIGHUP") && !read("hunter2") && !read(KEY_2) && !read(KEY_3));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn secrets_are_never_logged() {
    let directory = tempfile::tempdir().unwrap();
    let log = directory.path().join("log");
    let trace = [("TRESTLE__TELEMETRY__LOG_FILTER", "trace")];
    let settings = [ACCOUNTS, &trace].concat();
    let world = World::of(Server::start_logging(&log, &["--ephemeral"], &settings)).await;
    let token = signed(terms(over_account("t", "sco"), "rl"), "acme", KEY_1);
    let signature = token.split("sig=").nth(1).unwrap().to_owned();

    tables(&basic(&world, "acme", KEY_1)).await.unwrap();
    tables(&world.signed(&token)).await.unwrap();
    rejected(&basic(&world, "acme", KEY_3)).await;
    rejected(&basic(&world, "absent", KEY_2)).await;
    rejected(&world.signed(&token.replace("sp=rl", "sp=r"))).await;
    for value in malformed() {
        rejected(&world.with_header(AUTHORIZATION, &value)).await;
    }
    drop(world);

    let log = fs::read_to_string(log).unwrap();
    assert!(log.contains("TRACE"), "{log}");
    let decoded = signature.replace("%2B", "+").replace("%2F", "/").replace("%3D", "=");
    let basic = STANDARD.encode(format!("acme:{KEY_1}"));
    for secret in [KEY_1, KEY_2, KEY_3, &signature, &decoded, &basic, "hunter2"] {
        let line = log.lines().find(|line| line.contains(secret));
        assert_eq!(line, None, "{secret}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn rejects_an_https_only_sas_over_http() {
    let terms = Terms { protocol: Some(Protocol::Https), ..terms(over_account("t", "sco"), "rl") };
    let token = signed(terms, "acme", KEY_1);

    let plain = rejected(&World::over_loopback_with(ACCOUNTS).await.signed(&token)).await;
    let within = tables(&World::in_process_with(ACCOUNTS).await.signed(&token)).await;

    assert_eq!(plain.kind(), WRONG_PROTOCOL);
    assert!(within.is_ok(), "a call within the process counts as encrypted");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn stream_ends_when_its_sas_expires() {
    let world = World::over_loopback_with(ACCOUNTS).await;
    let owned = basic(&world, "acme", KEY_1);
    let table = owned.table("orders").await;
    let text = "x".repeat(30_000);
    let row = |row: u32| entity("p", &row.to_string(), [string("filling", &text)]);
    for first in (0..400).step_by(100) {
        let chunk = (first..first + 100).map(row).collect();
        assert_eq!(table.import(None, vec![chunk]).await.unwrap(), []);
    }
    // In three seconds.
    let expiry = Ticks::new(SystemClock.now().get() + 30_000_000).and_then(Time::at);
    let token = signed(Terms { expiry, ..terms(over_account("t", "sco"), "rl") }, "acme", KEY_1);
    let brief = world.signed(&token).existing_table(&table.name());
    let mut stream = brief.open_stream(StreamEntitiesRequest::default()).await.unwrap();
    stream.message().await.unwrap().expect("the stream has begun");

    tokio::time::sleep(Duration::from_secs(4)).await;
    let end = loop {
        match stream.message().await {
            Ok(Some(_)) => {}
            end => break end,
        }
    };

    let error = CallError::from(end.expect_err("it went on"));
    assert_eq!(error.kind(), NOT_AUTHENTIC, "{error:?}");
    assert!(error.message.contains("expired"), "{error:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn development_account_can_be_disabled() {
    let off = [("TRESTLE__GATEWAY__DEVELOPMENT_ACCOUNT", "off")];
    let world = World::over_loopback_with(&[ACCOUNTS, &off].concat()).await;

    is_off(&world).await;
    assert!(tables(&basic(&world, "acme", KEY_1)).await.is_ok());
}

/// Neither the public key nor a call without a key is accepted.
async fn is_off(world: &World) {
    let without = rejected(world).await;
    let public = trestle_identity::account::DEVELOPMENT_KEY;
    let with_key = rejected(&basic(world, "devstoreaccount1", public)).await;
    assert_eq!(without.kind(), NONE);
    assert_eq!(with_key.kind(), NOT_AUTHENTIC);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn development_account_is_off_beside_accounts_unless_set() {
    let world = World::over_loopback_with(&ACCOUNTS[1..]).await;
    is_off(&world).await;
    assert!(tables(&basic(&world, "acme", KEY_1)).await.is_ok());

    let alone = World::over_loopback_with(&[]).await;
    assert!(tables(&alone).await.is_ok(), "without an account it is on");
    assert!(tables(&World::over_loopback_with(ACCOUNTS).await).await.is_ok(), "it is set");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn development_account_ends_with_the_reload_that_adds_an_account() {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("config.toml");
    replace_file(&config, "");
    let server = Server::start(&["--ephemeral", "--config", config.to_str().unwrap()], &[]);
    let world = World::of(server).await;
    assert!(tables(&world).await.is_ok());

    replace_file(&config, &format!("[accounts.acme]\nkey1 = \"{KEY_1}\"\n"));
    world.hang_up();

    until(&world, KEY_1, true).await;
    is_off(&world).await;

    // As of an editor that writes the file in two steps.
    replace_file(&config, "");
    world.hang_up();

    until(&world, KEY_1, false).await;
    is_off(&world).await;
}

/// The credentials of a command.
const OWNER: [(&str, &str); 2] = [("TRESTLE_ACCOUNT", "acme"), ("TRESTLE_ACCOUNT_KEY", KEY_1)];

/// Runs a command with these variables only: its exit code, output and errors.
fn run(args: &[&str], variables: &[(&str, &str)], endpoint: &str) -> (Option<i32>, String, String) {
    let mut command = Command::new(server_binary());
    command.args(args).env_clear().envs(variables.iter().copied());
    let output = command.env("TRESTLE_ENDPOINT", endpoint).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A token of `trestle sas`.
fn minted(args: &[&str]) -> String {
    let (code, token, errors) = run(&[&["sas"], args].concat(), &OWNER, "");
    assert_eq!(code, Some(0), "{errors}");
    token.trim().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_generated_sas_grants_what_it_names() {
    let world = World::over_loopback_with(ACCOUNTS).await;
    let owner = basic(&world, "acme", KEY_1);
    owner.table("Ours").await.insert(entity("p", "r", [])).await.unwrap();
    owner.table("Theirs").await;
    owner.queue("jobs").await;

    let mine = minted(&["table", "Ours", "--permissions", "r", "--expiry", "1h"]);
    let mine = world.signed(&mine);
    assert_eq!(mine.existing_table("Ours").rows("").await.unwrap(), ["r"]);
    assert!(mine.existing_table("Theirs").rows("").await.is_err());
    assert!(mine.existing_table("Ours").insert(entity("p", "s", [])).await.is_err());
    let range = ["--start-partition-key", "q", "--end-partition-key", "z"];
    let narrow = ["table", "Ours", "--permissions", "r", "--expiry", "1h"];
    let narrow = world.signed(&minted(&[&narrow[..], &range].concat()));
    assert_eq!(narrow.existing_table("Ours").rows("").await.unwrap(), Vec::<String>::new());

    let token = minted(&["queue", "jobs", "--permissions", "a", "--expiry", "1h"]);
    let jobs = world.signed_for_queue(&token, "jobs").existing_queue("jobs");
    jobs.send(text("work")).await.unwrap();
    assert_eq!(jobs.peek(1).await.unwrap_err().code, Code::PermissionDenied);
    let wrong = world.signed_for_queue(&token, "other").existing_queue("jobs");
    assert_eq!(wrong.send(text("work")).await.unwrap_err().kind(), NOT_AUTHENTIC);

    let wide = ["account", "--services", "tq", "--permissions", "rl", "--expiry", "1h"];
    let wide = world.signed(&minted(&wide));
    assert_eq!(wide.existing_queue("jobs").peek(1).await.unwrap().len(), 1);
    assert_eq!(wide.existing_table("Ours").rows("").await.unwrap(), ["r"]);
}

#[test]
fn sas_explain_names_the_queue_or_container() {
    let queue = minted(&["queue", "jobs", "--permissions", "p", "--expiry", "1h"]);
    let container = minted(&["container", "logs", "--permissions", "rl", "--expiry", "1h"]);
    let explain = |token: &str, option: &str, name: &str| {
        let (_, text, _) = run(&["sas", "explain", token, option, name, "--json"], &OWNER, "");
        let explained: serde_json::Value = serde_json::from_str(&text).unwrap();
        let checks = explained["checks"].as_array().unwrap().clone();
        let signature = checks.iter().find(|check| check["check"] == "signature").unwrap();
        let text = |value: &serde_json::Value| value.as_str().unwrap_or("nothing").to_owned();
        (text(&signature["outcome"]), text(&explained["rejected_by"]))
    };
    let outcome = |signature: &str, rejected: &str| (signature.to_owned(), rejected.to_owned());

    assert_eq!(explain(&queue, "--queue", "jobs"), outcome("passed", "nothing"));
    assert_eq!(explain(&queue, "--queue", "other"), outcome("rejected", "signature"));
    assert_eq!(explain(&container, "--container", "logs"), outcome("passed", "nothing"));
    assert_eq!(explain(&container, "--container", "other"), outcome("rejected", "signature"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn commands_send_credentials_and_sign_offline() {
    let world = World::over_loopback_with(ACCOUNTS).await;
    let endpoint = format!("http://{}", world.address().unwrap());
    let run = |args: &[&str], variables: &[(&str, &str)]| run(args, variables, &endpoint);
    let owner = OWNER;

    let created = run(&["table", "create", "Ours"], &owner);
    let sign = ["sas", "account", "--permissions", "rl", "--expiry", "1h"];
    let (signed, token, _) = run(&sign, &owner);
    let token = token.trim();
    let listed = run(&["table", "list", "--json"], &[("TRESTLE_SAS", token)]);
    let denied = run(&["table", "create", "Mine"], &[("TRESTLE_SAS", token)]);
    let explained = run(&["sas", "explain", token, "-o", "table"], &owner);
    let expired = run(&["sas", "explain", token, "--at", "2099-01-01", "--json"], &owner);
    let wrong =
        run(&["table", "list"], &[("TRESTLE_ACCOUNT", "acme"), ("TRESTLE_ACCOUNT_KEY", KEY_3)]);

    assert_eq!((created.0, signed, listed.0), (Some(0), Some(0), Some(0)), "{}", listed.2);
    assert!(listed.1.contains("Ours"), "{}", listed.1);
    assert!(denied.0 == Some(1) && denied.2.contains("PERMISSION_MISMATCH"), "{}", denied.2);
    assert_eq!(explained.0, Some(0), "{}", explained.1);
    assert!(explained.1.contains("│ signature ┆ passed "), "{}", explained.1);
    assert!(
        expired.0 == Some(1) && expired.1.contains("\"rejected_by\":\"time\""),
        "{}",
        expired.1
    );
    assert!(wrong.0 == Some(1) && wrong.2.contains("AUTHENTICATION_FAILED"), "{}", wrong.2);
    for (_, out, errors) in [created, listed, denied, explained, expired, wrong] {
        assert!(!out.contains(KEY_1) && !errors.contains(KEY_1) && !errors.contains(KEY_3));
    }
}
