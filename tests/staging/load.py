"""Writers of each service, which record what was acknowledged and what failed, and readers that verify it."""

import concurrent.futures
import contextlib
import hashlib
import itertools
import threading
import time

import grpc

from stack import until

CALL_SECONDS = 30
VERIFY_SECONDS = 60
# Readers that verify at a time.
READERS = 8
# Between two writes of one writer: the machine also runs the stack.
PACE_SECONDS = 0.005
# Writes of a store that show that it is being written.
SOME_WRITES = 20
# The most that a property may have.
PROPERTY_BYTES_MAX = 65_536
LARGE_EVERY, LARGE_BYTES, SMALL_BYTES = 10, 200_000, 500


def content(name, size):
    """The bytes of a name: the same for each reader."""
    return hashlib.shake_128(name.encode()).digest(size)


def differing(keys, is_written):
    """Those keys for which `is_written` is false."""
    with concurrent.futures.ThreadPoolExecutor(READERS) as readers:
        return [key for key, written in zip(keys, readers.map(is_written, keys)) if not written]


class Entities:
    """Entities of a table."""

    def __init__(self, api, channel, name):
        self._api, self.name = api, name
        self._stub = api.table_rpc.TableServiceStub(channel)

    def create(self):
        table = self._api.table.Table(name=self.name)
        self._stub.CreateTable(self._api.table.CreateTableRequest(table=table))

    def delete(self):
        self._stub.DeleteTable(self._api.table.DeleteTableRequest(table=self.name))

    def write(self, key, *, size=SMALL_BYTES, partition=None, **options):
        """Inserts an entity with content of its own."""
        entity = self._api.entity.Entity(partition_key=partition or key, row_key=key)
        whole = content(key, size)
        for number, start in enumerate(range(0, size, PROPERTY_BYTES_MAX)):
            part = whole[start : start + PROPERTY_BYTES_MAX]
            entity.properties[f"part{number}"].binary_value = part
        request = self._api.table.InsertEntityRequest(table=self.name, entity=entity)
        self._stub.InsertEntity(request, **{"timeout": CALL_SECONDS, **options})

    def read(self, key, **options):
        request = self._api.table.GetEntityRequest(
            table=self.name, partition_key=key, row_key=key
        )
        entity = self._stub.GetEntity(request, timeout=CALL_SECONDS, **options).entity
        return entity.properties["part0"].binary_value

    def lost(self, keys):
        """Those keys whose entity is not as it was written."""
        return differing(keys, lambda key: self.read(key) == content(key, SMALL_BYTES))


class Messages:
    """Messages of a queue."""

    def __init__(self, api, channel, name):
        self._api, self.name = api, name
        self._stub = api.queue_rpc.QueueServiceStub(channel)

    def create(self):
        queue = self._api.queue.Queue(name=self.name)
        self._stub.CreateQueue(self._api.queue.CreateQueueRequest(queue=queue))

    def write(self, key, **options):
        request = self._api.queue.SendMessagesRequest(
            queue=self.name, messages=[self._api.message.OutgoingMessage(text=key)]
        )
        (result,) = self._stub.SendMessages(request, **{"timeout": CALL_SECONDS, **options}).results
        assert result.HasField("sent"), result

    def lost(self, keys):
        """Those keys that no received message has."""
        missing, end = set(keys), time.monotonic() + VERIFY_SECONDS
        request = self._api.queue.ReceiveMessagesRequest(queue=self.name, max_messages=32)
        request.visibility_timeout.seconds = 3600
        while missing and time.monotonic() < end:
            received = self._stub.ReceiveMessages(request, timeout=CALL_SECONDS).deliveries
            missing -= {delivery.message.text for delivery in received}
            if not received:
                break
        return sorted(missing)


class Blobs:
    """Blobs of a container: most of them rows, some of them objects."""

    def __init__(self, api, channel, name):
        self._api, self.name = api, name
        self._stub = api.blob_rpc.BlobServiceStub(channel)

    @staticmethod
    def size(key):
        return LARGE_BYTES if int(key.split("-")[-1]) % LARGE_EVERY == 0 else SMALL_BYTES

    def create(self):
        container = self._api.content.Container(name=self.name)
        self._stub.CreateContainer(self._api.blob.CreateContainerRequest(container=container))

    def write(self, key, **options):
        request = self._api.blob.WriteBlobRequest(
            spec=self._api.blob.WriteBlobSpec(container=self.name, blob=key),
            data=content(key, self.size(key)),
            finish=self._api.content.UploadFinish(),
        )
        self._stub.WriteBlob(iter([request]), **{"timeout": CALL_SECONDS, **options})

    def stage(self, key, block, data):
        """Uploads a block of a blob."""
        request = self._api.blob.StageBlockRequest(
            spec=self._api.blob.StageBlockSpec(container=self.name, blob=key, block_id=block),
            data=data,
            finish=self._api.content.UploadFinish(),
        )
        self._stub.StageBlock(iter([request]), timeout=CALL_SECONDS)

    def commit(self, key, *blocks):
        """Makes staged blocks the contents of a blob."""
        request = self._api.blob.CommitBlocksRequest(container=self.name, blob=key)
        for block in blocks:
            request.blocks.add(id=block)
        self._stub.CommitBlocks(request, timeout=CALL_SECONDS)

    def read(self, key, **options):
        request = self._api.blob.ReadBlobRequest(container=self.name, blob=key)
        return b"".join(part.data for part in self._stub.ReadBlob(request, **options))

    def lost(self, keys):
        """Those keys whose blob is not as it was written."""
        return differing(keys, lambda k: self.read(k, timeout=CALL_SECONDS) == content(k, self.size(k)))


class Records:
    """Log records of a stream."""

    def __init__(self, api, channel, name):
        self._api, self.name = api, name
        self._stub = api.log_rpc.LogServiceStub(channel)

    def create(self):
        stream = self._api.log.LogStream(name=self.name)
        self._stub.CreateStream(self._api.log.CreateStreamRequest(stream=stream))

    def write(self, key, **options):
        request = self._api.log.AppendRecordsRequest(stream=self.name)
        request.records.add().body.string_value = key
        self._stub.AppendRecords(request, **{"timeout": CALL_SECONDS, **options})

    def read(self, **options):
        """The text of each record."""
        request = self._api.log.ReadRecordsRequest(stream=self.name)
        parts = self._stub.ReadRecords(request, **options)
        return [record.body.string_value for part in parts for record in part.records]

    def seal(self):
        """Makes segments of the records."""
        request = self._api.log.FlushStreamRequest(stream=self.name)
        self._stub.FlushStream(request, timeout=CALL_SECONDS)

    def lost(self, keys):
        """Those keys that no record has, neither before nor after the records are sealed."""
        unsealed = set(self.read(timeout=VERIFY_SECONDS))
        self.seal()
        return sorted(set(keys) - (unsealed & set(self.read(timeout=VERIFY_SECONDS))))


class Load:
    """Writers in the background, two for each store."""

    WRITERS = 2

    def __init__(self, *stores):
        self.acknowledged = {store: [] for store in stores}
        self.failed = {store: [] for store in stores}
        self._stop = threading.Event()
        self._threads = [
            threading.Thread(target=self._write, args=(store, writer), daemon=True)
            for store in stores
            for writer in range(self.WRITERS)
        ]

    def _write(self, store, writer):
        for number in itertools.count(1):
            if self._stop.wait(PACE_SECONDS):
                return
            key = f"{writer}-{number}"
            try:
                # Waits for a gateway that is being replaced; an outcome that is not known stays a failure.
                store.write(key, wait_for_ready=True)
            except grpc.RpcError as error:
                self.failed[store].append((key, error.code(), error.details()))
            else:
                self.acknowledged[store].append(key)

    @contextlib.contextmanager
    def running(self):
        """Writes until the end of the block."""
        for thread in self._threads:
            thread.start()
        try:
            yield self
        finally:
            self._stop.set()
            for thread in self._threads:
                thread.join(CALL_SECONDS + 5)

    def advance(self, *stores, count=SOME_WRITES):
        """Waits until so many more writes were acknowledged by each of the stores, by default all."""
        before = {store: len(self.acknowledged[store]) for store in stores or self.acknowledged}
        for store, done in before.items():
            until(lambda s=store, n=done + count: len(self.acknowledged[s]) >= n, f"writes: {store.name}")

    def assert_nothing_is_lost(self):
        """Every acknowledged write can be read."""
        for store, keys in self.acknowledged.items():
            assert keys, f"nothing was written: {store.name}"
            lost = store.lost(keys)
            assert lost == [], f"lost in {store.name}: {len(lost)} of {len(keys)}: {lost[:10]}"
