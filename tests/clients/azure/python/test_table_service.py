"""The table service as a whole: properties, statistics, origins, addresses, versions."""

import datetime

import pytest
import requests
from azure.core.exceptions import HttpResponseError, ResourceNotFoundError
from azure.data.tables import (
    TableAnalyticsLogging,
    TableCorsRule,
    TableMetrics,
    TableRetentionPolicy,
    UpdateMode,
)

from azure_errors import forbidden, rejected
from proxy import proxy_to
from signatures import of_account


def host_style(proxy):
    """The options of a client that names the service as in the cloud, and is redirected to ours."""
    endpoint = "http://devstoreaccount1.table.core.windows.net"
    return {"endpoint": endpoint, "proxies": {"http": f"http://{proxy.address}"}}


@pytest.fixture
async def service(clients):
    """The client of the service; its properties are as at first afterwards."""
    service = clients.tables()
    yield service
    off = TableRetentionPolicy(enabled=False)
    await service.set_service_properties(
        analytics_logging=TableAnalyticsLogging(
            read=False, write=False, delete=False, retention_policy=off
        ),
        hour_metrics=TableMetrics(enabled=False, retention_policy=off),
        minute_metrics=TableMetrics(enabled=False, retention_policy=off),
        cors=[],
    )


async def test_properties_have_defaults(service):
    properties = await service.get_service_properties()
    assert properties["cors"] == []
    assert not properties["analytics_logging"].read
    assert not properties["hour_metrics"].enabled
    assert not properties["minute_metrics"].enabled


async def test_properties_survive_a_round_trip(service):
    week = TableRetentionPolicy(enabled=True, days=7)
    await service.set_service_properties(
        analytics_logging=TableAnalyticsLogging(
            read=True, write=True, delete=False, retention_policy=week
        ),
        hour_metrics=TableMetrics(enabled=True, include_apis=True, retention_policy=week),
        minute_metrics=TableMetrics(enabled=False),
        cors=[
            TableCorsRule(
                ["http://a.example", "http://b.example"],
                ["GET", "PUT"],
                max_age_in_seconds=500,
                exposed_headers=["x-ms-meta-*"],
                allowed_headers=["x-ms-meta-data*", "x-ms-other"],
            )
        ],
    )
    got = await service.get_service_properties()
    logging, hour, rule = got["analytics_logging"], got["hour_metrics"], got["cors"][0]
    assert (logging.read, logging.write, logging.delete) == (True, True, False)
    assert (logging.retention_policy.enabled, logging.retention_policy.days) == (True, 7)
    assert (hour.enabled, hour.include_apis, hour.retention_policy.days) == (True, True, 7)
    assert not got["minute_metrics"].enabled
    assert rule.allowed_origins == ["http://a.example", "http://b.example"]
    assert rule.allowed_methods == ["GET", "PUT"]
    assert rule.max_age_in_seconds == 500
    assert rule.exposed_headers == ["x-ms-meta-*"]
    assert rule.allowed_headers == ["x-ms-meta-data*", "x-ms-other"]


async def test_unset_properties_are_kept(service):
    await service.set_service_properties(cors=[TableCorsRule(["*"], ["GET"])])
    await service.set_service_properties(
        minute_metrics=TableMetrics(
            enabled=True, include_apis=False, retention_policy=TableRetentionPolicy(enabled=False)
        )
    )
    got = await service.get_service_properties()
    assert [rule.allowed_origins for rule in got["cors"]] == [["*"]]
    assert got["minute_metrics"].enabled
    await service.set_service_properties(cors=[])
    assert (await service.get_service_properties())["cors"] == []


async def test_a_sixth_rule_for_origins_is_rejected(service):
    rules = [TableCorsRule([f"http://{number}.example"], ["GET"]) for number in range(6)]
    await service.set_service_properties(cors=rules[:5])
    with rejected(HttpResponseError, 400, "InvalidXmlDocument"):
        await service.set_service_properties(cors=rules)
    assert len((await service.get_service_properties())["cors"]) == 5


async def test_pages_of_an_allowed_origin_may_call(service, table, name, target):
    rule = TableCorsRule(
        ["http://a.example"], ["GET"], max_age_in_seconds=60, allowed_headers=["x-ms-*"],
        exposed_headers=["etag"],
    )
    await service.set_service_properties(cors=[rule])

    def preflight(origin, method, headers="x-ms-date"):
        sent = {"Origin": origin, "Access-Control-Request-Method": method}
        sent["Access-Control-Request-Headers"] = headers
        return requests.options(f"{target.table}/{name}", headers=sent, timeout=30)

    allowed = preflight("http://a.example", "GET")
    assert allowed.status_code == 200
    assert allowed.headers["Access-Control-Allow-Origin"] == "http://a.example"
    assert allowed.headers["Access-Control-Allow-Methods"] == "GET"
    assert allowed.headers["Access-Control-Max-Age"] == "60"
    for response in (
        preflight("http://b.example", "GET"), preflight("http://a.example", "PUT"),
        preflight("http://a.example", "GET", "x-other"),
    ):
        assert response.status_code == 403
        assert "CorsPreflightFailure" in response.text
    responses = []
    origin = {"headers": {"Origin": "http://a.example"}}
    hook = {"raw_response_hook": lambda answer: responses.append(answer.http_response.headers)}
    await table.query_entities("true", **origin, **hook)
    assert responses[0]["Access-Control-Allow-Origin"] == "http://a.example"
    assert "etag" in responses[0]["Access-Control-Expose-Headers"].lower()


async def test_statistics_are_at_the_secondary(clients, target):
    with proxy_to(target.table_address) as proxy:
        stats = await clients.tables(**host_style(proxy)).get_service_stats()
        assert "-secondary" in proxy.requests[0][1]
    assert stats["geo_replication"]["status"] == "live"
    last = stats["geo_replication"]["last_sync_time"]
    now = datetime.datetime.now(datetime.timezone.utc)
    assert abs(now - last) < datetime.timedelta(minutes=5)


async def test_statistics_are_found_with_the_account_in_the_path(clients):
    # The client requests /ACCOUNT-secondary/ACCOUNT/, and signs /ACCOUNT/.
    stats = await clients.tables().get_service_stats()
    assert stats["geo_replication"]["status"] == "live"


async def test_statistics_are_not_at_the_primary(target):
    url = f"{target.table}/?restype=service&comp=stats&{of_account('r')}"
    answer = requests.get(url, timeout=30)
    assert answer.status_code == 400
    assert answer.headers["x-ms-error-code"] == "InvalidQueryParameterValue"


async def test_the_secondary_reads_and_does_not_write(clients, table, name, target):
    await table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    secondary = clients.table(name, endpoint=f"{target.table}-secondary")
    assert len(await secondary.list_entities()) == 1
    with forbidden(HttpResponseError, "InsufficientAccountPermissions"):
        await secondary.create_entity({"PartitionKey": "p", "RowKey": "s"})
    assert len(await table.list_entities()) == 1


async def test_the_account_may_be_the_first_label_of_the_host(clients, name, target):
    with proxy_to(target.table_address) as proxy:
        table = clients.table(name, **host_style(proxy))
        await table.create_table()
        await table.create_entity({"PartitionKey": "it's", "RowKey": "a b"})
        await table.submit_transaction([("create", {"PartitionKey": "p", "RowKey": "r"})])
        responses = []
        hook = {"raw_response_hook": lambda answer: responses.append(answer.http_response.json())}
        assert len(await table.query_entities("true", **hook)) == 2
        metadata = f"http://devstoreaccount1.table.core.windows.net/$metadata#{name}"
        assert responses[0]["odata.metadata"] == metadata
        signed = clients.table(name, of_account("r"), **host_style(proxy))
        assert await signed.get_entity("it's", "a b")
        await table.delete_table()


async def test_a_connection_string_is_enough(clients, target, name):
    string = target.connection_string
    service = clients.from_connection_string("TableServiceClient", string)
    await service.create_table(name)
    table = clients.from_connection_string("TableClient", string, name)
    await table.create_entity({"PartitionKey": "p", "RowKey": "r"})
    assert len(await table.list_entities()) == 1


async def test_a_connection_string_with_a_signature_is_enough(clients, target, table, name):
    sas = of_account("rwdlacu")
    string = f"TableEndpoint={target.table};SharedAccessSignature={sas}"
    signed = clients.from_connection_string("TableClient", string, name)
    await signed.create_entity({"PartitionKey": "p", "RowKey": "r"})
    assert len(await table.list_entities()) == 1


async def test_localhost_on_another_port_works_with_tunnelled_verbs(
    clients, target, name
):
    # There the library sends each PATCH as POST with X-HTTP-Method, also in transactions.
    endpoint = target.table.replace("127.0.0.1", "localhost")
    table = clients.table(name, endpoint=endpoint)
    await table.create_table()
    keys = {"PartitionKey": "p", "RowKey": "r"}
    await table.create_entity({**keys, "x": 1})
    await table.update_entity({**keys, "y": 2})
    await table.upsert_entity({**keys, "z": 3})
    await table.submit_transaction([("update", {**keys, "a": 4})])
    await table.update_entity({**keys, "w": 5}, mode=UpdateMode.MERGE)
    expected = {**keys, "x": 1, "y": 2, "z": 3, "a": 4, "w": 5}
    assert await table.get_entity("p", "r") == expected
    with rejected(ResourceNotFoundError, 404, "ResourceNotFound"):
        await table.update_entity({"PartitionKey": "p", "RowKey": "absent"})


@pytest.mark.parametrize("version", ["2019-02-02", "2019-07-07", "2020-12-06"])
async def test_every_version_that_the_client_offers_is_served(clients, name, version):
    table = clients.table(name, api_version=version)
    responses = []
    hook = {"raw_response_hook": lambda answer: responses.append(answer.http_response.headers)}
    await table.create_table(**hook)
    assert responses[0]["x-ms-version"] == version


async def test_a_version_of_the_future_is_served_as_the_newest(target):
    url = f"{target.table}/Tables?{of_account('rl')}"
    headers = {"x-ms-version": "2031-04-05", "Accept": "application/json"}
    answer = requests.get(url, headers=headers, timeout=30)
    assert answer.status_code == 200
    response = requests.get(url, headers={**headers, "x-ms-version": "soon"}, timeout=30)
    assert response.status_code == 400
    assert response.headers["x-ms-error-code"] == "InvalidHeaderValue"


async def test_the_id_of_a_request_is_echoed(table):
    responses = []
    hook = {"raw_response_hook": lambda answer: responses.append(answer)}
    await table.query_entities("true", **hook)
    sent = responses[0].http_request.headers["x-ms-client-request-id"]
    assert responses[0].http_response.headers["x-ms-client-request-id"] == sent
    assert responses[0].http_response.headers["x-ms-request-id"]
