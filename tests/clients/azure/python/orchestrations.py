"""Orchestrations on tables, queues and blobs, in the layout of the Durable Task framework.

An order is an orchestration of three activities. Workers divide the partitions among themselves:

- a blob per partition, whose lease makes one worker its owner; the lease expires when the worker crashes,
- a control queue per partition, with the events of its orchestrations, and one queue for activities,
- a table with the history of each orchestration, in which each event has one row, and the heartbeats of the workers,
- blobs with the results of activities.

A message may be delivered twice and an activity may run twice. An event is recorded once: its row is inserted, and the
state updated by its etag, in one transaction.

    python orchestrations.py CONNECTION_STRING NAME WORKER
"""

import json
import sys
import time
import zlib

from azure.core import MatchConditions
from azure.core.exceptions import HttpResponseError, ResourceExistsError, ResourceNotFoundError
from azure.data.tables import TableServiceClient, TableTransactionError, UpdateMode
from azure.storage.blob import BlobLeaseClient, BlobServiceClient
from azure.storage.queue import QueueServiceClient

ACTIVITIES = ["reserve", "charge", "ship"]
# The events of an orchestration, in their order; the last activity completes it.
EVENTS = ["started", *ACTIVITIES]
PARTITIONS = 4
# The shortest lease of a blob.
LEASE_SECONDS = 15
BALANCE_SECONDS = 2
# A worker without a heartbeat for as long counts as crashed.
LIVE_SECONDS = 8
# After as long, a message that a crashed worker had received is delivered to another.
VISIBILITY_SECONDS = 10
IDLE_SECONDS = 0.05


class Hub:
    """The table, the queues and the containers of the orchestrations with a name."""

    def __init__(self, connection_string, name):
        self._tables = TableServiceClient.from_connection_string(connection_string)
        self._queues = QueueServiceClient.from_connection_string(connection_string)
        self._blobs = BlobServiceClient.from_connection_string(connection_string)
        self.history = self._tables.get_table_client(f"{name}history")
        self.workers = self._tables.get_table_client(f"{name}workers")
        self.work = self._queues.get_queue_client(f"{name}-work")
        self.control = [
            self._queues.get_queue_client(f"{name}-control-{number}")
            for number in range(PARTITIONS)
        ]
        self.leases = self._blobs.get_container_client(f"{name}-leases")
        self.results = self._blobs.get_container_client(f"{name}-results")

    def create(self):
        """Makes what is missing."""
        for table in (self.history, self.workers):
            self._tables.create_table_if_not_exists(table.table_name)
        for part in (self.work, *self.control):
            part.create_queue()
        for container in (self.leases, self.results):
            container.create_container()
        for number in range(PARTITIONS):
            self.leases.upload_blob(str(number), b"")

    def close(self):
        """Closes the connections."""
        for client in (self._tables, self._queues, self._blobs):
            client.close()

    def send_event(self, instance, event):
        """Sends an event to the partition of its orchestration."""
        partition = zlib.crc32(instance.encode()) % PARTITIONS
        self.control[partition].send_message(json.dumps([instance, event]))

    def start(self, instance):
        """Starts an orchestration; a second start of the same is ignored."""
        state = {"PartitionKey": instance, "RowKey": "state", "events": 0, "completions": 0}
        try:
            self.history.create_entity(state)
        except ResourceExistsError:
            return
        self.send_event(instance, EVENTS[0])

    def state(self, instance):
        """How many events are recorded, and how often it has completed."""
        return self.history.get_entity(instance, "state")

    def events(self, instance):
        """The names of the recorded events, in their order."""
        rows = self.history.query_entities(
            "PartitionKey eq @instance and RowKey lt 'state'", parameters={"instance": instance}
        )
        return [row["name"] for row in rows]

    def owners(self):
        """The worker that owns or last owned each partition."""
        blobs = self.leases.list_blobs(include=["metadata"])
        return [(blob.metadata or {}).get("owner") for blob in blobs]


def record(hub, instance, event):
    """Records an event once, then sends what follows from it; returns whether it is new."""
    state = hub.state(instance)
    number = EVENTS.index(event)
    is_new = state["events"] == number
    if is_new:
        is_last = event == EVENTS[-1]
        row = {"PartitionKey": instance, "RowKey": f"{number:04}", "name": event}
        state["events"] = number + 1
        state["completions"] += is_last
        update = {
            "mode": UpdateMode.REPLACE,
            "etag": state.metadata["etag"],
            "match_condition": MatchConditions.IfNotModified,
        }
        try:
            hub.history.submit_transaction([("create", row), ("update", state, update)])
        except TableTransactionError:
            # Another worker has recorded it: one that lost the lease and does not detect it yet.
            return False
    # Also for an event that is recorded already: its worker may have crashed before it sent this.
    if state["events"] == number + 1 and event != EVENTS[-1]:
        hub.work.send_message(json.dumps([instance, EVENTS[number + 1]]))
    return is_new


def run_activity(hub, instance, activity):
    """Runs an activity, which may run again after a crash, and reports its result."""
    result = json.dumps({"order": instance, "activity": activity})
    hub.results.upload_blob(f"{instance}/{activity}", result, overwrite=True)
    hub.send_event(instance, activity)


class Partitions:
    """The partitions that a worker owns: as many as each live worker should have."""

    def __init__(self, hub, worker):
        self._hub = hub
        self._worker = worker
        self._leases = {}

    def owned(self):
        """The numbers of the partitions."""
        return sorted(self._leases)

    def balance(self):
        """Renews what it owns, gives back what is too much, and acquires one partition that is free."""
        self._hub.workers.upsert_entity({"PartitionKey": "worker", "RowKey": self._worker})
        for number, lease in list(self._leases.items()):
            try:
                lease.renew()
            except HttpResponseError:
                del self._leases[number]
        share = -(-PARTITIONS // self._live_workers())
        while len(self._leases) > share:
            self._leases.popitem()[1].release()
        for number in range(PARTITIONS):
            if len(self._leases) < share and number not in self._leases:
                self._acquire(number)

    def _live_workers(self):
        now = time.time()
        rows = self._hub.workers.query_entities("PartitionKey eq 'worker'")
        return sum(now - row.metadata["timestamp"].timestamp() < LIVE_SECONDS for row in rows)

    def _acquire(self, number):
        blob = self._hub.leases.get_blob_client(str(number))
        lease = BlobLeaseClient(blob)
        try:
            lease.acquire(LEASE_SECONDS)
        except ResourceExistsError:
            return
        blob.set_blob_metadata({"owner": self._worker}, lease=lease)
        self._leases[number] = lease


def received(queue):
    """The messages of a queue, each deleted when the next one is requested."""
    for message in queue.receive_messages(
        messages_per_page=8, max_messages=8, visibility_timeout=VISIBILITY_SECONDS
    ):
        yield json.loads(message.content)
        try:
            queue.delete_message(message)
        except ResourceNotFoundError:
            # It was visible again before it was handled, and is another worker's.
            continue


def run(hub, worker):
    """Works until the process is killed; prints the partitions it owns and the events it records."""
    partitions = Partitions(hub, worker)
    owned, balanced = None, 0.0
    while True:
        if time.monotonic() - balanced >= BALANCE_SECONDS:
            partitions.balance()
            balanced = time.monotonic()
        if partitions.owned() != owned:
            owned = partitions.owned()
            print("partitions", *owned, flush=True)
        for number in owned:
            for instance, event in received(hub.control[number]):
                if record(hub, instance, event):
                    print("recorded", instance, event, flush=True)
        for instance, activity in received(hub.work):
            run_activity(hub, instance, activity)
        time.sleep(IDLE_SECONDS)


if __name__ == "__main__":
    run(Hub(sys.argv[1], sys.argv[2]), sys.argv[3])
