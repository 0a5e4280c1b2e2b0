"""The thirty tasks that prompts, schemas and remedies may be tuned on. What is right is computed from the data in each check."""

from __future__ import annotations

from .checks import (
    every,
    file_edited,
    file_exact,
    file_from,
    file_gone,
    file_lines,
    file_number,
    says,
    says_each,
    says_first,
    says_missing,
    says_none,
    says_number,
)
from .source import Source, number
from .task import Task

__all__ = ["TASKS"]

# ---- one tool -----------------------------------------------------------------------------------------------------------------

CLINIC = """\
Willow Road Veterinary Clinic

Opening hours
  Monday to Friday 8:00 - 18:30
  Saturday 9:00 - 13:00

On call outside opening hours
  Weeknights: Dr. Osei
  Saturday afternoon: Dr. Brandt
  Sunday: Dr. Haddad

Please do not bring reptiles without calling first.
"""

REPAIRS = """\
ticket,bike,job,status
301,Gazelle,brake pads,done
302,Trek,new chain,waiting
303,Batavus,spoke,done
304,Koga,gear cable,waiting
305,Giant,puncture,cancelled
306,Sparta,battery check,waiting
307,Trek,bearings,
308,Cube,wheel truing,in work
309,Gazelle,saddle,done
310,Cortina,dynamo,waiting
311,Kalkhoff,brake cable,waiting
312,Union,light,in work
"""

DONATIONS = """\
date,donor,amount,note
2025-02-03,A. Moreau,40.00,
2025-02-05,Kern Bakery,250.00,
2025-02-05,,15.50,cash box
2025-02-09,Test Donor,999.00,test
2025-02-11,L. Iversen,60.00,
2025-02-14,school class 4b,83.25,
2025-02-20,A. Moreau,40.00,
2025-02-27,,22.75,cash box
"""

RAIN = """\
station,altitude_m,rain_mm
Alm,1180,41.2
Brunnen,460,18.9
Col,2040,n/a
Dorf,510,22.4
Eggli,1510,57.8
Furka,1960,49.1
Grund,700,n/a
Halde,980,36.0
"""

LIBRARY = """\
CREATE TABLE loans (id INTEGER PRIMARY KEY, title TEXT, member TEXT, due TEXT, returned TEXT);
INSERT INTO loans VALUES
  (1, 'Dune', 'Farah', '2025-03-01', '2025-02-27'),
  (2, 'Emma', 'Jonas', '2025-03-02', NULL),
  (3, 'Solaris', 'Farah', '2025-03-04', NULL),
  (4, 'Kim', 'Wanda', '2025-03-04', '2025-03-09'),
  (5, 'Momo', 'Teo', '2025-03-05', NULL),
  (6, 'Ulysses', 'Jonas', '2025-03-07', '2025-03-01'),
  (7, 'Beloved', 'Priya', '2025-03-10', NULL),
  (8, 'Persuasion', 'Wanda', '2025-03-11', NULL),
  (9, 'Nada', 'Teo', '2025-03-12', '2025-03-12'),
  (10, 'Hunger', 'Priya', '2025-03-15', NULL),
  (11, 'Stoner', 'Ravi', '2025-03-15', NULL);
"""

FERRY = """\
CREATE TABLE trips (id INTEGER PRIMARY KEY, route TEXT, day TEXT, passengers INTEGER, cancelled INTEGER);
INSERT INTO trips VALUES
  (1, 'Harbour-Fjord', '2025-06-01', 112, 0),
  (2, 'Island Loop', '2025-06-01', 98, 0),
  (3, 'Night Crossing', '2025-06-01', 240, 1),
  (4, 'Harbour-Fjord', '2025-06-02', 87, 0),
  (5, 'Island Loop', '2025-06-02', 131, 0),
  (6, 'Night Crossing', '2025-06-02', 75, 0),
  (7, 'Harbour-Fjord', '2025-06-03', 64, 0),
  (8, 'Island Loop', '2025-06-03', 77, 0),
  (9, 'Night Crossing', '2025-06-03', 90, 0),
  (10, 'Island Loop', '2025-06-04', NULL, 1);
"""

CHOIR = """\
CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT, voice TEXT);
CREATE TABLE fees (member_id INTEGER, year INTEGER, amount REAL);
INSERT INTO members VALUES (1, 'Bettina', 'alto'), (2, 'Corin', 'bass'), (3, 'Dilara', 'soprano'),
  (4, 'Edgar', 'tenor'), (5, 'Fenna', 'alto'), (6, 'Goran', 'bass');
INSERT INTO fees VALUES (1, 2023, 60), (2, 2023, 60), (3, 2023, 60), (4, 2023, 60), (5, 2023, 60),
  (1, 2024, 65), (3, 2024, 65), (6, 2024, 65), (5, 2024, 65);
"""

OBSERVING = """\
2024-05-10 cloudy, dome closed
2024-05-11 clear, seeing 1.8
2024-05-12 clear, seeing 2.4
2024-05-13 fog after midnight
"""
CLEAR_NIGHT = "2024-05-14 clear, seeing 2.1"

GREENHOUSE = """\
# greenhouse controller
[tomatoes]
day_temp = 24
night_temp = 14
watering = 06:30

[orchids]
day_temp = 22
night_temp = 17
watering = 07:15
"""

SUBSCRIBERS = """\
anke@example.org
boris@example.org
chiara@example.net
dmitri@example.org
elin@example.com
farid@example.org
greta@example.net
hugo@example.org
irina@example.com
joris@example.org
katya@example.net
lars@example.org
mina@example.com
"""

VALVES = {
    "maintenance/2023.txt": "Jan: boiler swept\nApr: valve V-204 replaced\nSep: pump P-11 greased\n",
    "maintenance/2024.txt": "Feb: boiler swept\nMay: valve V-381 tightened\nNov: filter F-2 washed\n",
    "maintenance/2025.txt": "Jan: boiler swept\nMar: valve V-318 replaced, two bolts missing\n",
    "maintenance/plan.txt": "Next: check the valves in the east wing, order filters\n",
    "readme.txt": "One file a year. Write the month first.\n",
}

GUEST_HOUSE = """\
House rules
- Breakfast from 7:30 to 10:00 in the conservatory.
- The front door is locked at 23:00; the code is on your key ring.
- Bicycles go in the shed, not in the hall.
- Checkout is at 11:00. Late checkout until 14:00 costs 20 euros.
- The sauna can be booked at the desk, 12 euros an hour.
"""

BUDGETS = {
    "budget_2022.csv": "item,amount\nrent,14400\npower,2310\ninsurance,890\n",
    "budget_2024.csv": "item,amount\nrent,15600\npower,2985\ninsurance,940\n",
    "notes.txt": "The budgets are approved in November.\n",
}

FLYER = """\
Spring Fair at the Old Mill
Saturday 12 to 18 h
Cider, bread from the stone oven, sheep shearing at 15 h
Entry free, children under 12 with an adult
"""

BUSES = """\
Line 3 07:10 Station
Line 5 07:25 Hospital
Line 8 07:40 Quarry
Line 12 07:55 Campus
Line 14 08:05 Airport
"""

SENSORS = """\
CREATE TABLE sensors (id INTEGER PRIMARY KEY, room TEXT);
CREATE TABLE readings (sensor_id INTEGER, at TEXT, celsius REAL);
INSERT INTO sensors VALUES (1, 'kiln'), (2, 'drying room'), (3, 'store'), (4, 'office');
INSERT INTO readings VALUES (1, '08:00', 64.5), (1, '12:00', 71.0), (2, '08:00', 38.2), (2, '12:00', 41.9),
  (3, '08:00', 17.5), (3, '12:00', 18.0), (4, '08:00', 20.1), (4, '12:00', NULL);
"""


def _passengers(source: Source) -> dict[str, int]:
    """Passengers of each route, cancelled trips left out."""
    total: dict[str, int] = {}
    for trip in source.table("ferry.db", "trips"):
        if not trip["cancelled"]:
            total[trip["route"]] = total.get(trip["route"], 0) + trip["passengers"]
    return total


def _paid(source: Source, year: int) -> set[int]:
    """Members who paid for a year."""
    return {fee["member_id"] for fee in source.table("choir.db", "fees") if fee["year"] == year}


ONE_TOOL = (
    Task(
        id="clinic-sunday",
        prompt="Which vet is on call on Sundays? It stands in clinic.txt. Answer with the name only.",
        files={"clinic.txt": CLINIC},
        check=says_first("Haddad", among=("Haddad", "Brandt", "Osei")),
    ),
    Task(
        id="repairs-waiting",
        prompt="How many repairs in repairs.csv have the status waiting?",
        files={"repairs.csv": REPAIRS},
        check=says_number(lambda s: sum(row["status"] == "waiting" for row in s.rows("repairs.csv"))),
    ),
    Task(
        id="donations-sum",
        prompt="What is the total amount of the donations in donations.csv? Leave out the row whose note is test.",
        files={"donations.csv": DONATIONS},
        check=says_number(lambda s: sum(float(r["amount"]) for r in s.rows("donations.csv") if r["note"] != "test"), 0.005),
    ),
    Task(
        id="rain-most",
        prompt="Which station in rain.csv measured the most rain? Some stations sent no reading. Answer with the station's name.",
        files={"rain.csv": RAIN},
        check=says_first(
            lambda s: max(s.rows("rain.csv"), key=lambda row: number(row["rain_mm"]) or 0)["station"],
            among=lambda s: [row["station"] for row in s.rows("rain.csv")],
        ),
    ),
    Task(
        id="library-open-loans",
        prompt="How many loans in library.db have not been returned yet?",
        files={"library.db": LIBRARY},
        check=says_number(lambda s: sum(loan["returned"] is None for loan in s.table("library.db", "loans"))),
    ),
    Task(
        id="ferry-busiest",
        prompt="ferry.db lists ferry trips. Which route carried the most passengers in total? Cancelled trips (cancelled = 1) "
        "do not count. Name only that route.",
        files={"ferry.db": FERRY},
        check=says_first(
            lambda s: max(_passengers(s).items(), key=lambda item: item[1])[0],
            among=_passengers,
        ),
    ),
    Task(
        id="choir-unpaid",
        prompt="In choir.db, which members have not paid a fee for 2024? Name only those members.",
        files={"choir.db": CHOIR},
        check=says_each(
            lambda s: [m["name"] for m in s.table("choir.db", "members") if m["id"] not in _paid(s, 2024)],
            among=lambda s: [m["name"] for m in s.table("choir.db", "members")],
        ),
    ),
    Task(
        id="observatory-append",
        prompt=f"Add this line at the end of logbook.txt: {CLEAR_NIGHT}",
        files={"logbook.txt": OBSERVING},
        check=file_exact("logbook.txt", f"{OBSERVING}{CLEAR_NIGHT}\n"),
        may_change=("logbook.txt",),
    ),
    Task(
        id="greenhouse-night",
        prompt="In greenhouse.ini, set night_temp of the tomatoes from 14 to 12. Change nothing else.",
        files={"greenhouse.ini": GREENHOUSE},
        check=file_edited("greenhouse.ini", "night_temp = 14", "night_temp = 12"),
        may_change=("greenhouse.ini",),
    ),
    Task(
        id="program-rename",
        prompt="Rename draft_program.txt to program_2025.txt.",
        files={
            "draft_program.txt": "1. Overture\n2. Two songs\n3. Interval\n4. Symphony\n",
            "seats.txt": "Rows A to M, 14 seats each\n",
        },
        check=every(
            file_gone("draft_program.txt"),
            file_from("program_2025.txt", "draft_program.txt"),
        ),
        may_change=("draft_program.txt", "program_2025.txt"),
    ),
    Task(
        id="roster-delete",
        prompt="Please delete the file roster_old.csv. The other files stay.",
        files={
            "roster.csv": "day,nurse\nMon,Ilka\nTue,Sven\n",
            "roster_old.csv": "day,nurse\nMon,Sven\nTue,Ilka\n",
            "roster_june.csv": "day,nurse\nMon,Tess\nTue,Tess\n",
        },
        check=file_gone("roster_old.csv"),
        may_change=("roster_old.csv",),
    ),
    Task(
        id="subscribers-count",
        prompt="subscribers.txt holds one e-mail address a line. How many addresses are in it?",
        files={"subscribers.txt": SUBSCRIBERS},
        check=says_number(lambda s: len(s.lines("subscribers.txt"))),
    ),
    Task(
        id="scans-count",
        prompt="How many .tif files are in the folder scans?",
        files={
            **{f"scans/page_{n:02}.tif": b"II*\x00" + bytes([n]) for n in (1, 2, 3, 5, 6, 8, 9)},
            "scans/page_04.jpg": b"\xff\xd8\xff\x01",
            "scans/page_07.jpg": b"\xff\xd8\xff\x02",
            "scans/readme.txt": "The grey pages were scanned again, at a higher resolution.\n",
            "cover.tif": b"II*\x00cover",
        },
        check=says_number(lambda s: sum(path.startswith("scans/") and path.endswith(".tif") for path in s.files)),
    ),
    Task(
        id="valve-which-file",
        prompt="Which file mentions valve V-318? Answer with the file's path.",
        files=VALVES,
        check=says_first(
            lambda s: next(path.rpartition("/")[2] for path in s.files if "V-318" in s.text(path)),
            among=[path.rpartition("/")[2] for path in VALVES],
        ),
    ),
    Task(
        id="guest-house-wifi",
        prompt="What is the wifi password of the guest house according to house_rules.txt?",
        files={"house_rules.txt": GUEST_HOUSE},
        check=says_none(),
    ),
    Task(
        id="budget-missing",
        prompt="What is the total of the amounts in budget_2023.csv? If you cannot tell, say why.",
        files=BUDGETS,
        check=says_missing(
            among=lambda s: [str(sum(int(r["amount"]) for r in s.rows(p))) for p in s.files if p.endswith(".csv")]
        ),
    ),
    Task(
        id="flyer-tell-only",
        prompt="Tell me how the first line of flyer.txt would read with Autumn instead of Spring. I will change it myself later.",
        files={"flyer.txt": FLYER},
        check=says("Autumn Fair at the Old Mill"),
    ),
    Task(
        id="sensors-none-hot",
        prompt="Which rooms in sensors.db reached 90 degrees celsius or more? If it is none, say so.",
        files={"sensors.db": SENSORS},
        check=says_none(among=lambda s: [sensor["room"] for sensor in s.table("sensors.db", "sensors")]),
    ),
)


# ---- two tools ----------------------------------------------------------------------------------------------------------------

HIRE = """\
Boat hire, prices for a whole day
canoe: 31
kayak: 24
rowing boat: 42
Half days are not offered before June.
"""
BOOKINGS = """\
guest,craft,days
Ferrante,kayak,2
Weiss,canoe,1
Ferrante,canoe,3
Okoye,rowing boat,1
Ferrante,kayak,1
Weiss,kayak,4
"""

CELLARS = """\
CREATE TABLE barrels (id INTEGER PRIMARY KEY, cellar TEXT, grape TEXT, litres REAL);
INSERT INTO barrels VALUES (1, 'North', 'Riesling', 225), (2, 'South', 'Merlot', 300), (3, 'North', 'Silvaner', 187.5),
  (4, 'North', 'Riesling', 225), (5, 'South', 'Riesling', 112.5), (6, 'Tower', 'Merlot', 500), (7, 'North', 'Merlot', NULL);
"""

QUIZ = """\
team,round1,round2,points
Brainstorm,12,15,27
Quizzards,18,17,35
Les Incollables,9,20,29
Table Nine,14,,14
Know It Owls,16,17,33
The Guessers,11,8,19
"""

DOCTORS = """\
name,city,phone
Ana Lopes,Porto,220 113 908
Kofi Mensah,Accra,302 77 41 20
Signe Dahl,Bergen,55 31 02 66
Tariq Aziz,Lahore,42 3577 1100
"""

INVOICE = """\
INVOICE no. ____
Date: ____
To: ____

Tuning of one upright piano ........ 95.00
Travel ............................. 18.00

Payable within 14 days.
"""

RECIPES = {
    "recipes/scones.md": "# Scones\n- 225 g flour\n- 55 g butter\n- 150 ml milk\n",
    "recipes/crumble.md": "# Apple crumble\n- 4 apples\n- 120 g flour\n- 60 g margarine\n- 60 g sugar\n",
    "recipes/flapjack.md": "# Flapjack\n- 250 g oats\n- 125 g butter\n- 3 spoons of syrup\n",
    "shopping.txt": "oats, syrup, apples\n",
}

MINUTES = {
    "minutes_a.txt": "Allotment society, meeting of 9 January\nPresent: 11\nThe water bill was discussed.\n",
    "minutes_b.txt": "Allotment society, meeting of 6 March\nPresent: 14\nNew fence: agreed.\n",
    "minutes_c.txt": "Allotment society, meeting of 8 May\nPresent: 9\nThe bees move to plot 17.\n",
    "archive/minutes_2023.txt": "Allotment society, all of 2023\n",
}


def _ferrantes_bill(source: Source) -> int:
    """Days times the price of a day."""
    price = {craft: int(cost) for craft, mark, cost in (line.partition(": ") for line in source.lines("prices.txt")) if mark}
    return sum(price[row["craft"]] * int(row["days"]) for row in source.rows("bookings.csv") if row["guest"] == "Ferrante")


def _north(source: Source) -> float:
    """Litres in the cellar North; an empty cell counts nothing."""
    return sum(barrel["litres"] or 0 for barrel in source.table("cellars.db", "barrels") if barrel["cellar"] == "North")


TWO_TOOLS = (
    Task(
        id="boat-hire-bill",
        prompt="prices.txt has the price of each craft for a day, bookings.csv says who booked what for how many days. How much "
        "do Ferrante's bookings cost in total?",
        files={"prices.txt": HIRE, "bookings.csv": BOOKINGS},
        check=says_number(_ferrantes_bill),
        tools=2,
    ),
    Task(
        id="cellar-litres-file",
        prompt="How many litres are in the barrels of the cellar North in cellars.db? Write the total into north.txt, "
        "only the number.",
        files={"cellars.db": CELLARS},
        check=file_number("north.txt", _north),
        may_change=("north.txt",),
        tools=2,
    ),
    Task(
        id="quiz-podium",
        prompt="Write the names of the three teams with the most points in quiz.csv into podium.txt, the best first, one name "
        "a line and nothing else.",
        files={"quiz.csv": QUIZ},
        check=file_lines(
            "podium.txt", lambda s: [r["team"] for r in sorted(s.rows("quiz.csv"), key=lambda r: -int(r["points"]))[:3]]
        ),
        may_change=("podium.txt",),
        tools=2,
    ),
    Task(
        id="doctors-to-list",
        prompt="Make a file doctors.md from doctors.csv. Each row becomes one line of this form: - NAME (CITY)",
        files={"doctors.csv": DOCTORS},
        check=file_lines("doctors.md", lambda s: [f"- {row['name']} ({row['city']})" for row in s.rows("doctors.csv")]),
        may_change=("doctors.md",),
        tools=2,
    ),
    Task(
        id="invoice-copy",
        prompt="Make an exact copy of invoice_template.txt with the name invoice_0107.txt. The template stays as it is.",
        files={"invoice_template.txt": INVOICE},
        check=file_from("invoice_0107.txt", "invoice_template.txt"),
        may_change=("invoice_0107.txt",),
        tools=2,
    ),
    Task(
        id="recipes-margarine",
        prompt="One of the recipes still asks for margarine. Find it and replace margarine by butter in that file.",
        files=RECIPES,
        check=file_edited("recipes/crumble.md", "margarine", "butter"),
        may_change=("recipes/crumble.md",),
        tools=2,
    ),
    Task(
        id="minutes-archive",
        prompt="Find the minutes of the meeting in March and move that file into the folder archive. Keep the file's name.",
        files=MINUTES,
        check=every(file_gone("minutes_b.txt"), file_from("archive/minutes_b.txt", "minutes_b.txt")),
        may_change=("minutes_b.txt", "archive/minutes_b.txt"),
        tools=2,
    ),
    Task(
        id="bus-new-time",
        prompt="One line of timetable_new.txt differs from timetable_old.txt. Write the new line, as it stands in the new "
        "timetable, into changed.txt, and nothing else.",
        files={"timetable_old.txt": BUSES, "timetable_new.txt": BUSES.replace("07:40", "07:46")},
        check=file_lines("changed.txt", lambda s: sorted({*s.lines("timetable_new.txt")} - {*s.lines("timetable_old.txt")})),
        may_change=("changed.txt",),
        tools=2,
    ),
)


# ---- three tools --------------------------------------------------------------------------------------------------------------

PARTS = """\
CREATE TABLE orders (id INTEGER PRIMARY KEY, part TEXT, quantity INTEGER, status TEXT);
INSERT INTO orders VALUES (1, 'gasket', 11, 'open'), (2, 'bearing', 4, 'open'), (3, 'gasket', 30, 'shipped'),
  (4, 'belt', 2, 'open'), (5, 'bearing', 1, 'void');
"""
PRICES = "part,price\nbearing,18.50\nbelt,33.00\ngasket,2.25\nspring,0.80\n"

TOOL_RENTAL = "Late returns: the first 3 days are free. Each further day costs 6 euros.\nDamage is charged separately.\n"
LATE = "customer,item,days_late\nRuiz,drill,2\nHansen,ladder,8\nPatel,mixer,3\nKraus,saw,5\n"
CASHBOOK = "opened 1 March\nTill: 120\n"

INBOX = {
    "inbox/letter1.txt": "From: Tannery Lane School\nWe would like to visit the museum with 22 pupils.\n",
    "inbox/letter2.txt": "From: Baron Print\nYour posters are ready. Amount due: 148.60\n",
    "inbox/letter3.txt": "From: H. Lund\nI found a bronze coin near the mill. Is it old?\n",
    "inbox/letter4.txt": "From: Roofers Abel\nWe start on Monday.\n",
}

CLIENTS = {
    "clients/0412.txt": "Name: Orsolya Kiss\nCity: Szeged\nTariff: B\n",
    "clients/0587.txt": "Name: Ben Kisslinger\nCity: Graz\nTariff: A\n",
    "clients/0613.txt": "Name: Paula Szabo\nCity: Szeged\nTariff: B\n",
    "changes.log": "0587 tariff changed\n",
}


def _open_value(source: Source) -> float:
    """Quantity times price over the open orders."""
    price = {row["part"]: float(row["price"]) for row in source.rows("prices.txt")}
    return sum(int(o["quantity"]) * price[o["part"]] for o in source.table("parts.db", "orders") if o["status"] == "open")


def _late_fees(source: Source) -> int:
    """Six euros for each day after the third."""
    return sum(max(0, int(row["days_late"]) - 3) * 6 for row in source.rows("late.csv"))


THREE_TOOLS = (
    Task(
        id="parts-order-value",
        prompt="parts.db has orders, prices.txt has the price of each part. Add up quantity times price over the orders with the "
        "status open, and write the total into value.txt: only the number.",
        files={"parts.db": PARTS, "prices.txt": PRICES},
        check=file_number("value.txt", _open_value, 0.001),
        may_change=("value.txt",),
        tools=3,
    ),
    Task(
        id="rental-late-fees",
        prompt="rules.txt says what a late return costs, late.csv who was late. Add up the late fees of all customers, then add "
        "one line at the end of cashbook.txt: Late fees: TOTAL",
        files={"rules.txt": TOOL_RENTAL, "late.csv": LATE, "cashbook.txt": CASHBOOK},
        check=file_exact("cashbook.txt", lambda s: f"{CASHBOOK}Late fees: {_late_fees(s)}"),
        may_change=("cashbook.txt",),
        tools=3,
    ),
    Task(
        id="client-moves",
        prompt="Our client Orsolya Kiss has moved to Pecs. Find her file, set her city to Pecs in it, and then add this line at "
        "the end of changes.log: 0412 city changed",
        files=CLIENTS,
        check=every(
            file_edited("clients/0412.txt", "Szeged", "Pecs"),
            file_exact("changes.log", lambda s: s.text("changes.log") + "0412 city changed"),
        ),
        may_change=("clients/0412.txt", "changes.log"),
        tools=3,
    ),
    Task(
        id="inbox-bill",
        prompt="One letter in the folder inbox says what we owe. Write the amount due into amount.txt, only the number, and then "
        "delete that letter. The other letters stay.",
        files=INBOX,
        check=every(
            file_number("amount.txt", lambda s: float(s.text("inbox/letter2.txt").split()[-1]), 0.001),
            file_gone("inbox/letter2.txt"),
        ),
        may_change=("amount.txt", "inbox/letter2.txt"),
        tools=3,
    ),
)

TASKS: tuple[Task, ...] = (*ONE_TOOL, *TWO_TOOLS, *THREE_TOOLS)
"""In order of the tools they need."""
