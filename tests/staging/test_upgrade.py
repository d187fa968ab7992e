"""A running stack is upgraded, one role after the other, as docs/staging.md describes."""

from conftest import NEXT_IMAGE
from stack import ENGINE, ROLES, run

# The gateway last: it must not send what an older role does not support.
ORDER = ("table", "queue", "blob", "gateway")


def image(stack, role):
    """The image that the container of a role was made of."""
    return run([ENGINE, "inspect", stack.container(role), "--format", "{{.Config.Image}}"]).strip()


def test_an_upgrade_of_one_role_after_the_other_fails_no_call(stack, load):
    assert sorted(ORDER) == sorted(ROLES)
    with load.running():
        load.advance()
        for role in ORDER:
            stack.up(role, TRESTLE_IMAGE=NEXT_IMAGE)
            stack.until_healthy(role)
            load.advance()

    assert [image(stack, role) for role in ORDER] == [NEXT_IMAGE] * len(ORDER)
    assert not any(load.failed[store] for store in load.failed), load.failed
    load.assert_nothing_is_lost()
