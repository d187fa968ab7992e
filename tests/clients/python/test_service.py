"""Around the tables: settings, state, health, deadlines, request ids, the admin port."""

import threading
import urllib.request

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from entities import entity
from failures import rejected
from server import Server

SERVING = health_pb2.HealthCheckResponse.SERVING


def test_unset_properties_are_kept(api, stub):
    pb, properties = api.pb, api.properties
    before = stub.GetServiceProperties(pb.GetServicePropertiesRequest()).properties
    change = properties.ServiceProperties(
        cors=properties.Cors(
            rules=[
                properties.CorsRule(
                    allowed_origins=["*"], allowed_methods=["GET"], max_age={"seconds": 60}
                )
            ]
        )
    )

    stub.SetServiceProperties(pb.SetServicePropertiesRequest(properties=change))

    after = stub.GetServiceProperties(pb.GetServicePropertiesRequest()).properties
    assert after.cors == change.cors
    assert (after.logging, after.hour_metrics) == (before.logging, before.hour_metrics)
    stub.SetServiceProperties(pb.SetServicePropertiesRequest(properties=before))


def test_stats_report_the_durability_and_the_engine(api, stub):
    stats = stub.GetServiceStats(api.pb.GetServiceStatsRequest())

    assert stats.durability == api.durability.DURABILITY_ALWAYS
    assert stats.engine == "fjall"
    assert stats.server_version and stats.start_time.seconds > 0 and stats.free_bytes > 0


@pytest.mark.parametrize("service", ["", "trestle.table.v1.TableService"])
def test_health_is_serving(channel, service):
    health = health_pb2_grpc.HealthStub(channel)
    assert health.Check(health_pb2.HealthCheckRequest(service=service)).status == SERVING


def test_the_health_of_an_unknown_service_is_not_found(channel):
    with pytest.raises(grpc.RpcError) as caught:
        health_pb2_grpc.HealthStub(channel).Check(health_pb2.HealthCheckRequest(service="nothing"))
    assert caught.value.code() == grpc.StatusCode.NOT_FOUND


def test_watched_health_reports_not_serving_before_the_server_ends(tmp_path):
    server = Server(tmp_path)
    try:
        with grpc.insecure_channel(server.grpc) as channel:
            watch = health_pb2_grpc.HealthStub(channel).Watch(
                health_pb2.HealthCheckRequest(service="")
            )
            assert next(watch).status == SERVING

            codes = []
            ending = threading.Thread(target=lambda: codes.append(server.terminate()))
            ending.start()
            assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
            watch.cancel()
        ending.join()
        assert codes == [0]
    finally:
        server.kill()


def test_a_call_within_its_deadline_succeeds(api, stub, table):
    request = api.pb.InsertEntityRequest(table=table, entity=entity(api, "p", "r"))
    assert stub.InsertEntity(request, timeout=20).etag


def test_a_stalled_import_ends_at_its_deadline(api, stub, table):
    message = api.pb.ImportEntitiesRequest
    release = threading.Event()

    def requests():
        yield message(spec=api.pb.ImportSpec(table=table))
        release.wait()

    call = stub.ImportEntities(requests(), timeout=0.5)
    with pytest.raises(grpc.RpcError) as caught:
        next(call)
    release.set()
    assert caught.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED


def test_an_unknown_method_is_unimplemented(channel):
    for path in ("/trestle.table.v1.TableService/Nothing", "/no.such.Service/Method"):
        with pytest.raises(grpc.RpcError) as caught:
            channel.unary_unary(path)(b"")
        assert caught.value.code() == grpc.StatusCode.UNIMPLEMENTED


@pytest.mark.parametrize("body", [b"\xff\xff\xff", b"\x12\x05ab", b"\x0a\xff\xff\xff\xff\x0f"])
def test_malformed_protobuf_is_rejected(channel, body):
    call = channel.unary_unary("/trestle.table.v1.TableService/InsertEntity")
    with pytest.raises(grpc.RpcError) as caught:
        call(body)
    assert caught.value.code() == grpc.StatusCode.INVALID_ARGUMENT


def test_a_message_over_the_limit_is_rejected_and_the_connection_remains_open(api, stub, table):
    big = entity(api, "p", "r", **{f"b{n}": ("binary_value", bytes(65_536)) for n in range(130)})
    with rejected(grpc.StatusCode.RESOURCE_EXHAUSTED, "RPC_MESSAGE_TOO_LARGE"):
        stub.InsertEntity(api.pb.InsertEntityRequest(table=table, entity=big))

    big = entity(api, "p", "r", **{f"b{n}": ("binary_value", bytes(65_536)) for n in range(16)})
    with rejected(grpc.StatusCode.INVALID_ARGUMENT, "ENTITY_TOO_LARGE"):
        stub.InsertEntity(api.pb.InsertEntityRequest(table=table, entity=big))


def test_a_request_id_is_returned(api, channel, stub):
    _, call = stub.GetServiceStats.with_call(
        api.pb.GetServiceStatsRequest(), metadata=[("x-request-id", "from-the-client")]
    )
    sent_back = dict(call.initial_metadata()) | dict(call.trailing_metadata())
    assert sent_back.get("x-request-id") == "from-the-client"


@pytest.mark.parametrize("path", ["livez", "readyz", "metrics"])
def test_the_admin_port_serves_probes_and_metrics(server, path):
    with urllib.request.urlopen(f"http://{server.admin}/{path}", timeout=10) as answer:
        assert answer.status == 200
