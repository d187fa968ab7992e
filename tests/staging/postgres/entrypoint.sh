#!/bin/sh
# What the official image does with these variables: makes the database where the volume is empty, and starts it.
set -eu
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  initdb --username="$POSTGRES_USER" --pwfile="$POSTGRES_PASSWORD_FILE" --auth=scram-sha-256 --encoding=UTF8 --locale=C
  echo "CREATE DATABASE \"$POSTGRES_DB\"" | postgres --single postgres
  echo "host all all all scram-sha-256" >>"$PGDATA/pg_hba.conf"
  echo "listen_addresses = '*'" >>"$PGDATA/postgresql.conf"
fi
exec postgres
