"""Shared access signatures for tables, minted by the library."""

import datetime

from azure.core.credentials import AzureNamedKeyCredential
from azure.data.tables import (
    AccountSasPermissions,
    ResourceTypes,
    TableSasPermissions,
    generate_account_sas,
    generate_table_sas,
)

from target import ACCOUNT, KEY

CREDENTIAL = AzureNamedKeyCredential(ACCOUNT, KEY)
NOW = datetime.datetime.now(datetime.timezone.utc)
HOUR = datetime.timedelta(hours=1)
EVERYTHING = TableSasPermissions(read=True, add=True, update=True, delete=True)


def of_table(name, permission=EVERYTHING, **limits):
    """A signature for one table, good for an hour."""
    limits.setdefault("expiry", NOW + HOUR)
    return generate_table_sas(CREDENTIAL, name, permission=permission, **limits)


def of_account(permission, resources="sco", **limits):
    """A signature of the account, good for an hour."""
    limits.setdefault("expiry", NOW + HOUR)
    types = ResourceTypes.from_string(resources)
    permission = AccountSasPermissions.from_string(permission)
    return generate_account_sas(CREDENTIAL, types, permission, **limits)
