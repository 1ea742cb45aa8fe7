r"""A bank of accounts in SQLite, for `palimpsest crash`: no journal mode loses a transfer.

    palimpsest crash --setup 'mkfs.ext4 -q {dev}' --setup 'python bank.py create {mount}' \
        --run 'python bank.py run {mount}' --check 'python bank.py check {mount} {output}' --out bank

JOURNAL is delete (a rollback journal), persist, truncate or wal; SYNCHRONOUS is extra, full, normal or off. With full
and delete a cut may lose the last transaction, as SQLite documents, because SQLite does not synchronize the folder
after it deletes the journal. With normal a cut may lose the last transactions (with wal) or more, with off all.
"""

import os
import random
import sqlite3
import sys
from pathlib import Path

ACCOUNTS, TRANSACTIONS, BALANCE = 900, 20, 1000


def opened(folder: Path) -> sqlite3.Connection:
    """Opens the database; SYNCHRONOUS decides when a commit is durable."""
    database = sqlite3.connect(folder / "bank.db", isolation_level=None)
    database.execute(f"PRAGMA synchronous = {os.environ.get('SYNCHRONOUS', 'extra')}")
    return database


def choose_journal(database: sqlite3.Connection) -> None:
    """Sets the journal mode, which the database file keeps only for wal."""
    database.execute(f"PRAGMA journal_mode = {os.environ.get('JOURNAL', 'delete')}")


def create(folder: Path) -> None:
    """Creates accounts of a kilobyte each: a database of a megabyte."""
    database = opened(folder)
    choose_journal(database)
    database.execute("BEGIN")
    database.execute("CREATE TABLE account (id INTEGER PRIMARY KEY, balance INTEGER, about TEXT)")
    database.execute("CREATE TABLE transfer (id INTEGER PRIMARY KEY, source INTEGER, target INTEGER)")
    rows = ((number, BALANCE, f"{number} " * (1000 // len(f"{number} "))) for number in range(ACCOUNTS))
    database.executemany("INSERT INTO account VALUES (?, ?, ?)", rows)
    database.execute("COMMIT")
    database.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    database.close()


def run(folder: Path) -> None:
    """Transfers between accounts and prints each committed transfer."""
    rng, database = random.Random(1), opened(folder)
    choose_journal(database)
    # Few enough pages for a checkpoint of the write-ahead log during the run.
    database.execute("PRAGMA wal_autocheckpoint = 40")
    for number in range(1, TRANSACTIONS + 1):
        source, target = rng.sample(range(ACCOUNTS), 2)
        database.execute("BEGIN IMMEDIATE")
        database.execute("UPDATE account SET balance = balance - 1 WHERE id = ?", (source,))
        database.execute("UPDATE account SET balance = balance + 1 WHERE id = ?", (target,))
        database.execute("INSERT INTO transfer VALUES (?, ?, ?)", (number, source, target))
        database.execute("COMMIT")
        print("transfer", number, flush=True)
    database.close()


def check(folder: Path, said: str) -> None:
    """Checks that the database is intact, the balances add up, and every printed transfer exists.

    Raises:
        ValueError: a check failed.
    """
    database = opened(folder)
    (whole,) = database.execute("PRAGMA integrity_check").fetchone()
    if whole != "ok":
        raise ValueError(f"integrity_check: {whole.splitlines()[0]}")
    expected = [BALANCE] * ACCOUNTS
    transfers = database.execute("SELECT id, source, target FROM transfer ORDER BY id").fetchall()
    for _, source, target in transfers:
        expected[source] -= 1
        expected[target] += 1
    if [balance for (balance,) in database.execute("SELECT balance FROM account ORDER BY id")] != expected:
        raise ValueError("balances are not those after the transfers")
    if [number for number, _, _ in transfers] != list(range(1, len(transfers) + 1)):
        raise ValueError("transfers are missing between others")
    if len(transfers) < said.count("transfer"):
        raise ValueError(f"transfer {said.count('transfer')} is lost")
    database.close()


if __name__ == "__main__":
    try:
        match sys.argv[1:]:
            case ["create", folder]:
                create(Path(folder))
            case ["run", folder]:
                run(Path(folder))
            case ["check", folder, output]:
                check(Path(folder), Path(output).read_text(encoding="ascii"))
            case _:
                sys.exit("expected create FOLDER, run FOLDER, or check FOLDER OUTPUT")
    except (ValueError, sqlite3.Error) as error:
        sys.exit(f"{type(error).__name__}: {error}")
