"""Makes `examples/workspace/`: the books of a small coffee roaster, with the odd rows that real files have.

Run it from the repository's root: `python examples/make_workspace.py`. The same files come out every time.
"""

import csv
import random
import sqlite3
from datetime import date, timedelta
from pathlib import Path

WORKSPACE = Path(__file__).parent / "workspace"
STORES = [
    (1, "Harbour", "Bremen", "Ines Krog"),
    (2, "Old Mill", "Leipzig", "Tomas Weil"),
    (3, "Station", "Kassel", "Aylin Demir"),
    (4, "Market Hall", "Erfurt", "Jonas Petri"),
]
PRODUCTS = [
    (1, "Espresso Nero", "beans", 14.5),
    (2, "Filter Light", "beans", 12.9),
    (3, "Decaf", "beans", 13.8),
    (4, "Hand Grinder", "equipment", 49.0),
    (5, "Glass Dripper", "equipment", 23.5),
    (6, "Paper Filters", "supplies", 4.2),
]
NOTES = """Meeting of 12 January, back room of the Harbour store
Present: Ines, Tomas, Aylin, Jonas (late)

- The roaster in Kassel is serviced on 3 February, no deliveries that day.
- Best store of the year (highest revenue, completed orders): gets a second espresso machine, a Lelit Bianca, in March.
- Best seller of the year among the products gets the front shelf.
- Returns: Aylin collects them in returns.csv. Some rows there have no amount, the till was down.
- Tomas asks again for a bigger sign. Postponed.
"""


def orders(rng: random.Random) -> list[tuple[int, str, int, int, int | None, float, str]]:
    """A year of orders. One store would win if its cancelled orders counted."""
    rows: list[tuple[int, str, int, int, int | None, float, str]] = []
    weights = [24, 31, 27, 18]
    day = date(2025, 1, 2)
    for number in range(1, 421):
        store = rng.choices(STORES, weights)[0][0]
        product = rng.choices(PRODUCTS, [30, 24, 9, 5, 8, 24])[0]
        quantity = rng.randint(1, 6) if product[2] != "equipment" else rng.randint(1, 2)
        status = rng.choices(["completed", "cancelled", "pending"], [90, 7, 3])[0]
        rows.append((number, day.isoformat(), store, product[0], quantity, product[3], status))
        day += timedelta(days=rng.choice([0, 1, 1, 1]))
    rows.append((421, "2025-12-29", 3, 4, 40, 49.0, "cancelled"))  # the wholesale order that fell through
    rows.append((422, "2025-12-30", 1, 6, None, 4.2, "completed"))  # the till was down
    rows.append((423, "2025-12-30", 2, 1, -2, 14.5, "completed"))  # booked back by hand
    return rows


def returns(rng: random.Random, count: int) -> list[list[str]]:
    """Returned goods as somebody typed them."""
    reasons = ["damaged", "wrong grind", "changed mind", "late"]
    rows = [
        [str(rng.randint(1, 420)), rng.choice(reasons), f"{rng.choice([4.2, 12.9, 13.8, 14.5, 23.5]):.2f}"] for _ in range(count)
    ]
    rows[7][2], rows[15][2] = "n/a", ""
    rows[21][1] = "Damaged "
    rows.insert(12, list(rows[11]))  # typed twice
    return rows


def main() -> None:
    """Writes the three files."""
    rng = random.Random(20250112)
    WORKSPACE.mkdir(exist_ok=True)
    database = WORKSPACE / "sales.db"
    database.unlink(missing_ok=True)
    with sqlite3.connect(database) as db:
        db.executescript(
            "CREATE TABLE stores (store_id INTEGER PRIMARY KEY, name TEXT, city TEXT, manager TEXT);"
            "CREATE TABLE products (product_id INTEGER PRIMARY KEY, name TEXT, category TEXT, list_price REAL);"
            "CREATE TABLE orders (order_id INTEGER PRIMARY KEY, order_date TEXT, store_id INTEGER REFERENCES stores,"
            " product_id INTEGER REFERENCES products, quantity INTEGER, unit_price REAL, status TEXT);"
        )
        db.executemany("INSERT INTO stores VALUES (?, ?, ?, ?)", STORES)
        db.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", PRODUCTS)
        db.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?, ?, ?)", orders(rng))
    db.close()
    with (WORKSPACE / "returns.csv").open("w", encoding="utf-8", newline="") as f:
        writer = csv.writer(f)
        writer.writerow(["order_id", "reason", "refund"])
        writer.writerows(returns(rng, 36))
    (WORKSPACE / "notes.txt").write_text(NOTES, encoding="utf-8")


if __name__ == "__main__":
    main()
