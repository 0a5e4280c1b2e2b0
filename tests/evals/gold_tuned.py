"""A right solution of each tuned task, found without the checks."""

from gold_kit import Gold, append, database, delete, diff, edit, gold, listed, move, read, search, table, write

MARCH = "Allotment society, meeting of 6 March"
INVOICE = """\
INVOICE no. ____
Date: ____
To: ____

Tuning of one upright piano ........ 95.00
Travel ............................. 18.00

Payable within 14 days.
"""

GOLD: dict[str, Gold] = {
    "clinic-sunday": gold(read("clinic.txt"), "Dr. Haddad"),
    "repairs-waiting": gold(
        table("repairs.csv", "SELECT COUNT(*) FROM data WHERE status = 'waiting'", gives=5),
        "**5** repairs are waiting.",
    ),
    "donations-sum": gold(
        table("donations.csv", "SELECT SUM(amount) FROM data WHERE note IS NULL OR note <> 'test'", gives=511.5),
        "The donations come to €511.50.",
    ),
    "rain-most": gold(
        table("rain.csv", "SELECT station FROM data WHERE typeof(rain_mm) <> 'text' ORDER BY rain_mm DESC", gives="Eggli"),
        "Eggli",
    ),
    "library-open-loans": gold(
        database("library.db", "SELECT COUNT(*) FROM loans WHERE returned IS NULL", gives=7),
        "7 loans have not been returned.",
    ),
    "ferry-busiest": gold(
        database(
            "ferry.db",
            "SELECT route FROM trips WHERE cancelled = 0 GROUP BY route ORDER BY SUM(passengers) DESC LIMIT 1",
            gives="Island Loop",
        ),
        "The busiest route was the Island Loop.",
    ),
    "choir-unpaid": gold(
        database(
            "choir.db",
            "SELECT group_concat(name) FROM members WHERE id NOT IN (SELECT member_id FROM fees WHERE year = 2024)",
            gives="Corin,Edgar",
        ),
        "Corin and Edgar",
    ),
    "observatory-append": gold(append("logbook.txt", "2024-05-14 clear, seeing 2.1"), "Added the line."),
    "greenhouse-night": gold(
        edit("greenhouse.ini", "night_temp = 14", "night_temp = 12"), "night_temp of the tomatoes is 12 now."
    ),
    "program-rename": gold(move("draft_program.txt", "program_2025.txt"), "Renamed."),
    "roster-delete": gold(delete("roster_old.csv"), "Deleted roster_old.csv."),
    "subscribers-count": gold(listed("subscribers.txt"), "There are thirteen addresses in it."),
    "scans-count": gold(listed("scans"), "There are 7 .tif files in scans."),
    "valve-which-file": gold(search("V-318"), "It is in `maintenance/2025.txt`."),
    "guest-house-wifi": gold(read("house_rules.txt"), "The house rules don't mention a wifi password."),
    "budget-missing": gold(listed(), "budget_2023.csv does not exist; there are only budget_2022.csv and budget_2024.csv."),
    "flyer-tell-only": gold(read("flyer.txt"), "It would read: “Autumn Fair at the Old Mill”"),
    "sensors-none-hot": gold(
        database("sensors.db", "SELECT MAX(celsius) FROM readings", gives=71), "None: the hottest was the kiln with 71 degrees."
    ),
    "boat-hire-bill": gold(
        read("prices.txt"),
        table("bookings.csv", "SELECT group_concat(craft || ' ' || days) FROM data WHERE guest = 'Ferrante'"),
        "Ferrante pays 165 euros in total.",
    ),
    "cellar-litres-file": gold(
        database("cellars.db", "SELECT SUM(litres) FROM barrels WHERE cellar = 'North'", gives=637.5),
        write("north.txt", "637.50\n"),
        "There are 637.5 litres.",
    ),
    "quiz-podium": gold(
        table("quiz.csv", "SELECT team FROM data ORDER BY points DESC LIMIT 3", gives="Quizzards"),
        write("podium.txt", "Quizzards\nKnow It Owls\nLes Incollables"),
        "Written to podium.txt.",
    ),
    "doctors-to-list": gold(
        read("doctors.csv"),
        write("doctors.md", "- Ana Lopes (Porto)\n- Kofi Mensah (Accra)\n- Signe Dahl (Bergen)\n- Tariq Aziz (Lahore)\n"),
        "Made doctors.md with 4 lines.",
    ),
    "invoice-copy": gold(read("invoice_template.txt"), write("invoice_0107.txt", INVOICE), "Copied."),
    "recipes-margarine": gold(
        search("margarine"),
        edit("recipes/crumble.md", "60 g margarine", "60 g butter"),
        "The crumble had margarine; it is butter now.",
    ),
    "minutes-archive": gold(search(MARCH), move("minutes_b.txt", "archive/minutes_b.txt"), "minutes_b.txt is in the archive."),
    "bus-new-time": gold(
        diff("timetable_old.txt", "timetable_new.txt"),
        write("changed.txt", "Line 8 07:46 Quarry\n"),
        "Line 8 changed.",
    ),
    "parts-order-value": gold(
        database("parts.db", "SELECT part, SUM(quantity) FROM orders WHERE status = 'open' GROUP BY part ORDER BY part"),
        read("prices.txt"),
        write("value.txt", "164.75"),
        "The open orders are worth 164.75.",
    ),
    "rental-late-fees": gold(
        read("rules.txt"),
        table("late.csv", "SELECT SUM(days_late - 3) FROM data WHERE days_late > 3", gives=7),
        append("cashbook.txt", "Late fees: 42"),
        "The late fees are 42 euros.",
    ),
    "client-moves": gold(
        search("Orsolya Kiss"),
        edit("clients/0412.txt", "City: Szeged", "City: Pecs"),
        append("changes.log", "0412 city changed"),
        "Done.",
    ),
    "inbox-bill": gold(
        search("Amount due"),
        write("amount.txt", "148.60\n"),
        delete("inbox/letter2.txt"),
        "We owe Baron Print 148.60; the letter is deleted.",
    ),
}
