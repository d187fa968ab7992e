use http::HeaderValue;

use super::*;

fn checked(method: &Method, uri: &str, headers: &[(&'static str, &str)]) -> Result<(), String> {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, HeaderValue::from_str(value).expect("a header value"));
    }
    let uri = uri.parse().expect("a target");
    let is_read = method.is_safe();
    let (headers, is_allowed_page) = (&map, false);
    let source = RequestSource { method, is_read, uri: &uri, headers, is_allowed_page };
    let listed = ["Trestle.Example.com".to_owned(), "192.0.2.7".to_owned()];
    let hosts = PrivateHosts::new(listed, true);
    hosts.check(&source).map_err(|denied| denied.message)
}

#[test]
fn public_key_counts_for_private_hosts_only() {
    for host in [
        "localhost",
        "LOCALHOST:10000",
        "localhost.:10002",
        "127.0.0.1:50051",
        "127.9.9.9",
        "[::1]:50051",
        "trestle",
        "azurite:10000",
        "devstoreaccount1.blob.localhost:10000",
        "host.docker.internal:10000",
        "build.local",
        "table.staging.svc:50051",
        "table.staging.svc.cluster.local",
        "trestle.example.com:50051",
        "192.0.2.7:50051",
    ] {
        assert_eq!(checked(&Method::POST, "/", &[("host", host)]), Ok(()), "{host}");
        assert_eq!(checked(&Method::POST, &format!("http://{host}/"), &[]), Ok(()), "{host}");
    }
    for host in [
        "evil.example",
        "localhost.evil.example:10000",
        "127.0.0.1.nip.io",
        "svc.evil.example",
        "x.svc.evil.example",
        "notlocal.example.local.evil",
        "192.0.2.8",
        "[2001:db8::1]:50051",
        "0.0.0.0:50051",
        "[::ffff:127.0.0.1]:10000",
        "[::ffff:7f00:1]:10000",
        "sub.trestle.example.com",
        "a b",
    ] {
        let error = checked(&Method::POST, "/", &[("host", host)]).expect_err(host);
        assert!(error.contains(&format!("host=`{host}`")), "{error}");
    }
    assert_eq!(checked(&Method::POST, "/", &[]), Ok(()), "within a process");
    assert_eq!(checked(&Method::POST, "/", &[("host", "")]), Ok(()), "of HTTP/1.0");
    // The authority is what an HTTP/2 client addressed.
    let error = checked(&Method::POST, "http://evil.example/", &[("host", "localhost")]);
    assert!(error.is_err_and(|error| error.contains("evil.example")));
}

#[test]
fn public_key_does_not_count_behind_a_proxy() {
    for header in ["forwarded", "x-forwarded-for", "via"] {
        let error = checked(&Method::GET, "/", &[("host", "localhost"), (header, "10.0.0.1")]);
        let error = error.expect_err(header);
        assert!(error.contains(&format!("{header}=`10.0.0.1`")), "{error}");
    }
}

#[test]
fn pages_write_by_a_rule_of_the_account_only() {
    let host = ("host", "127.0.0.1:10000");
    for origin in ["http://localhost:3000", "https://evil.example", "null"] {
        assert_eq!(checked(&Method::GET, "/", &[host, ("origin", origin)]), Ok(()), "{origin}");
        for method in [Method::DELETE, Method::POST, Method::PUT] {
            let error = checked(&method, "/", &[host, ("origin", origin)]).expect_err(origin);
            assert!(error.contains(&format!("origin=`{origin}`")), "{error}");
        }
    }
    for site in ["cross-site", "same-site"] {
        assert!(checked(&Method::POST, "/", &[host, ("sec-fetch-site", site)]).is_err());
    }
    for site in ["none", "same-origin"] {
        assert_eq!(checked(&Method::POST, "/", &[host, ("sec-fetch-site", site)]), Ok(()));
    }
}

#[test]
fn pages_of_other_sites_read_from_private_hosts_only() {
    let read = |site: &'static str, referer: Option<&str>| {
        let mut headers = vec![("host", "127.0.0.1:10000"), ("sec-fetch-site", site)];
        headers.extend(referer.map(|referer| ("referer", referer)));
        checked(&Method::GET, "/", &headers)
    };
    for site in ["cross-site", "same-site"] {
        for page in ["http://localhost:3000/", "http://127.0.0.1:8080/a?b", "http://app.internal/"]
        {
            assert_eq!(read(site, Some(page)), Ok(()), "{page}");
        }
        for page in
            ["https://evil.example/", "http://localhost.evil.example/", "about:blank", "/", ""]
        {
            let error = read(site, Some(page)).expect_err(page);
            assert!(error.contains(&format!("sec-fetch-site=`{site}`")), "{error}");
        }
        assert!(read(site, None).is_err(), "a page may hide its address");
    }
    for site in ["none", "same-origin"] {
        assert_eq!(read(site, None), Ok(()), "{site}");
    }
}

#[test]
fn allowed_page_still_needs_a_private_host_and_no_proxy() {
    let headers = |pairs: &[(HeaderName, &'static str)]| {
        let pair = |(name, value): &(HeaderName, &'static str)| {
            (name.clone(), HeaderValue::from_static(value))
        };
        pairs.iter().map(pair).collect::<HeaderMap>()
    };
    let uri = Uri::from_static("/");
    let is_admitted = |headers: &HeaderMap| {
        let (method, is_read, is_allowed_page) = (&Method::POST, false, true);
        let source = RequestSource { method, is_read, uri: &uri, headers, is_allowed_page };
        PrivateHosts::default().check(&source).is_ok()
    };
    let origin = (ORIGIN, "https://app.example");

    assert!(is_admitted(&headers(&[origin.clone(), (HOST, "localhost")])));
    assert!(!is_admitted(&headers(&[origin.clone(), (HOST, "evil.example")])));
    assert!(!is_admitted(&headers(&[origin, (HOST, "localhost"), (VIA, "1.1 proxy")])));
}

#[test]
fn a_page_that_no_browser_states_reads_from_private_hosts_only_and_receives_nothing() {
    let checked_at = |is_read, host, more: &[(&'static str, &str)]| {
        let uri = Uri::from_static("/");
        let mut headers = HeaderMap::new();
        for (name, value) in [("host", host)].iter().chain(more) {
            headers.insert(*name, HeaderValue::from_str(value).expect("a header value"));
        }
        let (method, headers, is_allowed_page) = (&Method::GET, &headers, false);
        let source = RequestSource { method, is_read, uri: &uri, headers, is_allowed_page };
        PrivateHosts::new([], true).check(&source).map_err(|denied| denied.message)
    };
    for host in ["kubernetes.docker.internal:10000", "mymachine:10000", "box.local", "localhost4"] {
        for is_read in [true, false] {
            let error = checked_at(is_read, host, &[]).expect_err(host);
            let named = if is_read { format!("host=`{host}`") } else { "method=`GET`".to_owned() };
            assert!(error.contains(&named), "{error}");
            let foreign = checked_at(is_read, host, &[("referer", "https://evil.example/")]);
            assert!(foreign.is_err(), "{host}");
            for program in [("authorization", "SharedKey a:b"), ("x-ms-version", "2025-11-05")] {
                assert_eq!(checked_at(is_read, host, &[program]), Ok(()), "{host}: {program:?}");
            }
            let typed = checked_at(is_read, host, &[("sec-fetch-site", "none")]);
            assert_eq!(typed.is_ok(), is_read, "{host}");
        }
        let private = ("referer", "http://mymachine:3000/");
        assert_eq!(checked_at(true, host, &[private]), Ok(()), "it shows an image");
        assert!(checked_at(false, host, &[private]).is_err(), "it receives messages");
    }
    for host in ["localhost:10000", "devstoreaccount1.blob.localhost", "127.0.0.1", "[::1]:1"] {
        assert_eq!(checked_at(true, host, &[]), Ok(()), "{host}: a browser would state the page");
        let error = checked_at(false, host, &[("sec-fetch-site", "none")]).expect_err(host);
        assert!(error.contains("method=`GET`"), "a link receives nothing: {error}");
        assert_eq!(checked_at(false, host, &[("x-ms-date", "now")]), Ok(()), "{host}");
    }
}

#[test]
fn names_of_networks_count_only_where_the_server_is_for_a_network() {
    let [machine, network] =
        [false, true].map(|is_for_network| PrivateHosts::new(["box".to_owned()], is_for_network));
    for host in ["localhost:1", "a.localhost", "127.0.0.1", "[::1]:1", "box:10000"] {
        assert!(machine.has(host) && network.has(host), "{host}");
    }
    for host in ["trestle", "box.local", "host.docker.internal:10000", "table.staging.svc"] {
        assert!(!machine.has(host) && network.has(host), "{host}");
    }
    for host in ["[::ffff:127.0.0.1]", "evil.example", ""] {
        assert!(!machine.has(host) && !network.has(host), "{host}");
    }
}
