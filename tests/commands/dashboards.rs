//! The dashboards have no empty panel for one server with default settings that is scraped as `docs/monitoring.md`
//! shows: without labels of our own but `job`. That of several processes has none for a server over a database.

use std::{collections::BTreeMap, fs, path::Path};

use serde_json::Value;
use tempfile::tempdir;
use trestle_kv_postgres::testing::PostgresServer;
use trestle_tests::Server;

use crate::client::succeeds;

/// Recorded by the rules, or added by Prometheus.
const NOT_EXPORTED: [&str; 2] = ["role:", "up"];
/// What an expression ends with that has a value where nothing failed yet.
const NONE_IS_ZERO: &str = " or vector(0)";
/// Functions and words of PromQL in the dashboards.
const WORDS: [&str; 6] = ["sum", "rate", "histogram_quantile", "by", "or", "vector"];

/// The dashboard for a store in a database.
const OF_DATABASE: &str = "processes.json";

/// A label, whether a value must be equal to the text, and the text: an alternation of prefixes.
type Matcher = (String, bool, String);

/// A metric that an expression selects, with its matchers.
#[derive(Debug, PartialEq)]
struct Selector {
    metric: String,
    matchers: Vec<Matcher>,
}

/// The metrics of an expression, and the labels that it groups by.
fn parse(expression: &str) -> (Vec<Selector>, Vec<String>) {
    let (mut selectors, mut groups, mut rest) = (Vec::new(), Vec::new(), expression);
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == ':';
    while let Some(start) = rest.find(|c: char| c.is_ascii_alphabetic() || "[{".contains(c)) {
        rest = &rest[start..];
        if rest.starts_with('[') {
            rest = &rest[rest.find(']').unwrap()..];
            continue;
        }
        let (name, after) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
        rest = after;
        if name == "by" {
            let (labels, after) = rest.trim_start()[1..].split_once(')').unwrap();
            groups.extend(labels.split(',').map(|label| label.trim().to_owned()));
            rest = after;
        } else if !WORDS.contains(&name) {
            let mut matchers = Vec::new();
            if let Some((inner, after)) = rest.strip_prefix('{').and_then(|it| it.split_once('}')) {
                matchers = inner.split(", ").map(matcher).collect();
                rest = after;
            }
            selectors.push(Selector { metric: name.to_owned(), matchers });
        }
    }
    (selectors, groups)
}

fn matcher(text: &str) -> Matcher {
    let (label, rest) = text.split_once(['=', '!']).unwrap();
    let is_equal = !text[label.len()..].starts_with('!');
    let value = rest.trim_start_matches(['=', '~']).trim_matches('"');
    (label.to_owned(), is_equal, value.to_owned())
}

/// Whether a value matches, for the few forms of regular expressions that the dashboards have.
fn fits(value: &str, pattern: &str) -> bool {
    let pattern = pattern.replace(['(', ')'], "");
    pattern.split('|').any(|one| match one.strip_suffix(".*") {
        Some(prefix) => value.starts_with(prefix),
        None => pattern.contains('|') && value.starts_with(one) || value == one,
    })
}

/// The labels of each series of a metric on a page.
fn series(page: &str, metric: &str) -> Vec<BTreeMap<String, String>> {
    let of_metric = page.lines().filter_map(|line| {
        let labels = line.strip_prefix(metric)?.strip_prefix('{')?;
        Some(labels.rsplit_once('}')?.0.to_owned())
    });
    let parse = |labels: String| {
        let pairs = labels.split("\",").filter_map(|pair| pair.split_once("=\""));
        let pairs =
            pairs.map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()));
        pairs.chain([("job".to_owned(), "trestle".to_owned())]).collect()
    };
    of_metric.map(parse).collect()
}

/// Why a panel would be empty, if it would.
fn problem(page: &str, expression: &str) -> Option<String> {
    let expression = match expression.strip_suffix(NONE_IS_ZERO) {
        Some(_) => return None,
        None => expression,
    };
    let (selectors, groups) = parse(expression);
    assert!(!selectors.is_empty(), "{expression}");
    for Selector { metric, matchers } in selectors {
        if NOT_EXPORTED.iter().any(|name| metric.starts_with(name)) {
            continue;
        }
        let value = |labels: &BTreeMap<String, String>, label: &str| {
            labels.get(label).cloned().unwrap_or_default()
        };
        let fit = series(page, &metric).into_iter().find(|labels| {
            matchers
                .iter()
                .all(|(label, is_equal, pattern)| fits(&value(labels, label), pattern) == *is_equal)
        });
        let Some(labels) = fit else { return Some(format!("no series: {metric}{matchers:?}")) };
        // Prometheus adds a role in a stack of several processes.
        let missing = groups.iter().find(|group| *group != "role" && !labels.contains_key(*group));
        if let Some(label) = missing {
            return Some(format!("no label `{label}`: {metric}"));
        }
    }
    None
}

/// The expressions of panels, each with the names of its dashboard and panel: those for a store in a database, or the
/// others.
fn panels(of_database: bool) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../deploy/grafana/dashboards");
    let mut found = Vec::new();
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    for file in files.filter(|file| file.ends_with(OF_DATABASE) == of_database) {
        let board: Value = serde_json::from_slice(&fs::read(&file).unwrap()).unwrap();
        for panel in board["panels"].as_array().unwrap() {
            for target in panel["targets"].as_array().unwrap() {
                let name = format!("{}: {}", board["title"], panel["title"]);
                found.push((name, target["expr"].as_str().unwrap().to_owned()));
            }
        }
    }
    found
}

#[test]
fn an_expression_is_parsed_into_metrics_matchers_and_groups() {
    let expression =
        "sum by (a, le) (rate(x_bucket{b!=\"c\", d=~\"(e|f).*\"}[$__rate_interval])) / y";
    let matchers =
        vec![("b".to_owned(), false, "c".to_owned()), ("d".to_owned(), true, "(e|f).*".to_owned())];
    let selectors = vec![
        Selector { metric: "x_bucket".to_owned(), matchers },
        Selector { metric: "y".to_owned(), matchers: Vec::new() },
    ];
    assert_eq!(parse(expression), (selectors, vec!["a".to_owned(), "le".to_owned()]));
    let page = "x_bucket{a=\"1\",d=\"fine\",le=\"2\"} 7\ny{z=\"1\"} 1\n";
    assert_eq!(problem(page, "rate(x_bucket{d=~\"(e|f).*\"}[5m])"), None);
    assert!(problem(page, "x_bucket{d=\"g\"}").is_some());
    assert!(problem(page, "sum by (g) (y)").is_some());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_panel_is_empty_for_one_server_with_default_settings() {
    let data = tempdir().unwrap();
    let server = Server::start(&["--data-dir", data.path().to_str().unwrap()], &[]);
    for args in [
        &["table", "create", "orders"][..],
        &["entity", "insert", "orders", "--partition-key", "a", "--row-key", "b"],
        &["entity", "get", "orders", "a", "b"],
        &["queue", "create", "jobs"],
        &["message", "send", "jobs", "one"],
        &["blob", "container", "create", "photos"],
        &["blob", "ls", "photos"],
        &["log", "create", "app"],
        &["log", "read", "app"],
    ] {
        succeeds(&server, args);
    }
    let panels = panels(false);
    assert!(panels.len() > 40, "{}", panels.len());
    none_is_empty(&server, &panels).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_panel_of_several_processes_is_empty_for_one_server_over_a_database() {
    let Some(postgres) = PostgresServer::start(&[]).await else { return };
    let url = postgres.url(&postgres.database().await);
    let roles = ["--roles", "gateway,table,queue"];
    let server = Server::start(&roles, &[("TRESTLE__STORAGE__ENGINE", &url)]);
    let panels = panels(true);
    assert!(panels.len() > 8, "{}", panels.len());
    none_is_empty(&server, &panels).await;
}

/// Waits until each panel has a series.
async fn none_is_empty(server: &Server, panels: &[(String, String)]) {
    // Some are measured in the background.
    let deadline = std::time::Instant::now() + trestle_tests::HANG;
    loop {
        let page = server.page("/metrics").await;
        let empty = panels.iter().filter_map(|(name, expression)| {
            Some(format!("{name}: {}", problem(&page, expression)?))
        });
        let empty: Vec<_> = empty.collect();
        if empty.is_empty() {
            return;
        }
        assert!(std::time::Instant::now() < deadline, "{empty:#?}");
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
    }
}
