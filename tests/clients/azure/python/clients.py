"""One way to call the blocking and the asyncio clients, so that each test runs against both."""

import contextlib
import inspect
from collections.abc import Iterator

import azure.data.tables
import azure.data.tables.aio
import azure.storage.blob
import azure.storage.blob.aio
import azure.storage.queue
import azure.storage.queue.aio
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential

from target import ACCOUNT, KEY

MOST_PAGES = 100

FLAVOURS = {
    "blocking": (azure.data.tables, azure.storage.queue, azure.storage.blob),
    "asyncio": (azure.data.tables.aio, azure.storage.queue.aio, azure.storage.blob.aio),
}

# The methods that make the client of a part: of a table, of a queue, of a container, of a blob.
PARTS = ("get_table_client", "get_queue_client", "get_container_client", "get_blob_client")
# What a client of blobs answers that has methods of its own.
CALLED = ("BlobClient", "BlobLeaseClient", "ContainerClient", "StorageStreamDownloader")


class Caller:
    """A client of either form: each method is awaited, and a paged answer becomes a list."""

    def __init__(self, inner):
        self.inner = inner

    def __getattr__(self, name):
        value = getattr(self.inner, name)
        if not callable(value):
            return value

        async def call(*arguments, **options):
            return await _collected(value(*arguments, **options))

        return call

    def within(self, name, **options):
        """The client of one table, queue or container, or of one blob of a container."""
        make = next(getattr(self.inner, part) for part in PARTS if hasattr(self.inner, part))
        return Caller(make(name, **options))

    async def read(self, *arguments, **options):
        """The content that a blob has, or a range of it."""
        return await (await self.download_blob(*arguments, **options)).readall()

    async def pages(self, name, *arguments, **options):
        """The pages of a paged method, each a list. A server that never ends gets an end."""
        paged = getattr(self.inner, name)(*arguments, **options).by_page()
        pages = []
        while len(pages) < MOST_PAGES:
            try:
                if hasattr(paged, "__anext__"):
                    pages.append([item async for item in await anext(paged)])
                else:
                    pages.append(list(next(paged)))
            except (StopIteration, StopAsyncIteration):
                return pages
        raise AssertionError("the pages have no end")

    async def page(self, name, *arguments, token=None, **options):
        """One page from a token, and the token of the next one."""
        paged = getattr(self.inner, name)(*arguments, **options).by_page(token)
        if hasattr(paged, "__aiter__"):
            async for page in paged:
                return [item async for item in page], paged.continuation_token
        for page in paged:
            return list(page), paged.continuation_token
        return [], None


async def _collected(result):
    if inspect.isawaitable(result):
        result = await result
    if hasattr(result, "__aiter__"):
        return [item async for item in result]
    if type(result).__name__ in CALLED:
        return Caller(result)
    return list(result) if isinstance(result, Iterator) else result


class Clients:
    """Makes clients of one form for one server, and closes them after the test."""

    def __init__(self, flavour, target, closing):
        self._tables, self._queues, self._blobs = FLAVOURS[flavour]
        self._target = target
        self._closing = closing

    def opened(self, client):
        """Wraps a client, which is closed after the test."""
        self._closing.push_async_callback(Caller(client).close)
        return Caller(client)

    def tables(self, credential=None, endpoint=None, **options):
        """The client of the table service; `credential` is a signature or a credential."""
        options.setdefault("retry_total", 0)
        make = self._tables.TableServiceClient
        credential = _credential(credential) or AzureNamedKeyCredential(ACCOUNT, KEY)
        endpoint = endpoint or self._target.table
        return self.opened(make(endpoint, credential=credential, **options))

    def table(self, name, credential=None, endpoint=None, **options):
        """The client of one table."""
        options.setdefault("retry_total", 0)
        make = self._tables.TableClient
        credential = _credential(credential) or AzureNamedKeyCredential(ACCOUNT, KEY)
        endpoint = endpoint or self._target.table
        return self.opened(make(endpoint, name, credential=credential, **options))

    def queues(self, credential=None, endpoint=None, **options):
        """The client of the queue service."""
        options.setdefault("retry_total", 0)
        make = self._queues.QueueServiceClient
        credential = _credential(credential) or KEY
        return self.opened(make(endpoint or self._target.queue, credential=credential, **options))

    def queue(self, name, credential=None, endpoint=None, **options):
        """The client of one queue."""
        options.setdefault("retry_total", 0)
        make = self._queues.QueueClient
        credential = _credential(credential) or KEY
        endpoint = endpoint or self._target.queue
        return self.opened(make(endpoint, name, credential=credential, **options))

    def blobs(self, credential=None, endpoint=None, **options):
        """The client of the blob service."""
        options.setdefault("retry_total", 0)
        make = self._blobs.BlobServiceClient
        credential = _credential(credential) or KEY
        return self.opened(make(endpoint or self._target.blob, credential=credential, **options))

    def container(self, name, credential=None, endpoint=None, **options):
        """The client of one container."""
        options.setdefault("retry_total", 0)
        make = self._blobs.ContainerClient
        credential = _credential(credential) or KEY
        endpoint = endpoint or self._target.blob
        return self.opened(make(endpoint, name, credential=credential, **options))

    def blob(self, container, name, credential=None, endpoint=None, **options):
        """The client of one blob."""
        options.setdefault("retry_total", 0)
        make = self._blobs.BlobClient
        credential = _credential(credential) or KEY
        endpoint = endpoint or self._target.blob
        return self.opened(make(endpoint, container, name, credential=credential, **options))

    def lease(self, client, lease_id=None):
        """The client of a lease of a container or a blob."""
        return Caller(self._blobs.BlobLeaseClient(client.inner, lease_id))

    def from_connection_string(self, kind, *arguments, **options):
        """A client of the class `kind` made from a connection string."""
        modules = (self._tables, self._queues, self._blobs)
        module = next(module for module in modules if hasattr(module, kind))
        make = getattr(module, kind).from_connection_string
        return self.opened(make(*arguments, **options))

    def from_url(self, url, **options):
        """A client of one table or queue made from its address, with a signature in it."""
        if "/queue" in url:
            return self.opened(self._queues.QueueClient.from_queue_url(url, **options))
        return self.opened(self._tables.TableClient.from_table_url(url, **options))

    def from_container_url(self, url, **options):
        """A client of one container made from its address."""
        options.setdefault("retry_total", 0)
        return self.opened(self._blobs.ContainerClient.from_container_url(url, **options))

    def from_blob_url(self, url, **options):
        """A client of one blob made from its address."""
        options.setdefault("retry_total", 0)
        return self.opened(self._blobs.BlobClient.from_blob_url(url, **options))


def _credential(given):
    return AzureSasCredential(given) if isinstance(given, str) else given


@contextlib.asynccontextmanager
async def clients_of(flavour, target):
    """The clients of one test."""
    async with contextlib.AsyncExitStack() as closing:
        yield Clients(flavour, target, closing)
