"""The blob service as a whole: properties, statistics, origins, addresses, and its limits."""

import datetime
import io

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from azure.storage.blob import (
    BlobAnalyticsLogging,
    CorsRule,
    ImmutabilityPolicy,
    Metrics,
    RetentionPolicy,
    StaticWebsite,
)

from azure_errors import forbidden, rejected
from blob_signatures import HOUR, NOW, of_account
from proxy import proxy_to


@pytest.fixture
async def service(clients):
    """The client of the service; its properties are as at first afterwards."""
    service = clients.blobs()
    yield service
    await service.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(),
        hour_metrics=Metrics(enabled=False),
        minute_metrics=Metrics(enabled=False),
        cors=[],
        delete_retention_policy=RetentionPolicy(enabled=False),
        static_website=StaticWebsite(enabled=False),
    )


def host_style(proxy):
    """The options of a client that names the service as in the cloud, and is redirected to ours."""
    endpoint = "http://devstoreaccount1.blob.core.windows.net"
    return {"endpoint": endpoint, "proxies": {"http": f"http://{proxy.address}"}}


async def test_properties_survive_a_round_trip(service):
    week = RetentionPolicy(enabled=True, days=7)
    rule = CorsRule(
        ["http://a.example", "http://b.example"],
        ["GET", "PUT"],
        max_age_in_seconds=500,
        exposed_headers=["x-ms-meta-*"],
        allowed_headers=["x-ms-meta-data*", "x-ms-other"],
    )
    await service.set_service_properties(
        analytics_logging=BlobAnalyticsLogging(read=True, write=True, retention_policy=week),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=week),
        minute_metrics=Metrics(enabled=False),
        cors=[rule],
        delete_retention_policy=RetentionPolicy(enabled=True, days=5),
    )
    got = await service.get_service_properties()
    logging, hour, kept = got["analytics_logging"], got["hour_metrics"], got["cors"][0]
    assert (logging.read, logging.write, logging.delete) == (True, True, False)
    assert (logging.retention_policy.enabled, logging.retention_policy.days) == (True, 7)
    assert (hour.enabled, hour.include_apis, hour.retention_policy.days) == (True, True, 7)
    assert not got["minute_metrics"].enabled
    fields = ("allowed_origins", "allowed_methods", "max_age_in_seconds", "exposed_headers")
    for field in (*fields, "allowed_headers"):
        assert getattr(kept, field) == getattr(rule, field), field
    deleted = got["delete_retention_policy"]
    assert (deleted.enabled, deleted.days) == (True, 5)


async def test_the_static_website_is_a_property(service):
    website = StaticWebsite(
        enabled=True, index_document="index.html", error_document404_path="404.html"
    )
    await service.set_service_properties(static_website=website)
    got = (await service.get_service_properties())["static_website"]
    assert (got.enabled, got.index_document) == (True, "index.html")
    assert got.error_document404_path == "404.html"


async def test_unset_properties_are_kept(service):
    await service.set_service_properties(cors=[CorsRule(["*"], ["GET"])])
    await service.set_service_properties(minute_metrics=Metrics(enabled=True, include_apis=False))
    got = await service.get_service_properties()
    assert len(got["cors"]) == 1 and got["minute_metrics"].enabled
    assert not got["delete_retention_policy"].enabled
    await service.set_service_properties(cors=[])
    assert not (await service.get_service_properties())["cors"]


async def test_a_default_version_is_kept(service):
    await service.set_service_properties(target_version="2021-12-02")
    assert (await service.get_service_properties())["target_version"] == "2021-12-02"


@pytest.mark.parametrize("days", [0, 366])
async def test_days_of_retention_are_limited(service, days):
    policy = RetentionPolicy(enabled=True, days=days or 1)
    policy.days = days
    with rejected(HttpResponseError, 400, "InvalidXmlDocument", "InvalidXmlNodeValue"):
        await service.set_service_properties(delete_retention_policy=policy)
    assert not (await service.get_service_properties())["delete_retention_policy"].enabled


async def test_a_sixth_rule_for_origins_is_rejected(service):
    rules = [CorsRule([f"http://{number}.example"], ["GET"]) for number in range(6)]
    await service.set_service_properties(cors=rules[:5])
    with rejected(HttpResponseError, 400, "InvalidXmlDocument"):
        await service.set_service_properties(cors=rules)
    assert len((await service.get_service_properties())["cors"]) == 5


async def test_pages_of_an_allowed_origin_may_call(service, container, name, target):
    rule = CorsRule(["http://a.example"], ["GET"], max_age_in_seconds=60, allowed_headers=["*"])
    await service.set_service_properties(cors=[rule])

    def preflight(origin, method):
        sent = {"Origin": origin, "Access-Control-Request-Method": method}
        return requests.options(f"{target.blob}/{name}/blob", headers=sent, timeout=30)

    allowed = preflight("http://a.example", "GET")
    assert allowed.status_code == 200
    assert allowed.headers["Access-Control-Allow-Origin"] == "http://a.example"
    for response in (preflight("http://b.example", "GET"), preflight("http://a.example", "PUT")):
        assert response.status_code == 403
        assert response.headers["x-ms-error-code"] == "CorsPreflightFailure"


async def test_the_account_has_a_kind(clients):
    got = await clients.blobs().get_account_information()
    assert (got["account_kind"], got["is_hns_enabled"]) == ("StorageV2", False)
    assert got["sku_name"] in ("Standard_LRS", "Standard_GRS", "Standard_RAGRS")


async def test_statistics_are_at_the_secondary(clients, target):
    with proxy_to(target.blob_address) as proxy:
        stats = await clients.blobs(**host_style(proxy)).get_service_stats()
        assert any("-secondary" in path for _, path in proxy.requests)
    assert stats["geo_replication"]["status"] == "live"
    now = datetime.datetime.now(datetime.timezone.utc)
    last = stats["geo_replication"]["last_sync_time"]
    assert abs(now - last) < datetime.timedelta(minutes=5)


async def test_the_secondary_reads_and_does_not_write(clients, container, blob, name, target):
    await blob.upload_blob(b"x")
    endpoint = f"{target.blob}-secondary"
    secondary = clients.blob(name, "blob", of_account("rwdlac"), endpoint=endpoint)
    assert await secondary.read() == b"x"
    with forbidden(HttpResponseError, "InsufficientAccountPermissions"):
        await secondary.upload_blob(b"y", overwrite=True)
    assert await blob.read() == b"x"


async def test_the_account_may_be_the_first_label_of_the_host(clients, name, target):
    with proxy_to(target.blob_address) as proxy:
        container = clients.container(name, **host_style(proxy))
        await container.create_container()
        await container.upload_blob("dir/a b", b"x")
        assert await container.read("dir/a b") == b"x"
        assert await container.list_blob_names() == ["dir/a b"]
        await container.delete_blobs("dir/a b")
        await container.delete_container()


@pytest.mark.parametrize("version", ["2019-02-02", "2021-12-02", "2025-11-05", None])
async def test_every_version_that_the_client_offers_is_served(clients, name, version):
    container = clients.container(name, **({"api_version": version} if version else {}))
    answers = []
    hook = {"raw_response_hook": lambda answer: answers.append(answer)}
    await container.create_container(**hook)
    answer = answers[0].http_response
    # One that is newer than the server is served as the newest that it supports.
    assert answer.headers["x-ms-version"] <= answers[0].http_request.headers["x-ms-version"]
    assert answer.headers["x-ms-request-id"]
    sent = answers[0].http_request.headers["x-ms-client-request-id"]
    assert answer.headers["x-ms-client-request-id"] == sent
    assert container.api_version == answers[0].http_request.headers["x-ms-version"]
    await container.upload_blob("a", b"x")
    assert await container.read("a") == b"x"
    assert [one.name for one in await container.list_blobs()] == ["a"]


async def test_user_delegation_keys_need_a_bearer_token(service):
    with rejected(HttpResponseError, 403, "AuthorizationFailure"):
        await service.get_user_delegation_key(NOW, NOW + HOUR)


async def test_queries_are_not_supported(blob):
    await blob.upload_blob(b"a,b\n")
    with rejected(HttpResponseError, 501, "NotImplemented"):
        await blob.query_blob("SELECT * from BlobStorage")


async def test_immutability_is_not_supported(blob):
    await blob.upload_blob(b"x")
    policy = ImmutabilityPolicy(expiry_time=NOW + HOUR, policy_mode="Unlocked")
    for call in (
        lambda: blob.set_immutability_policy(policy),
        blob.delete_immutability_policy,
        lambda: blob.set_legal_hold(True),
    ):
        with rejected(HttpResponseError, 501, "NotImplemented"):
            await call()
    with rejected(HttpResponseError, 400, "UnsupportedHeader"):
        await blob.upload_blob(b"y", overwrite=True, immutability_policy=policy)
    with rejected(HttpResponseError, 400, "UnsupportedHeader"):
        await blob.upload_blob(b"y", overwrite=True, legal_hold=True)
    assert await blob.read() == b"x"


async def test_incremental_copies_are_not_supported(container, blob):
    disk = container.within("disk")
    await disk.create_page_blob(512)
    snapshot = container.within("disk", snapshot=await disk.create_snapshot())
    with rejected(HttpResponseError, 501, "NotImplemented"):
        await blob.start_copy_from_url(snapshot.url, incremental_copy=True)


async def test_encryption_by_the_client_is_not_supported(blob):
    await blob.upload_blob(b"x")
    keyed = {
        "x-ms-encryption-key": "MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=",
        "x-ms-encryption-key-sha256": "3QFFFpRA5+XANHqwwbT4yXDmrT/2JaLt/FKHjzhOdoE=",
        "x-ms-encryption-algorithm": "AES256",
    }
    for options in ({"encryption_scope": "mine"}, {"headers": keyed}):
        with rejected(HttpResponseError, 400, "UnsupportedHeader"):
            await blob.upload_blob(b"y", overwrite=True, **options)
        with rejected(HttpResponseError, 400, "UnsupportedHeader"):
            await blob.stage_block("a", b"y", **options)
    with rejected(HttpResponseError, 400, "UnsupportedHeader"):
        await blob.download_blob(headers=keyed)
    assert await blob.read() == b"x"


async def test_content_is_validated_segment_by_segment(clients, blob):
    # Three segments of 4 MiB as one body, then in blocks.
    content = bytes(range(251)) * 40_000
    for size_max in (64 << 20, 1 << 20):
        client = clients.blobs(max_single_put_size=size_max, max_block_size=5 << 20)
        sent = client.within(blob.inner.container_name).within(blob.inner.blob_name)
        await sent.upload_blob(io.BytesIO(content), overwrite=True, validate_content="crc64")
        assert await sent.read(validate_content="crc64") == content
        part = await sent.read(offset=5, length=9 << 20, validate_content="crc64")
        assert part == content[5 : 5 + (9 << 20)]
    framed = {
        "x-ms-structured-body": "XSM/1.0; properties=crc64",
        "x-ms-structured-content-length": "1",
    }
    with rejected(HttpResponseError, 400, "InvalidInput"):
        await blob.upload_blob(b"x", overwrite=True, headers=framed)
