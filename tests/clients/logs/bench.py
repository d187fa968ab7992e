"""Stores the same records as a log, as entities of a table, and as single appends to a blob, and draws the chart.

    bench.py NUMBERS.json CHART.svg

`tests/clients/logs/bench.sh` runs it. TRESTLE_BIN names the server; AZURITE_BLOB the program of Azurite for
blobs, which is left out without it. BENCH_BUILD names the build in the chart; BENCH_SECONDS bounds the load of
each way (8), BENCH_RECORDS the records (200,000).
"""

import contextlib
import datetime
import http.client
import itertools
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

import grpc

import chart
import contract
from server import Server, free_port

RECORDS = int(os.environ.get("BENCH_RECORDS", "200000"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "8"))
LOG_BATCH, TABLE_BATCH = 1_000, 100
# An append blob has at most so many blocks.
BLOCKS_MAX = 50_000
# Requests under way.
IN_FLIGHT = 8
TICKS = os.sysconf("SC_CLK_TCK")
ROUTES = ("/pay", "/cart", "/search", "/account/orders", "/login")


def lines():
    """Records of requests, as plain values: about 360 bytes as a record, 590 as JSON."""
    rng = random.Random(19)
    now = time.time_ns() - 3_600_000_000_000
    for number in range(RECORDS):
        now += rng.randrange(2_000_000)
        route, status = rng.choice(ROUTES), rng.choice((200,) * 18 + (404, 500))
        took = rng.randrange(400, 90_000)
        yield {
            "time": now,
            "severity": 17 if status == 500 else 9,
            "severity_text": "ERROR" if status == 500 else "INFO",
            "body": f"POST {route} answered {status} in {took} us for user {rng.randrange(10**6)}",
            "trace_id": rng.randbytes(16).hex(),
            "span_id": rng.randbytes(8).hex(),
            "attributes": {
                "http.route": route,
                "http.request.method": "POST",
                "http.response.status_code": status,
                "url.path": f"{route}/{rng.randrange(10**6)}",
                "client.address": f"10.{rng.randrange(256)}.{rng.randrange(256)}.{rng.randrange(256)}",
                "server.address": f"shop-{rng.randrange(12)}",
                "duration_us": took,
                "order": number,
            },
        }


def log_requests(api, records):
    """Batches of records, encoded."""
    for batch in batched(records, LOG_BATCH):
        request = api.pb.AppendRecordsRequest(stream="requests")
        for line in batch:
            record = request.records.add(
                time_unix_nano=line["time"],
                severity_number=line["severity"],
                severity_text=line["severity_text"],
                trace_id=bytes.fromhex(line["trace_id"]),
                span_id=bytes.fromhex(line["span_id"]),
            )
            record.body.string_value = line["body"]
            for key, value in line["attributes"].items():
                kind = "string_value" if isinstance(value, str) else "int_value"
                setattr(record.attributes[key], kind, value)
        yield len(batch), request.SerializeToString()


def batched(values, size):
    """Lists of values."""
    values = iter(values)
    while batch := list(itertools.islice(values, size)):
        yield batch


def table_requests(api, records):
    """Batches of entities, encoded: the minute is the partition, the time and a number the row key."""
    of_minute = itertools.groupby(records, key=lambda line: line["time"] // 60_000_000_000)
    for minute, group in of_minute:
        for batch in batched(group, TABLE_BATCH):
            request = api.table.ExecuteBatchRequest(table="requests")
            for line in batch:
                entity = request.operations.add().insert.entity
                entity.partition_key = str(minute)
                entity.row_key = f"{line['time']}-{line['attributes']['order']}"
                for name in ("severity_text", "body", "trace_id", "span_id"):
                    entity.properties[name].string_value = line[name]
                entity.properties["severity"].int32_value = line["severity"]
                for key, value in line["attributes"].items():
                    kind = "string_value" if isinstance(value, str) else "int64_value"
                    setattr(entity.properties[key.replace(".", "_")], kind, value)
            yield len(batch), request.SerializeToString()


def plain_lines(records):
    """Lines of JSON."""
    for line in itertools.islice(records, BLOCKS_MAX):
        yield json.dumps(line, separators=(",", ":")).encode() + b"\n"


def measure(requests, send, pid):
    """Sends requests, with some under way, until they end or the seconds have passed."""
    counted, sent, lock = [0], [0], threading.Lock()
    before, began = cpu_seconds(pid), time.monotonic()

    def work():
        for_thread = send()
        while time.monotonic() - began < SECONDS:
            with lock:
                found = next(requests, None)
            if found is None:
                return
            records, body = found
            for_thread(body)
            with lock:
                counted[0] += records
                sent[0] += 1

    threads = [threading.Thread(target=work) for _ in range(IN_FLIGHT)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    return {
        "records": counted[0],
        "requests": sent[0],
        "records_per_second": counted[0] / took,
        "cpu_us_per_record": (cpu_seconds(pid) - before) * 1e6 / counted[0],
    }


def cpu_seconds(pid):
    """What the operating system counts for a process."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


def bytes_on_disk(folder):
    """The bytes of the blocks of all files."""
    return sum(path.stat().st_blocks * 512 for path in pathlib.Path(folder).rglob("*") if path.is_file())


@contextlib.contextmanager
def running():
    """A server with an empty data directory, and a channel to it."""
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            with grpc.insecure_channel(server.grpc) as channel:
                yield server, channel
        finally:
            server.kill()


def sender(channel, method, kind="unary_unary"):
    """Sends encoded requests by a method."""
    call = getattr(channel, kind)(method)
    return lambda: (lambda body: call(body if kind == "unary_unary" else iter([body]), timeout=60))


def of_log(api, records):
    """Batches of a log, sealed at the end."""
    with running() as (server, channel):
        server.trestle("log", "create", "requests")
        before = bytes_on_disk(server.data)
        send = sender(channel, "/trestle.log.v1.LogService/AppendRecords")
        cpu = cpu_seconds(server.pid)
        numbers = measure(iter(list(log_requests(api, records))), send, server.pid)
        server.trestle("log", "flush", "requests")
        numbers["cpu_us_per_record"] = (cpu_seconds(server.pid) - cpu) * 1e6 / numbers["records"]
        segments = server.records("segments", "requests")
        assert sum(segment["records"] for segment in segments) == numbers["records"]
        numbers["segment_bytes_per_record"] = sum(it["bytes"] for it in segments) / numbers["records"]
        return finished(server, before, numbers)


def of_table(api, records):
    """Batches of entities."""
    with running() as (server, channel):
        server.trestle("table", "create", "requests")
        before = bytes_on_disk(server.data)
        send = sender(channel, "/trestle.table.v1.TableService/ExecuteBatch")
        return finished(server, before, measure(iter(list(table_requests(api, records))), send, server.pid))


def of_append_blob(api, records):
    """Single lines, each an append to one blob."""
    with running() as (server, channel):
        blobs = api.blob_rpc.BlobServiceStub(channel)
        blobs.CreateContainer(api.blob.CreateContainerRequest(container={"name": "logs"}))
        blobs.CreateAppendBlob(api.blob.CreateAppendBlobRequest(container="logs", blob="requests"))
        before = bytes_on_disk(server.data)
        spec = api.blob.AppendBlockSpec(container="logs", blob="requests")
        messages = [
            (1, api.blob.AppendBlockRequest(spec=spec, data=line, finish={}).SerializeToString())
            for line in plain_lines(records)
        ]
        send = sender(channel, "/trestle.blob.v1.BlobService/AppendBlock", "stream_unary")
        return finished(server, before, measure(iter(messages), send, server.pid))


def finished(server, before, numbers):
    """Ends the server; the bytes that it then has on the disk are counted."""
    server.end()
    numbers["disk_bytes_per_record"] = (bytes_on_disk(server.data) - before) / numbers["records"]
    return numbers


def of_azurite(records):
    """Single lines, each an append to one blob of Azurite."""
    port, program = free_port(), os.environ["AZURITE_BLOB"]
    command = [os.environ["TRESTLE_BIN"], "sas", "account", "--account", "devstoreaccount1"]
    command += ["--services", "b", "--resource-types", "co", "--permissions", "cwa", "--expiry", "1h"]
    token = subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory() as folder:
        arguments = ["node", program, "--silent", "--skipApiVersionCheck"]
        arguments += ["--blobPort", str(port), "--location", folder]
        azurite = subprocess.Popen(arguments, stdout=subprocess.DEVNULL)
        try:
            return appended(port, token, folder, azurite.pid, records)
        finally:
            azurite.terminate()
            azurite.wait()


def appended(port, token, folder, pid, records):
    """The load on a running Azurite."""

    def put(path, body, **headers):
        connection.request("PUT", f"/devstoreaccount1/logs{path}&{token}", body, headers)
        answer = connection.getresponse()
        content = answer.read()
        assert answer.status == 201, content

    until = time.monotonic() + 60
    while True:
        try:
            connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
            put("?restype=container", b"")
            break
        except ConnectionError:
            assert time.monotonic() < until, "Azurite is not ready"
            time.sleep(0.2)
    put("/requests?", b"", **{"x-ms-blob-type": "AppendBlob"})
    before = bytes_on_disk(folder)

    def send():
        own = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

        def one(body):
            own.request("PUT", f"/devstoreaccount1/logs/requests?comp=appendblock&{token}", body)
            answer = own.getresponse()
            content = answer.read()
            assert answer.status == 201, content

        return one

    numbers = measure(((1, line) for line in plain_lines(records)), send, pid)
    numbers["disk_bytes_per_record"] = (bytes_on_disk(folder) - before) / numbers["records"]
    return numbers


def main(numbers_path, chart_path):
    """Measures every way, and writes the numbers and the chart."""
    date, build = datetime.date.today().isoformat(), os.environ["BENCH_BUILD"]
    found = {"date": date, "build": build, "ways": {}}
    with tempfile.TemporaryDirectory() as out:
        api = contract.generate(out)
        ways = {
            f"log, batches of {LOG_BATCH:,}": lambda: of_log(api, lines()),
            f"table, batches of {TABLE_BATCH}": lambda: of_table(api, lines()),
            "append blob, single appends": lambda: of_append_blob(api, lines()),
        }
        if "AZURITE_BLOB" in os.environ:
            ways["append blob of Azurite"] = lambda: of_azurite(lines())
        for name, way in ways.items():
            numbers = found["ways"][name] = way()
            numbers["requests_per_1000_records"] = 1000 * numbers["requests"] / numbers["records"]
            print(name, json.dumps(numbers), flush=True)
    pathlib.Path(numbers_path).write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    pathlib.Path(chart_path).write_text(chart.draw(found), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
