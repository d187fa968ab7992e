"""The program of docs/grpc.md for Python, with the commands that generate its modules."""

import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]


def block(language, text):
    """The first block of the page in a language that has a text."""
    page = (ROOT / "docs/grpc.md").read_text(encoding="utf-8")
    blocks = re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)
    return next(block for block in blocks if text in block)


def test_the_modules_are_generated_and_the_program_writes(api, stub, server, tmp_path):
    (tmp_path / "proto").symlink_to(ROOT / "proto")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    # The packages are installed already, with pinned versions.
    commands = [line for line in block("sh", "grpc_tools").splitlines() if line.startswith("python ")]
    script = "\n".join(commands).replace("python ", f"{sys.executable} ", 1)
    subprocess.run(["bash", "-c", script], cwd=tmp_path, check=True)
    stub.CreateTable(api.pb.CreateTableRequest(table=api.pb.Table(name="orders")))

    program = block("python", "TableServiceStub").replace("127.0.0.1:50051", server.grpc)
    subprocess.run([sys.executable, "-c", program], cwd=tmp_path, check=True)

    key = {"table": "orders", "partition_key": "c42", "row_key": "0002"}
    found = stub.GetEntity(api.pb.GetEntityRequest(**key)).entity
    assert found.properties["total"].int64_value == 120
    stub.DeleteTable(api.pb.DeleteTableRequest(table="orders"))
