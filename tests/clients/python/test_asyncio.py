"""The same stubs on asyncio: many calls at once, streams both ways, cancellation."""

import asyncio

import grpc

from entities import entity, keys

ENTITIES = 200


def run(server, api, scenario):
    """Runs `scenario` with an asynchronous stub and an empty table."""

    async def around():
        async with grpc.aio.insecure_channel(server.grpc) as channel:
            stub = api.rpc.TableServiceStub(channel)
            await stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name="Async")))
            try:
                await asyncio.wait_for(scenario(stub), 30)
            finally:
                await stub.DeleteTable(api.pb.DeleteTableRequest(table="Async"))

    asyncio.run(around())


def test_inserts_at_the_same_time_all_succeed_and_are_read_back(server, api):
    async def scenario(stub):
        def insert(number):
            made = entity(api, "p", f"{number:03}", n=number)
            return stub.InsertEntity(api.pb.InsertEntityRequest(table="Async", entity=made))

        written = await asyncio.gather(*(insert(number) for number in range(ENTITIES)))
        assert len({one.etag for one in written}) == ENTITIES

        page = await stub.QueryEntities(api.pb.QueryEntitiesRequest(table="Async"))
        assert keys(page.entities) == [("p", f"{number:03}") for number in range(ENTITIES)]

    run(server, api, scenario)


def test_upserts_of_one_hot_entity_all_succeed(server, api):
    async def scenario(stub):
        def merge(number):
            made = entity(api, "p", "hot", **{f"n{number}": number})
            request = api.pb.UpsertEntityRequest(
                table="Async", entity=made, mode=api.pb.WRITE_MODE_MERGE
            )
            return stub.UpsertEntity(request)

        await asyncio.gather(*(merge(number) for number in range(64)))

        request = api.pb.GetEntityRequest(table="Async", partition_key="p", row_key="hot")
        assert len((await stub.GetEntity(request)).entity.properties) == 64

    run(server, api, scenario)


def test_an_import_and_a_stream(server, api):
    async def scenario(stub):
        message = api.pb.ImportEntitiesRequest

        async def requests():
            yield message(spec=api.pb.ImportSpec(table="Async"))
            for start in range(0, ENTITIES, 50):
                rows = [entity(api, "p", f"{n:03}") for n in range(start, start + 50)]
                yield message(chunk=api.pb.ImportChunk(entities=rows))

        results = [
            one async for answer in stub.ImportEntities(requests()) for one in answer.results
        ]
        assert [one.index for one in results] == list(range(ENTITIES))
        assert not any(one.HasField("error") for one in results)

        call = stub.StreamEntities(api.pb.StreamEntitiesRequest(table="Async"))
        found = [one async for answer in call for one in answer.entities]
        assert len(found) == ENTITIES

    run(server, api, scenario)


def test_a_cancelled_stream_ends_as_cancelled(server, api):
    async def scenario(stub):
        message = api.pb.ImportEntitiesRequest

        async def silent():
            yield message(spec=api.pb.ImportSpec(table="Async"))
            yield message(chunk=api.pb.ImportChunk(entities=[entity(api, "p", "r")]))
            await asyncio.Event().wait()

        call = stub.ImportEntities(silent())
        assert (await call.read()).results[0].index == 0
        call.cancel()
        assert await call.code() == grpc.StatusCode.CANCELLED

        request = api.pb.GetEntityRequest(table="Async", partition_key="p", row_key="r")
        assert (await stub.GetEntity(request)).entity.etag

    run(server, api, scenario)
