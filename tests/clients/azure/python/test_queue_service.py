"""The queue service as a whole: properties, statistics, origins, addresses."""

import datetime

import pytest
import requests
from azure.core.exceptions import HttpResponseError
from azure.storage.queue import CorsRule, Metrics, QueueAnalyticsLogging, RetentionPolicy

from azure_errors import forbidden, rejected
from proxy import proxy_to
from test_queue_access import of_account


@pytest.fixture
async def service(clients):
    """The client of the service; its properties are as at first afterwards."""
    service = clients.queues()
    yield service
    await service.set_service_properties(
        analytics_logging=QueueAnalyticsLogging(),
        hour_metrics=Metrics(enabled=False),
        minute_metrics=Metrics(enabled=False),
        cors=[],
    )


def host_style(proxy):
    """The options of a client that names the service as in the cloud, and is redirected to ours."""
    endpoint = "http://devstoreaccount1.queue.core.windows.net"
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
        analytics_logging=QueueAnalyticsLogging(
            read=True, write=True, delete=False, retention_policy=week
        ),
        hour_metrics=Metrics(enabled=True, include_apis=True, retention_policy=week),
        minute_metrics=Metrics(enabled=False),
        cors=[rule],
    )
    got = await service.get_service_properties()
    logging, hour, kept = got["analytics_logging"], got["hour_metrics"], got["cors"][0]
    assert (logging.read, logging.write, logging.delete) == (True, True, False)
    assert (logging.retention_policy.enabled, logging.retention_policy.days) == (True, 7)
    assert (hour.enabled, hour.include_apis, hour.retention_policy.days) == (True, True, 7)
    assert not got["minute_metrics"].enabled
    for field in ("allowed_origins", "allowed_methods", "max_age_in_seconds"):
        assert getattr(kept, field) == getattr(rule, field)
    assert (kept.exposed_headers, kept.allowed_headers) == (
        rule.exposed_headers,
        rule.allowed_headers,
    )


async def test_unset_properties_are_kept(service):
    await service.set_service_properties(cors=[CorsRule(["*"], ["GET"])])
    await service.set_service_properties(minute_metrics=Metrics(enabled=True, include_apis=False))
    got = await service.get_service_properties()
    assert len(got["cors"]) == 1 and got["minute_metrics"].enabled
    await service.set_service_properties(cors=[])
    assert not (await service.get_service_properties())["cors"]


async def test_a_sixth_rule_for_origins_is_rejected(service):
    rules = [CorsRule([f"http://{number}.example"], ["GET"]) for number in range(6)]
    await service.set_service_properties(cors=rules[:5])
    with rejected(HttpResponseError, 400, "InvalidXmlDocument"):
        await service.set_service_properties(cors=rules)
    assert len((await service.get_service_properties())["cors"]) == 5


async def test_pages_of_an_allowed_origin_may_call(service, queue, name, target):
    rule = CorsRule(["http://a.example"], ["GET"], max_age_in_seconds=60, allowed_headers=["*"])
    await service.set_service_properties(cors=[rule])

    def preflight(origin, method):
        sent = {"Origin": origin, "Access-Control-Request-Method": method}
        return requests.options(f"{target.queue}/{name}", headers=sent, timeout=30)

    allowed = preflight("http://a.example", "GET")
    assert allowed.status_code == 200
    assert allowed.headers["Access-Control-Allow-Origin"] == "http://a.example"
    for response in (preflight("http://b.example", "GET"), preflight("http://a.example", "PUT")):
        assert response.status_code == 403
        assert response.headers["x-ms-error-code"] == "CorsPreflightFailure"


async def test_statistics_are_at_the_secondary(clients, target):
    with proxy_to(target.queue_address) as proxy:
        stats = await clients.queues(**host_style(proxy)).get_service_stats()
        assert any("-secondary" in path for _, path in proxy.requests)
    assert stats["geo_replication"]["status"] == "live"
    now = datetime.datetime.now(datetime.timezone.utc)
    last = stats["geo_replication"]["last_sync_time"]
    assert abs(now - last) < datetime.timedelta(minutes=5)


async def test_the_secondary_reads_and_does_not_write(clients, queue, name, target):
    await queue.send_message("x")
    secondary = clients.queue(name, of_account("rwap"), endpoint=f"{target.queue}-secondary")
    assert len(await secondary.peek_messages()) == 1
    with forbidden(HttpResponseError, "InsufficientAccountPermissions"):
        await secondary.send_message("y")
    assert len(await queue.peek_messages(max_messages=32)) == 1


async def test_the_account_may_be_the_first_label_of_the_host(clients, name, target):
    with proxy_to(target.queue_address) as proxy:
        queue = clients.queue(name, **host_style(proxy))
        await queue.create_queue()
        await queue.send_message("x")
        assert (await queue.receive_message()).content == "x"
        assert name in [one.name for one in await clients.queues(**host_style(proxy)).list_queues()]
        await queue.delete_queue()


async def test_a_connection_string_is_enough(clients, target, name):
    string = target.connection_string
    await clients.from_connection_string("QueueServiceClient", string).create_queue(name)
    queue = clients.from_connection_string("QueueClient", string, name)
    await queue.send_message("x")
    sas = of_account("rp")
    signed = f"QueueEndpoint={target.queue};SharedAccessSignature={sas}"
    reader = clients.from_connection_string("QueueClient", signed, name)
    assert (await reader.receive_message()).content == "x"


@pytest.mark.parametrize("version", ["2019-02-02", "2021-12-02", "2025-11-05", None])
async def test_every_version_that_the_client_offers_is_served(clients, name, version):
    queue = clients.queue(name, **({"api_version": version} if version else {}))
    answers = []
    hook = {"raw_response_hook": lambda answer: answers.append(answer)}
    await queue.create_queue(**hook)
    answer = answers[0].http_response
    # One that is newer than the server is served as the newest that it supports.
    assert answer.headers["x-ms-version"] <= answers[0].http_request.headers["x-ms-version"]
    assert answer.headers["x-ms-request-id"]
    sent = answers[0].http_request.headers["x-ms-client-request-id"]
    assert answer.headers["x-ms-client-request-id"] == sent


async def test_answers_have_the_headers_that_frameworks_read(queue):
    answers = []
    hook = {"raw_response_hook": lambda answer: answers.append(answer.http_response.headers)}
    await queue.send_message("x", **hook)
    got = await queue.receive_message(**hook)
    await queue.update_message(got, content="y", **hook)
    await queue.get_queue_properties(**hook)
    assert answers[0]["Content-Type"].startswith("application/xml")
    assert answers[1]["Cache-Control"] == "no-cache"
    assert answers[2]["x-ms-popreceipt"] and answers[2]["x-ms-time-next-visible"].endswith("GMT")
    assert answers[3]["x-ms-approximate-messages-count"] == "1"


async def test_user_delegation_keys_need_a_bearer_token(clients):
    now = datetime.datetime.now(datetime.timezone.utc)
    later = now + datetime.timedelta(hours=1)
    with rejected(HttpResponseError, 403, "AuthorizationFailure"):
        await clients.queues().get_user_delegation_key(expiry=later, start=now)
