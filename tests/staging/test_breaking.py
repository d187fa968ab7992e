"""Each role is killed, paused and restarted under load: the others serve on, and no acknowledged write is lost."""

import time

import pytest

from stack import ROLES

# A failure under a fault is a finding: it is not run again.
pytestmark = pytest.mark.flaky(reruns=0)
# How long a role stays paused.
PAUSE_SECONDS = 1.5
# The stores of each role.
STORES = {"table": ("table",), "queue": ("queue",), "blob": ("blob", "log")}


def kill(stack, role):
    """Ends a role at once, as a crash would, and starts it again."""
    stack.engine("kill", role)
    stack.engine("start", role)


def pause(stack, role):
    """Stops the time of a role for a while."""
    stack.engine("pause", role)
    time.sleep(PAUSE_SECONDS)
    stack.engine("unpause", role)


def restart(stack, role):
    """Ends a role with its drain, and starts it again."""
    stack.engine("restart", role, "--time", "30")


@pytest.mark.parametrize("break_role", [kill, pause, restart])
def test_no_acknowledged_write_is_lost_while_roles_fail(stack, load, stores, break_role):
    with load.running():
        for role in ROLES:
            load.advance()
            break_role(stack, role)
            stack.until_healthy(role)
        load.advance()

    load.assert_nothing_is_lost()
    if break_role is not kill:
        assert not any(load.failed[store] for store in load.failed), load.failed


@pytest.mark.parametrize("role", STORES)
def test_the_others_serve_while_a_role_is_down(stack, load, stores, role):
    with load.running():
        stack.engine("kill", role)
        others = [store for name, store in vars(stores).items() if name not in STORES[role]]
        load.advance(*others)
        stack.engine("start", role)
        stack.until_healthy(role)
        # The gateway connects again by itself.
        load.advance(*(getattr(stores, name) for name in STORES[role]))

    load.assert_nothing_is_lost()
    assert not any(load.failed[store] for store in others), load.failed
