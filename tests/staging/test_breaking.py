"""Each role is killed, paused and restarted under load: the others serve on, and no acknowledged write is lost."""

import time

import pytest

from stack import ROLES, until

# How long the load runs between two faults, and a role stays paused.
SOME_SECONDS = 1.5
# The stores of each role.
STORES = {"table": ("table",), "queue": ("queue",), "blob": ("blob", "log")}


def kill(stack, role):
    """Ends a role at once, as a crash would, and starts it again."""
    stack.engine("kill", role)
    stack.engine("start", role)


def pause(stack, role):
    """Stops the time of a role for a while."""
    stack.engine("pause", role)
    time.sleep(SOME_SECONDS)
    stack.engine("unpause", role)


def restart(stack, role):
    """Ends a role with its drain, and starts it again."""
    stack.engine("restart", role, "--time", "30")


@pytest.mark.parametrize("break_role", [kill, pause, restart])
def test_no_acknowledged_write_is_lost_while_roles_fail(stack, load, stores, break_role):
    with load.running():
        for role in ROLES:
            time.sleep(SOME_SECONDS)
            break_role(stack, role)
            stack.until_healthy(role)
        before = {store: load.progress(store) for store in load.acknowledged}
        for store, count in before.items():
            until(lambda store=store, count=count: load.progress(store) > count, "writes succeed again")

    load.assert_nothing_is_lost()
    if break_role is not kill:
        assert not any(load.failed[store] for store in load.failed), load.failed


@pytest.mark.parametrize("role", STORES)
def test_the_others_serve_while_a_role_is_down(stack, load, stores, role):
    with load.running():
        stack.engine("kill", role)
        others = [store for name, store in vars(stores).items() if name not in STORES[role]]
        before = {store: load.progress(store) for store in others}
        for store, count in before.items():
            until(lambda store=store, count=count: load.progress(store) > count + 20, "others write")
        stack.engine("start", role)
        stack.until_healthy(role)
        # The gateway connects again by itself.
        for name in STORES[role]:
            store = getattr(stores, name)
            count = load.progress(store)
            until(lambda s=store, n=count: load.progress(s) > n, f"{name} is written again")

    load.assert_nothing_is_lost()
    assert not any(load.failed[store] for store in others), load.failed
