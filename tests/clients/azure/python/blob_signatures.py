"""Shared access signatures for blobs, minted by the library."""

import datetime

from azure.storage.blob import (
    AccountSasPermissions,
    BlobSasPermissions,
    ContainerSasPermissions,
    ResourceTypes,
    generate_account_sas,
    generate_blob_sas,
    generate_container_sas,
)

from target import ACCOUNT, KEY

NOW = datetime.datetime.now(datetime.timezone.utc)
HOUR = datetime.timedelta(hours=1)


def of_blob(container, name, permission="racwd", **limits):
    """A signature for one blob, good for an hour."""
    limits.setdefault("expiry", NOW + HOUR)
    permission = BlobSasPermissions.from_string(permission)
    return generate_blob_sas(
        ACCOUNT, container, name, account_key=KEY, permission=permission, **limits
    )


def of_container(name, permission="racwdl", **limits):
    """A signature for one container, good for an hour."""
    limits.setdefault("expiry", NOW + HOUR)
    permission = ContainerSasPermissions.from_string(permission)
    return generate_container_sas(ACCOUNT, name, account_key=KEY, permission=permission, **limits)


def of_policy(container, policy, **limits):
    """A signature for one container with the limits of a stored policy."""
    return generate_container_sas(
        ACCOUNT, container, account_key=KEY, policy_id=policy, **limits
    )


def of_account(permission, resources="sco", **limits):
    """A signature of the account, good for an hour."""
    limits.setdefault("expiry", NOW + HOUR)
    types = ResourceTypes.from_string(resources)
    permission = AccountSasPermissions.from_string(permission)
    return generate_account_sas(ACCOUNT, KEY, types, permission, **limits)
