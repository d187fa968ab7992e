"""One request is one trace, with the spans, parents, kinds and attributes that the conventions require
for."""

import grpc

from processes import SERVICE, Trace, World, message
from receiver import KIND_CLIENT, KIND_SERVER, STATUS_ERROR, STATUS_UNSET, eventually


def tree(receiver, trace, count):
    """The spans of a trace by their parents, once there are as many as expected."""
    spans = eventually(lambda: len(found := receiver.spans(trace.id)) >= count and found)
    assert len(spans) == count, spans
    by_parent = {}
    for span in spans:
        by_parent.setdefault(span.item.parent_span_id.hex(), []).append(span)
    return by_parent


def only_child(by_parent, parent):
    """The only span under a parent."""
    (child,) = by_parent[parent]
    return child, child.item.span_id.hex()


def test_a_read_is_one_trace_from_the_client_down_to_the_engine(receiver, world):
    table, trace = world.new_table(), Trace()

    assert world.call("GetEntity", table, "p", "r", trace=trace) == grpc.StatusCode.NOT_FOUND

    # The engine reads the table's record, then the entity.
    spans = tree(receiver, trace, 5)
    method = f"{SERVICE}/GetEntity"
    server, at_gateway = only_child(spans, trace.span)
    client, between = only_child(spans, at_gateway)
    role, at_table = only_child(spans, between)
    engine = spans[at_table]
    assert [server.process, client.process, role.process] == ["gateway", "gateway", "table"]
    assert [s.item.kind for s in (server, client, role)] == [KIND_SERVER, KIND_CLIENT, KIND_SERVER]
    for span in (server, client, role):
        assert span.item.name == method
        assert span.attributes["rpc.system.name"] == "grpc"
        assert span.attributes["rpc.method"] == method
        assert span.attributes["rpc.response.status_code"] == "NOT_FOUND"
    for span in (server, role):
        assert span.attributes["trestle.request_id"] == "my-request"
        assert span.attributes["network.peer.address"] == "127.0.0.1"
        # NOT_FOUND is no error of a server span, but one of a client span.
        assert span.item.status.code == STATUS_UNSET
    host, port = world.table.grpc.split(":")
    assert client.attributes["server.address"] == host
    assert client.attributes["server.port"] == int(port)
    assert client.item.status.code == STATUS_ERROR
    assert client.attributes["error.type"] == "NOT_FOUND"
    for span in engine:
        assert span.process == "table" and span.item.kind == KIND_CLIENT
        assert span.item.name == span.attributes["db.operation.name"] == "get"
        assert span.attributes["db.system.name"] == "fjall"
        assert role.item.start_time_unix_nano <= span.item.start_time_unix_nano
        assert span.item.end_time_unix_nano <= role.item.end_time_unix_nano


def test_a_write_has_the_commit_in_its_trace_and_a_scan_its_row_count(receiver, world):
    write, read = Trace(), Trace()
    table = world.new_table()

    assert world.call("DeleteTable", table, trace=write) == grpc.StatusCode.OK
    assert world.call("ListTables", trace=read) == grpc.StatusCode.OK

    def operations(trace):
        spans = receiver.spans(trace.id)
        return {s.attributes.get("db.operation.name"): s for s in spans}

    commit = eventually(lambda: operations(write).get("commit"))
    assert commit.item.status.code == STATUS_UNSET
    scan = eventually(lambda: operations(read).get("scan"))
    assert scan.attributes["db.response.returned_rows"] >= 0


def test_an_unknown_method_is_not_a_span_name(receiver, world):
    trace = Trace()

    code = world.call("Absent", trace=trace, service="some.v1.Service")

    assert code == grpc.StatusCode.UNIMPLEMENTED
    (server,) = tree(receiver, trace, 1)[trace.span]
    assert server.item.name == server.attributes["rpc.method"] == "_OTHER"
    assert server.attributes["rpc.method_original"] == "some.v1.Service/Absent"
    assert server.attributes["error.type"] == "UNIMPLEMENTED"
    assert server.item.status.code == STATUS_ERROR


def test_a_trace_that_the_caller_does_not_sample_has_no_spans_in_any_process(
    receiver, tmp_path
):
    passed_over, kept = Trace(sampled=False), Trace()
    world = World(receiver, tmp_path, TRESTLE__TELEMETRY__TRACE_SAMPLE_RATIO="0")
    table = world.new_table()

    world.call("GetEntity", table, "p", "r", trace=passed_over)
    world.call("GetEntity", table, "p", "r", request_id="not-drawn")
    world.call("GetEntity", table, "p", "r", trace=kept)
    tree(receiver, kept, 5)
    world.end()

    # With the ratio 0 new traces are not sampled; those that a caller samples are.
    assert receiver.spans(passed_over.id) == [] and receiver.spans_of("not-drawn") == []


def test_a_call_without_a_parent_begins_a_trace(receiver, world):
    world.call("CreateTable", message("Fresh"), request_id="fresh")

    spans = eventually(lambda: len(found := receiver.spans_of("fresh")) == 2 and found)
    (trace_id,) = {span.item.trace_id for span in spans}
    (root,) = [span for span in spans if not span.item.parent_span_id]
    assert root.process == "gateway"
    # Those two, that between them, and the engine's.
    assert eventually(lambda: len(receiver.spans(trace_id.hex())) > 3)
