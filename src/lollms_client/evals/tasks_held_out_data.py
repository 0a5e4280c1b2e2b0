"""The thirty tasks that nothing may be tuned on: the same kinds of work as the others, in other trades and with other turns."""

from __future__ import annotations

from functools import partial
from typing import Any

from .checks import (
    every,
    file_edited,
    file_exact,
    file_from,
    file_gone,
    file_json,
    file_lines,
    file_number,
    says,
    says_each,
    says_first,
    says_missing,
    says_none,
    says_number,
)
from .source import Source, number, numbers
from .task import Task

__all__ = ["TASKS"]

HeldOut = partial(Task, held_out=True)

# ---- one tool -----------------------------------------------------------------------------------------------------------------

EXPEDITION = """\
Day 1  Left the coast with 160 litres of fuel, wind from the east.
Day 2  Hut 1 reached at noon. 131 litres left. A ski binding broke.
Day 3  Whiteout, stayed in the hut.
Day 4  Crossed the ice fall, used the long rope twice.
Day 5  Hut 2 reached after dark. 94 litres left. Stove repaired.
Day 6  Rest day, radio contact at 18:00.
"""

SIGHTINGS = """\
date,species,count,observer
2025-04-02,osprey,1,Marsh
2025-04-02,teal,14,Marsh
2025-04-03,bittern,1,Yilmaz
2025-04-05,teal,9,Okafor
2025-04-05,,3,Okafor
2025-04-08,avocet,22,Marsh
2025-04-09,osprey,2,Yilmaz
2025-04-11,wigeon,31,Okafor
2025-04-11,bittern,1,Marsh
2025-04-14,avocet,18,Yilmaz
"""

TILL = """\
receipt,paid_by,total,void
9001,card,34.90,no
9002,cash,12.00,no
9003,card,119.00,no
9004,card,119.00,yes
9005,cash,7.50,no
9006,card,18.35,no
9007,voucher,25.00,no
9008,card,-34.90,no
"""

QUOTES = """\
supplier,city,price_per_m2
Norrtegel,Uppsala,41.50
Kattila Oy,Turku,38.20
Baltic Slate,Riga,
Dachwerk,Kiel,44.00
Rimska,Maribor,39.95
"""

PARCELS = """\
parcel,zone,late
P1,1,no
P2,2,yes
P3,1,no
P4,3,no
P5,2,yes
P6,1,yes
P7,3,no
P8,2,no
P9,1,no
P10,3,yes
P11,2,no
P12,1,yes
P13,3,no
P14,1,no
P15,2,no
P16,1,no
P17,3,yes
P18,2,no
P19,1,no
P20,2,no
"""

PATIENTS = """\
CREATE TABLE patients (id INTEGER PRIMARY KEY, initials TEXT, born TEXT, ward TEXT);
INSERT INTO patients VALUES (1, 'A.B.', '1948-11-02', 'East'), (2, 'C.D.', '1961-01-19', 'East'),
  (3, 'E.F.', '1959-12-31', 'West'), (4, 'G.H.', '1960-01-01', 'West'), (5, 'I.J.', '1932-06-14', 'East'),
  (6, 'K.L.', NULL, 'West'), (7, 'M.N.', '1985-09-09', 'East'), (8, 'O.P.', '1955-03-30', 'West'),
  (9, 'Q.R.', '1972-08-21', 'East');
"""

TICKETS = """\
CREATE TABLE tickets (id INTEGER PRIMARY KEY, technician TEXT, state TEXT, hours REAL);
INSERT INTO tickets (technician, state, hours) VALUES
  ('Zeynep', 'closed', 1.5), ('Marek', 'closed', 3), ('Zeynep', 'closed', 0.5), ('Lotte', 'open', NULL),
  ('Marek', 'open', NULL), ('Lotte', 'closed', 2), ('Zeynep', 'closed', 4), ('Hamid', 'closed', 1),
  ('Lotte', 'closed', 1), ('Hamid', 'closed', 2.5), ('Hamid', 'closed', 0.5), ('Marek', 'closed', 1),
  ('Lotte', 'open', NULL), ('Hamid', 'open', NULL), ('Zeynep', 'open', NULL);
"""

GALLERY = """\
CREATE TABLE buyers (buyer_id INTEGER PRIMARY KEY, name TEXT, city TEXT);
CREATE TABLE sales (sale_id INTEGER PRIMARY KEY, buyer_id INTEGER, work TEXT, price REAL);
INSERT INTO buyers VALUES (21, 'Ilse Vogt', 'Basel'), (22, 'Renzo Vogt', 'Basel'), (23, 'Maud Cheng', 'Lyon');
INSERT INTO sales VALUES (1, 21, 'Harbour III', 1250), (2, 23, 'Still life', 480), (3, 22, 'Blue door', 900),
  (4, 21, 'Two chairs', 675.5), (5, 23, 'Harbour I', 1100), (6, 21, 'Study of a hand', 140);
"""

ATTENDANCE = "date,group,children\n2025-01-13,Otters,11\n2025-01-13,Foxes,9\n2025-01-14,Otters,12\n"
NEW_ATTENDANCE = "2025-01-14,Foxes,8"

MIXER = """\
input: line2
master_gain: 0.8
channels:
  - name: pulpit
    gain: 0.6
  - name: organ
    gain: 0.35
  - name: lectern
    gain: 0.7
"""

ACCESS = """\
10.0.0.7 GET /index.html 200 404
10.0.0.9 GET /old/page 404 162
10.0.0.7 GET /room/404 200 811
10.0.0.3 POST /login 302 0
10.0.0.9 GET /favicon.ico 404 162
10.0.0.12 GET /map.png 200 20411
10.0.0.3 GET /missing.css 404 162
10.0.0.12 GET /robots.txt 200 44
"""

STORIES = {
    "pool/2024.txt": "Lifeguards: 6\nThe slide was closed in August.\n",
    "pool/ideas.txt": "More shade near the small basin\nA second slide\n",
    "pool/repairs.txt": "3 May, Sorensen: tiles replaced\n17 May, Adeyemi: circulation pump replaced\n2 June, Sorensen: fence\n",
    "pool/pumps.txt": "Circulation pump: 5.5 kW\nDosing pump: 0.1 kW\n",
}

FLIGHTS = """\
flight,origin,destination,day
DX101,Tromso,Oslo,Mon
DX102,Oslo,Tromso,Mon
DX207,Tromso,Alta,Wed
DX311,Bodo,Tromso,Fri
DX101,Tromso,Oslo,Thu
DX450,Oslo,Bergen,Fri
"""

DEPOTS = {
    "depot_east.csv": "item,stock\npallet,40\ncrate,112\n",
    "depot_north.csv": "item,stock\npallet,18\ncrate,75\n",
    "contacts.txt": "East: Milena\nNorth: Pascal\n",
}

HANDBOOK = """\
# Acommodation for visiting crews

Rooms are booked by the port office. Crews stay two nights at most.
Breakfast starts at 5:30, because the tide does not wait.
"""

CAMP_OLD = "tent\nstove\ngas\nrope 30 m\nfirst aid kit\nwater filter\nmap\n"


def _closed(source: Source) -> dict[str, int]:
    """Closed tickets of each technician."""
    tickets = source.table("tickets.db", "tickets")
    return {
        who: sum(t["technician"] == who and t["state"] == "closed" for t in tickets) for who in {t["technician"] for t in tickets}
    }


def _folders(source: Source) -> set[str]:
    """The folders at the top."""
    return {path.partition("/")[0] for path in source.files}


def _spent(source: Source, buyer: str) -> float:
    """What a buyer paid for all works."""
    who = next(b["buyer_id"] for b in source.table("gallery.db", "buyers") if b["name"] == buyer)
    return sum(float(sale["price"]) for sale in source.table("gallery.db", "sales") if sale["buyer_id"] == who)


ONE_TOOL = (
    HeldOut(
        id="expedition-fuel",
        prompt="According to journal.txt, how many litres of fuel were left when the team reached hut 2?",
        files={"journal.txt": EXPEDITION},
        check=says_number(
            lambda s: next(int(line.split(". ")[1].split()[0]) for line in s.lines("journal.txt") if "Hut 2" in line)
        ),
    ),
    HeldOut(
        id="birds-species",
        prompt="How many different species are named in sightings.csv?",
        files={"sightings.csv": SIGHTINGS},
        check=says_number(lambda s: len({row["species"] for row in s.rows("sightings.csv")} - {""})),
    ),
    HeldOut(
        id="till-card-total",
        prompt="Add up the totals of all receipts in till.csv that were paid by card. Void receipts (void = yes) do not count, "
        "refunds stand as negative totals and do count.",
        files={"till.csv": TILL},
        check=says_number(
            lambda s: sum(float(r["total"]) for r in s.rows("till.csv") if r["paid_by"] == "card" and r["void"] == "no"), 0.005
        ),
    ),
    HeldOut(
        id="slate-cheapest",
        prompt="Which supplier in quotes.csv has the lowest price? One has not sent a price yet. Name only that supplier.",
        files={"quotes.csv": QUOTES},
        check=says_first(
            lambda s: min(
                (row for row in s.rows("quotes.csv") if number(row["price_per_m2"]) is not None),
                key=lambda row: float(row["price_per_m2"]),
            )["supplier"],
            among=lambda s: [row["supplier"] for row in s.rows("quotes.csv")],
        ),
    ),
    HeldOut(
        id="parcels-late-share",
        prompt="What percentage of the parcels in parcels.csv was late?",
        files={"parcels.csv": PARCELS},
        check=says_number(
            lambda s: 100 * sum(row["late"] == "yes" for row in s.rows("parcels.csv")) / len(s.rows("parcels.csv"))
        ),
    ),
    HeldOut(
        id="patients-before-1960",
        prompt="How many patients in patients.db were born before 1960?",
        files={"patients.db": PATIENTS},
        check=says_number(
            lambda s: sum(bool(p["born"]) and p["born"] < "1960-01-01" for p in s.table("patients.db", "patients"))
        ),
    ),
    HeldOut(
        id="tickets-three-closed",
        prompt="In tickets.db, which technicians have closed three tickets or more? Name only them.",
        files={"tickets.db": TICKETS},
        check=says_each(lambda s: [who for who, count in _closed(s).items() if count >= 3], among=_closed),
    ),
    HeldOut(
        id="gallery-buyer-total",
        prompt="How much has Ilse Vogt paid for works altogether? The sales are in gallery.db.",
        files={"gallery.db": GALLERY},
        check=says_number(lambda s: _spent(s, "Ilse Vogt"), 0.005),
    ),
    HeldOut(
        id="attendance-add-row",
        prompt=f"Add this row at the end of attendance.csv: {NEW_ATTENDANCE}",
        files={"attendance.csv": ATTENDANCE},
        check=file_exact("attendance.csv", f"{ATTENDANCE}{NEW_ATTENDANCE}\n"),
        may_change=("attendance.csv",),
    ),
    HeldOut(
        id="mixer-organ-gain",
        prompt="The organ is too quiet. In mixer.yaml, raise the gain of the channel organ from 0.35 to 0.5. The rest "
        "stays as it is.",
        files={"mixer.yaml": MIXER},
        check=file_edited("mixer.yaml", "gain: 0.35", "gain: 0.5"),
        may_change=("mixer.yaml",),
    ),
    HeldOut(
        id="photo-selected",
        prompt="Move photos/IMG_0042.txt into the folder selected. It keeps its name.",
        files={
            "photos/IMG_0041.txt": "f/8 1/250 lighthouse\n",
            "photos/IMG_0042.txt": "f/5.6 1/500 lighthouse with gulls\n",
            "selected/IMG_0007.txt": "f/11 1/60 pier\n",
        },
        check=every(file_gone("photos/IMG_0042.txt"), file_from("selected/IMG_0042.txt", "photos/IMG_0042.txt")),
        may_change=("photos/IMG_0042.txt", "selected/IMG_0042.txt"),
    ),
    HeldOut(
        id="drafts-delete-two",
        prompt="Delete the files speech_v1.txt and speech_v2.txt in the folder drafts. speech_final.txt is still needed.",
        files={
            "drafts/speech_v1.txt": "Dear all\n",
            "drafts/speech_v2.txt": "Dear friends of the canal\n",
            "drafts/speech_final.txt": "Dear friends of the old canal\n",
        },
        check=file_gone("drafts/speech_v1.txt", "drafts/speech_v2.txt"),
        may_change=("drafts/speech_v1.txt", "drafts/speech_v2.txt"),
    ),
    HeldOut(
        id="log-status-404",
        prompt="Each line of access.log is: address, method, path, status, bytes. How many requests got the status 404?",
        files={"access.log": ACCESS},
        check=says_number(lambda s: sum(line.split()[3] == "404" for line in s.lines("access.log"))),
    ),
    HeldOut(
        id="folders-fullest",
        prompt="Which of the three folders holds the most files? Name only that folder.",
        files={
            **{f"violins/no{n}.txt": f"Violin {n}, varnished\n" for n in (1, 2, 4)},
            **{f"cellos/no{n}.txt": f"Cello {n}, spruce\n" for n in (1, 2, 3, 5, 6)},
            **{f"harps/no{n}.txt": f"Harp {n}, {'47 strings ' * 9}\n" for n in (1, 2, 3, 4)},
        },
        check=says_first(
            lambda s: max(_folders(s), key=lambda folder: sum(path.startswith(f"{folder}/") for path in s.files)),
            among=_folders,
        ),
    ),
    HeldOut(
        id="pool-pump-who",
        prompt="Somewhere in these files it says who replaced the circulation pump. Who was it? Answer with the name only.",
        files=STORIES,
        check=says_first("Adeyemi", among=("Adeyemi", "Sorensen")),
    ),
    HeldOut(
        id="flights-no-friday",
        prompt="Which flights in flights.csv leave from Tromso on Fri? If there is none, say that.",
        files={"flights.csv": FLIGHTS},
        check=says_none(among=lambda s: {row["flight"] for row in s.rows("flights.csv")}),
    ),
    HeldOut(
        id="depot-missing",
        prompt="Set the stock of pallet to 25 in depot_west.csv. If that cannot be done, tell me why and "
        "leave everything as it is.",
        files=DEPOTS,
        check=says_missing(),
    ),
    HeldOut(
        id="handbook-tell-only",
        prompt="The title of handbook.md has a spelling mistake. Tell me which word is wrong and how it is spelled correctly. "
        "Another person edits the file.",
        files={"handbook.md": HANDBOOK},
        check=says("Accommodation"),
    ),
)

# ---- two tools ----------------------------------------------------------------------------------------------------------------

ABSENT = "Back from holiday: Ewa\nOn holiday this week: Sanne\nIn training: nobody\n"
SHIFTS = """\
CREATE TABLE shifts (id INTEGER PRIMARY KEY, nurse TEXT, day TEXT, hours INTEGER);
INSERT INTO shifts (nurse, day, hours) VALUES ('Sanne', 'Mon', 8), ('Ewa', 'Mon', 8), ('Bram', 'Tue', 10), ('Sanne', 'Wed', 8),
  ('Ewa', 'Wed', 6), ('Sanne', 'Fri', 12), ('Bram', 'Fri', 10);
"""

WELLS = """\
CREATE TABLE wells (code TEXT, depth_m REAL, village TEXT, dry INTEGER);
INSERT INTO wells VALUES ('W7', 38, 'Tamba', 0), ('W3', 61.5, 'Koro', 1), ('W9', 22, 'Koro', 0), ('W1', 47, 'Selinko', 1),
  ('W5', 55, 'Tamba', 0), ('W4', 19, 'Koro', 1);
"""

HARVEST = """\
plot,crop,kg
1,beans,14
2,carrots,33
3,beans,9
4,leeks,21
5,carrots,18
6,beans,
7,leeks,5
"""

PLAQUE = "title: The Weaver\nartist: Noa Berg\nyear: 1911\nroom: 4\n"

CHECKLIST = "Before take-off\n[ ] fuel valve open\n[ ] burner test, 3 seconds\n[ ] altimeter set\n[ ] landing rope stowed\n"

LETTERS = {
    "letters/aas.txt": "Dear Ms Aas,\nyour lease begins on 1 April 2025.\n",
    "letters/boudreau.txt": "Dear Mr Boudreau,\nyour lease begins on 1 April 2052.\n",
    "letters/cho.txt": "Dear Ms Cho,\nyour lease begins on 1 May 2025.\n",
}

RECEIVED = {
    "scan_a.txt": "Invoice 5488\nFeed oats, 12 bags\n",
    "scan_b.txt": "Delivery note 5521\nHay, 40 bales\n",
    "scan_c.txt": "Invoice 5521\nHay, 40 bales: 320.00\n",
}

STAFF = """\
CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, desk TEXT, extension INTEGER);
CREATE TABLE teams (team TEXT, lead_id INTEGER);
INSERT INTO staff VALUES (1, 'Nora Falk', 'B2', 411), (2, 'Omar Diop', 'B3', 415), (3, 'Greta Lind', 'A1', 402);
INSERT INTO teams VALUES ('maps', 1), ('surveys', 3);
"""


def _by_crop(source: Source) -> list[str]:
    """One line a crop, in alphabetical order."""
    rows = source.rows("harvest.csv")
    return [
        f"{crop}: {sum(numbers([r for r in rows if r['crop'] == crop], 'kg')):g}" for crop in sorted({r["crop"] for r in rows})
    ]


def _pairs(source: Source, path: str) -> dict[str, Any]:
    """The lines `key: value` of a text file."""
    return dict(line.split(": ", 1) for line in source.lines(path))


def _hours_to_cover(source: Source) -> int:
    """Hours of the nurse on holiday."""
    away = next(line.partition(": ")[2] for line in source.lines("absent.txt") if line.startswith("On holiday"))
    return sum(int(shift["hours"]) for shift in source.table("shifts.db", "shifts") if shift["nurse"] == away)


TWO_TOOLS = (
    HeldOut(
        id="shifts-to-cover",
        prompt="absent.txt says which nurse is on holiday this week. How many hours of this nurse's shifts in shifts.db must "
        "others take over?",
        files={"absent.txt": ABSENT, "shifts.db": SHIFTS},
        check=says_number(_hours_to_cover),
        tools=2,
    ),
    HeldOut(
        id="wells-dry-list",
        prompt="Write the codes of all dry wells in wells.db (dry = 1) into dry.txt, in alphabetical order, one a "
        "line, nothing else.",
        files={"wells.db": WELLS},
        check=file_lines("dry.txt", lambda s: sorted(well["code"] for well in s.table("wells.db", "wells") if well["dry"])),
        may_change=("dry.txt",),
        tools=2,
    ),
    HeldOut(
        id="harvest-by-crop",
        prompt="Add up the kg of each crop in harvest.csv. Write one line for each crop into harvest.txt, in alphabetical order, "
        "of this form: CROP: TOTAL",
        files={"harvest.csv": HARVEST},
        check=file_lines("harvest.txt", _by_crop),
        may_change=("harvest.txt",),
        tools=2,
    ),
    HeldOut(
        id="plaque-to-json",
        prompt="Turn plaque.txt into plaque.json: one JSON object with the same keys, all values as strings.",
        files={"plaque.txt": PLAQUE},
        check=file_json("plaque.json", lambda s: _pairs(s, "plaque.txt")),
        may_change=("plaque.json",),
        tools=2,
    ),
    HeldOut(
        id="checklist-backup",
        prompt="Put a copy of checklist.md into the folder backup, with the same name and the same text. Keep the original.",
        files={"checklist.md": CHECKLIST, "backup/readme.txt": "Copies only\n"},
        check=file_from("backup/checklist.md", "checklist.md"),
        may_change=("backup/checklist.md",),
        tools=2,
    ),
    HeldOut(
        id="letters-wrong-year",
        prompt="All leases begin in 2025, but one letter in the folder letters has another year. Correct the year "
        "in that letter.",
        files=LETTERS,
        check=file_edited("letters/boudreau.txt", "2052", "2025"),
        may_change=("letters/boudreau.txt",),
        tools=2,
    ),
    HeldOut(
        id="invoice-by-content",
        prompt="One of the scans is Invoice 5521. Find out which, and rename that file to invoice_5521.txt.",
        files=RECEIVED,
        check=every(file_gone("scan_c.txt"), file_from("invoice_5521.txt", "scan_c.txt")),
        may_change=("scan_c.txt", "invoice_5521.txt"),
        tools=2,
    ),
    HeldOut(
        id="camp-removed",
        prompt="Compare packing_2024.txt with packing_2025.txt. Write the one item that was on the list in 2024 and no longer is "
        "into removed.txt, and nothing else.",
        files={
            "packing_2024.txt": CAMP_OLD,
            "packing_2025.txt": CAMP_OLD.replace("rope 30 m\n", "").replace("map\n", "map\nradio\n"),
        },
        check=file_lines("removed.txt", lambda s: sorted({*s.lines("packing_2024.txt")} - {*s.lines("packing_2025.txt")})),
        may_change=("removed.txt",),
        tools=2,
    ),
)

# ---- three tools --------------------------------------------------------------------------------------------------------------

GRANT = "Rule: a club gets 15 euros for each member under 18.\nClubs must apply by the end of May.\n"
CLUBS = """\
CREATE TABLE members (id INTEGER PRIMARY KEY, name TEXT, age INTEGER);
INSERT INTO members (name, age) VALUES ('Aiko', 12), ('Bjorn', 34), ('Cleo', 17), ('Dov', 18), ('Esra', 9), ('Finn', NULL),
  ('Gil', 15), ('Hedda', 51);
"""

RUNS = "run,temperature_c,yield_pct\nrun_04,180,71.5\nrun_05,185,74.0\nrun_06,190,n/a\nrun_07,195,48.5\nrun_08,200,69.0\n"

VIP = "Guests of honour\nYusuf Kaya\nHanne Vik\n"
SEATS = """\
CREATE TABLE seats (seat TEXT, guest TEXT, menu TEXT);
INSERT INTO seats VALUES ('A1', 'Lena Roth', 'fish'), ('A2', 'Hanne Vik', 'vegan'), ('B1', 'Pim Jansen', 'meat'),
  ('B2', 'Yusuf Kaya', 'fish'), ('B3', NULL, NULL);
"""

SITES = {
    "sites/dyke.txt": "Site: dyke\nStatus: inspected\nCracks: 0\n",
    "sites/lock.txt": "Site: lock\nStatus: blocked\nCracks: 2\n",
    "sites/weir.txt": "Site: weir\nStatus: inspected\nCracks: 1\n",
    "done/culvert.txt": "Site: culvert\nStatus: inspected\nCracks: 0\n",
    "diary.txt": "Mon: culvert finished\n",
}


def _grant(source: Source) -> int:
    """Fifteen euros for each member under 18; an age that is not known counts nothing."""
    return 15 * sum(m["age"] is not None and int(m["age"]) < 18 for m in source.table("club.db", "members"))


def _vip_seats(source: Source) -> dict[str, str]:
    """Seat of each guest of honour."""
    honoured = source.lines("vip.txt")[1:]
    return {row["guest"]: row["seat"] for row in source.table("seats.db", "seats") if row["guest"] in honoured}


def _worst_run(source: Source) -> str:
    """The run with the lowest yield that was measured."""
    measured = [row for row in source.rows("yields.csv") if number(row["yield_pct"]) is not None]
    return min(measured, key=lambda row: float(row["yield_pct"]))["run"]


THREE_TOOLS = (
    HeldOut(
        id="club-grant",
        prompt="grant.txt says how much money a club gets, club.db has our members. Work out how much our club gets and write it "
        "into grant_total.txt, only the number.",
        files={"grant.txt": GRANT, "club.db": CLUBS},
        check=file_number("grant_total.txt", _grant),
        may_change=("grant_total.txt",),
        tools=3,
    ),
    HeldOut(
        id="worst-run-removed",
        prompt="Find the run with the lowest yield_pct in yields.csv (n/a was not measured). Delete its file in the folder runs, "
        "and add one line at the end of lab.log: removed RUN",
        files={
            "yields.csv": RUNS,
            **{f"runs/run_{n:02}.txt": f"run {n}, stirred for {20 + n} min\n" for n in (4, 5, 6, 7, 8)},
            "lab.log": "run 8 finished\n",
        },
        check=every(file_gone("runs/run_07.txt"), file_exact("lab.log", lambda s: f"{s.text('lab.log')}removed {_worst_run(s)}")),
        may_change=("runs/run_07.txt", "lab.log"),
        tools=3,
    ),
    HeldOut(
        id="vip-seats-json",
        prompt="vip.txt names our guests of honour, seats.db says who sits where. Write vip.json: one JSON object with the name "
        "of each guest of honour as key and the seat as value.",
        files={"vip.txt": VIP, "seats.db": SEATS},
        check=file_json("vip.json", _vip_seats),
        may_change=("vip.json",),
        tools=3,
    ),
    HeldOut(
        id="blocked-site-done",
        prompt="One site in the folder sites is blocked. It is free again: set its status from blocked to inspected, then move "
        "its file into the folder done under the same name.",
        files=SITES,
        check=every(
            file_gone("sites/lock.txt"),
            file_exact("done/lock.txt", lambda s: s.text("sites/lock.txt").replace("blocked", "inspected")),
        ),
        may_change=("sites/lock.txt", "done/lock.txt"),
        tools=3,
    ),
)

TASKS: tuple[Task, ...] = (*ONE_TOOL, *TWO_TOOLS, *THREE_TOOLS)
"""In order of the tools they need."""
