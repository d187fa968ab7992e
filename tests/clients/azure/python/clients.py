"""One way to call the blocking and the asyncio clients, so that each test runs against both."""

import contextlib
import inspect

import azure.data.tables
import azure.data.tables.aio
import azure.storage.queue
import azure.storage.queue.aio
from azure.core.credentials import AzureNamedKeyCredential, AzureSasCredential
from azure.core.paging import ItemPaged

from target import ACCOUNT, KEY

MOST_PAGES = 100

FLAVOURS = {
    "blocking": (azure.data.tables, azure.storage.queue),
    "asyncio": (azure.data.tables.aio, azure.storage.queue.aio),
}


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
        """The client of one table or queue, made by the client of the service."""
        kind = "get_table_client" if hasattr(self.inner, "get_table_client") else "get_queue_client"
        return Caller(getattr(self.inner, kind)(name, **options))

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
    return list(result) if isinstance(result, ItemPaged) else result


class Clients:
    """Makes clients of one form for one server, and closes them after the test."""

    def __init__(self, flavour, target, closing):
        self._tables, self._queues = FLAVOURS[flavour]
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

    def from_connection_string(self, kind, *arguments, **options):
        """A client of the class `kind` made from a connection string."""
        module = self._tables if kind.startswith("Table") else self._queues
        make = getattr(module, kind).from_connection_string
        return self.opened(make(*arguments, **options))

    def from_url(self, url, **options):
        """A client of one table or queue made from its address, with a signature in it."""
        if "/queue" in url:
            return self.opened(self._queues.QueueClient.from_queue_url(url, **options))
        return self.opened(self._tables.TableClient.from_table_url(url, **options))


def _credential(given):
    return AzureSasCredential(given) if isinstance(given, str) else given


@contextlib.asynccontextmanager
async def clients_of(flavour, target):
    """The clients of one test."""
    async with contextlib.AsyncExitStack() as closing:
        yield Clients(flavour, target, closing)
