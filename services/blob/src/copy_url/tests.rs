use super::*;

fn hosts() -> CopyHosts {
    CopyHosts {
        own: "127.0.0.1:10000, blob.example.com".parse().expect("hosts"),
        others: "https://archive.example.com,http://10.0.0.7:8080".parse().expect("origins"),
    }
}

fn own(url: &str) -> OwnUrl {
    match hosts().resolve(url) {
        Ok(CopyUrl::Own(own)) => own,
        other => panic!("{url}: {other:?}"),
    }
}

#[test]
fn a_url_of_the_service_names_account_container_and_blob() {
    let expected = OwnUrl {
        account: "team".to_owned(),
        container: "logs".to_owned(),
        blob: "a b/c+d".to_owned(),
        ..OwnUrl::default()
    };
    for url in [
        "http://127.0.0.1:10000/team/logs/a%20b/c+d",
        "https://127.0.0.1:10000/team/logs/a%20b%2Fc%2Bd",
        "https://TEAM.blob.example.com/logs/a%20b/c+d",
        "http://blob.example.com/team/logs/a%20b/c+d?sv=2021&sig=x",
    ] {
        assert_eq!(own(url), expected, "{url}");
    }
    let root = own("http://127.0.0.1:10000/team/robots.txt");
    assert_eq!((root.container.as_str(), root.blob.as_str()), ("$root", "robots.txt"));
    let url = "http://127.0.0.1:10000/team/logs/a?snapshot=2019-08-28T17%3A07%3A35.2821851Z";
    assert_eq!(own(url).snapshot, "2019-08-28T17:07:35.2821851Z");
    assert_eq!(own("http://127.0.0.1:10000/team/logs/a?versionId=v").version_id, "v");
}

#[test]
fn only_listed_servers_are_read_from() {
    for url in ["https://archive.example.com/a?b=c", "http://10.0.0.7:8080/"] {
        let uri: Uri = url.parse().expect("a URL");
        assert_eq!(hosts().resolve(url), Ok(CopyUrl::Other(uri)), "{url}");
    }
    for url in [
        "http://archive.example.com/a",
        "https://archive.example.com:8443/a",
        "https://www.archive.example.com/a",
        "https://archive.example.com.evil.org/a",
        "http://10.0.0.7/a",
        "http://127.0.0.1:10001/team/logs/a",
        "http://127.0.0.1/team/logs/a",
        "http://a.b.blob.example.com/logs/a",
        "http://169.254.169.254/latest/meta-data",
    ] {
        assert_eq!(hosts().resolve(url), Err(CopyUrlError::NotListed), "{url}");
    }
    let nothing = CopyHosts::default().resolve("https://archive.example.com/a");
    assert_eq!(nothing, Err(CopyUrlError::NotListed));
}

#[test]
fn anything_else_is_malformed() {
    for url in [
        "",
        "/team/logs/a",
        "archive.example.com/a",
        "ftp://archive.example.com/a",
        "file:///etc/passwd",
        "https://user@archive.example.com/a",
        "https://10.0.0.7:8080@archive.example.com/",
        "https:///a",
        "https://archive.example.com:99999/a",
        "http://127.0.0.1:10000/team",
        "http://127.0.0.1:10000/team/logs/%FF",
    ] {
        assert_eq!(hosts().resolve(url), Err(CopyUrlError::Malformed), "{url}");
    }
}

#[test]
fn settings_name_the_entry_that_violates_the_rule() {
    for text in ["a b", "http://a", "a/b", "a:99999"] {
        let error = format!("ok,{text}").parse::<HostList>().expect_err(text);
        assert!(error.ends_with(&format!("value=`{text}`")), "{error}");
    }
    for text in ["archive", "https://a/", "https://a/b", "ftp://a", "https://"] {
        let error = format!("https://ok,{text}").parse::<ServerList>().expect_err(text);
        assert!(error.ends_with(&format!("value=`{text}`")), "{error}");
    }
    // What is before an `@` may be a password.
    let hosts = "ok,user:secret@a".parse::<HostList>().expect_err("a user");
    assert_eq!(hosts, "must be HOST or HOST:PORT, without a user: value=`a`");
    let servers = "https://u:secret@a".parse::<ServerList>().expect_err("a user");
    assert!(servers.ends_with(", without a user: value=`a`"), "{servers}");
    assert_eq!("".parse(), Ok(HostList::default()));
    assert_eq!(" , ".parse(), Ok(ServerList::default()));
}
