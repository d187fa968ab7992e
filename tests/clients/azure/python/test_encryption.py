"""The clients over HTTPS, with a certificate of a CA that they are configured with; their own keys."""

import datetime
import ipaddress

import pytest
from azure.core.exceptions import HttpResponseError, ServiceRequestError
from azure.storage.blob import CustomerProvidedEncryptionKey
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.keywrap import aes_key_unwrap, aes_key_wrap

from azure_errors import rejected
from blob_signatures import of_container
from clients import clients_of
from signatures import of_account
from target import ACCOUNT, KEY


def certificate(directory, name):
    """A certificate for loopback that is self-signed, and its key, in files."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    hosts = [x509.IPAddress(ipaddress.ip_address("127.0.0.1")), x509.DNSName("localhost")]
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(hours=1))
        .not_valid_after(now + datetime.timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName(hosts), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    files = directory / f"{name}.crt", directory / f"{name}.key"
    files[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    files[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return [str(file) for file in files]


async def test_tables_and_queues_work_over_https(
    flavour, start, name, tmp_path_factory, only_trestle
):
    files = tmp_path_factory.mktemp("certificates")
    cert, key = certificate(files, "own")
    server = start(settings={"TRESTLE__TLS__CERT_FILE": cert, "TRESTLE__TLS__KEY_FILE": key})
    table_endpoint = f"https://{server.table_address}/{ACCOUNT}"
    queue_endpoint = f"https://{server.queue_address}/{ACCOUNT}"
    string = (
        f"DefaultEndpointsProtocol=https;AccountName={ACCOUNT};AccountKey={KEY};"
        f"TableEndpoint={table_endpoint};QueueEndpoint={queue_endpoint};"
    )
    trusting = {"connection_verify": cert, "retry_total": 0}
    async with clients_of(flavour, server) as clients:
        table = clients.from_connection_string("TableClient", string, name, **trusting)
        await table.create_table()
        await table.create_entity({"PartitionKey": "p", "RowKey": "r", "x": 1})
        full = {"headers": {"Accept": "application/json;odata=fullmetadata"}}
        got = await table.get_entity("p", "r", **full)
        assert got.metadata["id"] == f"{table_endpoint}/{name}(PartitionKey='p',RowKey='r')"
        await table.submit_transaction([("upsert", {"PartitionKey": "p", "RowKey": "s"})])
        queue = clients.from_connection_string("QueueClient", string, name, **trusting)
        await queue.create_queue()
        await queue.send_message("x")
        assert [message.content for message in await queue.receive_messages()] == ["x"]
        # A signature with spr=https is valid over TLS only.
        sas = of_account("r", protocol="https")
        signed = clients.table(name, sas, endpoint=table_endpoint, connection_verify=cert)
        assert len(await signed.list_entities()) == 2

        other, _ = certificate(files, "other")
        options = {"connection_verify": other, "endpoint": table_endpoint}
        with pytest.raises(ServiceRequestError):
            await clients.table(name, **options).get_entity("p", "r")
        with pytest.raises(Exception) as plain:
            await clients.table(name, endpoint=server.table).get_entity("p", "r")
        assert "x-ms-" not in str(plain.value)


async def test_blobs_work_over_https(flavour, start, name, tmp_path_factory, only_trestle):
    cert, key = certificate(tmp_path_factory.mktemp("certificates"), "own")
    server = start(settings={"TRESTLE__TLS__CERT_FILE": cert, "TRESTLE__TLS__KEY_FILE": key})
    trusting = {
        "endpoint": f"https://{server.blob_address}/{ACCOUNT}",
        "connection_verify": cert,
    }
    async with clients_of(flavour, server) as clients:
        small = {"max_single_put_size": 1000, "max_block_size": 1000}
        container = clients.container(name, **small, **trusting)
        await container.create_container()
        data = bytes(range(256)) * 20
        await container.upload_blob("a", data, max_concurrency=4)
        assert await container.read("a") == data
        copy = container.within("copy")
        await copy.start_copy_from_url(container.within("a").url)
        assert await copy.read() == data
        sas = of_container(name, "r", protocol="https")
        assert await clients.container(name, sas, **trusting).read("a") == data
        # The library sends the key of a caller over TLS only, and the server has no use for it.
        keyed = CustomerProvidedEncryptionKey("MDEyMzQ1NjcwMTIzNDU2NzAxMjM0NTY3MDEyMzQ1Njc=", "x")
        with rejected(HttpResponseError, 400, "UnsupportedHeader"):
            await copy.upload_blob(b"x", overwrite=True, cpk=keyed)
        with rejected(HttpResponseError, 400, "UnsupportedHeader"):
            await copy.download_blob(cpk=keyed)
        with rejected(HttpResponseError, 400, "UnsupportedHeader"):
            await copy.stage_block_from_url("a", copy.url, source_cpk=keyed)


class LocalKey:
    """A key that stays with the program."""

    def __init__(self):
        self._key = b"0123456789abcdef0123456789abcdef"

    def wrap_key(self, key):
        return aes_key_wrap(self._key, key)

    def unwrap_key(self, key, _algorithm):
        return aes_key_unwrap(self._key, key)

    def get_key_wrap_algorithm(self):
        return "A256KW"

    def get_kid(self):
        return "local:key"


async def test_blobs_may_be_encrypted_before_they_are_sent(clients, container, name):
    options = {
        "require_encryption": True,
        "encryption_version": "2.0",
        "key_encryption_key": LocalKey(),
    }
    sealed = clients.blob(name, "blob", **options)
    data = bytes(range(256)) * 1000
    await sealed.upload_blob(data)
    assert await sealed.read() == data
    assert await sealed.read(offset=1000, length=100) == data[1000:1100]
    assert data[:100] not in await container.read("blob")
