"""A right solution of each held-out task, found without the checks."""

from gold_kit import Gold, append, database, delete, diff, edit, gold, listed, move, read, search, table, tree, write

CHECKLIST = "Before take-off\n[ ] fuel valve open\n[ ] burner test, 3 seconds\n[ ] altimeter set\n[ ] landing rope stowed\n"

GOLD: dict[str, Gold] = {
    "expedition-fuel": gold(search("Hut 2", "journal.txt"), "94 litres were left."),
    "birds-species": gold(table("sightings.csv", "SELECT COUNT(DISTINCT species) FROM data", gives=5), "5 species are named."),
    "till-card-total": gold(
        table("till.csv", "SELECT ROUND(SUM(total), 2) FROM data WHERE paid_by = 'card' AND void = 'no'", gives=137.35),
        "Card receipts: 137.35",
    ),
    "slate-cheapest": gold(
        table(
            "quotes.csv",
            "SELECT supplier FROM data WHERE price_per_m2 IS NOT NULL ORDER BY price_per_m2 LIMIT 1",
            gives="Kattila Oy",
        ),
        "Kattila Oy",
    ),
    "parcels-late-share": gold(
        table("parcels.csv", "SELECT 100.0 * SUM(late = 'yes') / COUNT(*) FROM data", gives=30), "30 % were late."
    ),
    "patients-before-1960": gold(
        database("patients.db", "SELECT COUNT(*) FROM patients WHERE born < '1960'", gives=4), "4 patients"
    ),
    "tickets-three-closed": gold(
        database("tickets.db", "SELECT technician FROM tickets WHERE state = 'closed' GROUP BY technician HAVING COUNT(*) >= 3"),
        "Hamid and Zeynep",
    ),
    "gallery-buyer-total": gold(
        database(
            "gallery.db", "SELECT SUM(price) FROM sales JOIN buyers USING (buyer_id) WHERE name = 'Ilse Vogt'", gives=2065.5
        ),
        "She paid 2,065.50 for her works.",
    ),
    "attendance-add-row": gold(append("attendance.csv", "2025-01-14,Foxes,8"), "The row is added."),
    "mixer-organ-gain": gold(edit("mixer.yaml", "gain: 0.35", "gain: 0.5"), "The organ's gain is 0.5 now."),
    "photo-selected": gold(move("photos/IMG_0042.txt", "selected"), "Moved."),
    "drafts-delete-two": gold(delete("drafts/speech_v1.txt"), delete("drafts/speech_v2.txt"), "Deleted both."),
    "log-status-404": gold(search(" 404 ", "access.log"), "3 requests got the status 404."),
    "folders-fullest": gold(tree(), "cellos"),
    "pool-pump-who": gold(search("pump"), "Adeyemi"),
    "flights-no-friday": gold(
        table("flights.csv", "SELECT COUNT(*) FROM data WHERE origin = 'Tromso' AND day = 'Fri'"),
        "No flight leaves from Tromsø on Friday.",
    ),
    "depot-missing": gold(listed(), "I could not do that: there is no file depot_west.csv."),
    "handbook-tell-only": gold(read("handbook.md"), "“Acommodation” is wrong; it is spelled “Accommodation”."),
    "shifts-to-cover": gold(
        read("absent.txt"), database("shifts.db", "SELECT SUM(hours) FROM shifts WHERE nurse = 'Sanne'", gives=28), "28 hours"
    ),
    "wells-dry-list": gold(
        database("wells.db", "SELECT code FROM wells WHERE dry = 1 ORDER BY code", gives="W1"),
        write("dry.txt", "W1\nW3\nW4\n"),
        "Three wells are dry.",
    ),
    "harvest-by-crop": gold(
        table("harvest.csv", "SELECT SUM(kg) FROM data GROUP BY crop ORDER BY crop", gives=23),
        write("harvest.txt", "beans: 23\ncarrots: 51\nleeks: 26\n"),
        "Written.",
    ),
    "plaque-to-json": gold(
        read("plaque.txt"),
        write("plaque.json", '{"title": "The Weaver", "artist": "Noa Berg", "year": "1911", "room": "4"}'),
        "Made plaque.json.",
    ),
    "checklist-backup": gold(read("checklist.md"), write("backup/checklist.md", CHECKLIST), "Copied to backup/checklist.md."),
    "letters-wrong-year": gold(
        search("lease begins", "letters"),
        edit("letters/boudreau.txt", "2052", "2025"),
        "Corrected the letter to Mr Boudreau.",
    ),
    "invoice-by-content": gold(search("Invoice 5521"), move("scan_c.txt", "invoice_5521.txt"), "It was scan_c.txt."),
    "camp-removed": gold(
        diff("packing_2024.txt", "packing_2025.txt"), write("removed.txt", "rope 30 m"), "The rope is no longer on the list."
    ),
    "club-grant": gold(
        read("grant.txt"),
        database("club.db", "SELECT COUNT(*) FROM members WHERE age < 18", gives=4),
        write("grant_total.txt", "60\n"),
        "The club gets 60 euros.",
    ),
    "worst-run-removed": gold(
        table("yields.csv", "SELECT run FROM data WHERE yield_pct IS NOT NULL ORDER BY yield_pct", gives="run_07"),
        delete("runs/run_07.txt"),
        append("lab.log", "removed run_07"),
        "run_07 had the lowest yield and is removed.",
    ),
    "vip-seats-json": gold(
        read("vip.txt"),
        database("seats.db", "SELECT guest, seat FROM seats WHERE guest IS NOT NULL"),
        write("vip.json", '{\n  "Yusuf Kaya": "B2",\n  "Hanne Vik": "A2"\n}\n'),
        "Wrote vip.json.",
    ),
    "blocked-site-done": gold(
        search("blocked", "sites"),
        edit("sites/lock.txt", "blocked", "inspected"),
        move("sites/lock.txt", "done/lock.txt"),
        "The lock is inspected and moved.",
    ),
}
