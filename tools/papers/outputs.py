"""Writes the outputs of docs/reports/data again, so that a reader can compare them with what the program prints today.

    python tools/papers/outputs.py PARALLAX DATA OUT            # all of them
    python tools/papers/outputs.py PARALLAX DATA OUT dl19 tune  # some

PARALLAX is the program, DATA the folder that PARALLAX_DATA names. Run it in the repository's root. It needs no package. Small inputs
that the commands name (the first questions of a set, a task in another layout) are made in OUT/work; the commands run there.
"""

import json
import pathlib
import shlex
import subprocess
import sys

ROOT = pathlib.Path.cwd()
PROGRAM, DATA, OUT = (pathlib.Path(argument).resolve() for argument in sys.argv[1:4])
WORK = OUT / "work"
TREC = ("eval trec --corpus DATA/trec-dl19/corpus.dl19.jsonl --questions DATA/trec-dl19/queries.dl19.jsonl "
        "--qrels DATA/trec-dl19/qrels.dl19-passage.txt")
ARGUMENTS = ("--corpus DATA/arguments-pro-con/corpus.jsonl --questions DATA/arguments-pro-con/questions.jsonl "
             "--labels DATA/arguments-pro-con/gold.div.qrels")
RAMDOCS = "eval reader --questions DATA/reader/ramdocs/RAMDocs_test.jsonl --reader assets/reader -k 10"
FIRST = [
    ("1. AP without a cut-off, alone", f"{TREC} --lane bm25 --measures 'AP(rel=2)'"),
    ("1. AP beside a deeper measure", f"{TREC} --lane bm25 --measures 'AP(rel=2),R(rel=2)@1000'"),
    ("3 and 4. Which form ran, and the test against the plain lane",
     f"{TREC} --lane bm25 --lane bm25+csqe --lane bm25+rm3 --measures nDCG@10"),
    ("6. Two questions; one is right only without passages", "eval reader --questions probe/q.json --answers probe/a.jsonl -k 4"),
    ("7. A projection of PIR outside eval pir (R@5 over queries; eval pir: .5200)",
     "eval trec --corpus story/corpus.jsonl --questions story/queries.jsonl --qrels story/qrels.jsonl --lane minilm "
     "--lane minilm+pap --measures R@5"),
    ("5 and 8. Probes by size and SER on RAMDocs", RAMDOCS),
]
OUTPUTS = {
    "after": FIRST,
    "berds-dev": [("", "questions info DATA/berds-dev/berds.dev.jsonl")],
    "dl19": [("", f"{TREC} --lane bm25 --lane bm25+rm3 --lane bm25+csqe --lane bm25+csqe@sentences=10 --lane bm25+csqe@tokens=128 "
                  "--measures 'nDCG@10,AP(rel=2),R(rel=2)@1000'")],
    "extract": [("", "eval extract --questions DATA/pir-demo/demo_pir_dataset.json")],
    "fid-tiny": [("", "eval reader --questions ramdocs-20.jsonl --reader fid --analyse attention -k 5")],
    "nq-lanes": [("", "eval reader --corpus nq-passages.jsonl --questions nq-60.jsonl --lane bm25 --lane bm25@k1=1.2,b=.75 "
                      "--reader assets/reader -k 5")],
    "nq-ser": [("", "eval reader --questions nq-60.jsonl --reader assets/reader -k 1 --negatives bm25,random")],
    "pir": [("", "eval pir --questions DATA/pir-demo/demo_pir_dataset.json"),
            ("", "eval pir --questions DATA/pir-demo/demo_pir_dataset.json --lane bm25 --lane minilm")],
    "pir-arguments": [("", f"eval pir {ARGUMENTS} --lane bm25 --lane bm25@k1=1.2,b=.75")],
    "pir-encoders": [("", "eval pir --questions story.json --lane bm25 --lane path:contriever --lane path:simcse "
                          "--lane path:simcse+pap-plus -k 5")],
    "pir-story": [("", "eval pir --questions story.json")],
    "ramdocs": [("", RAMDOCS)],
    "ramdocs-60": [("", "eval reader --questions ramdocs-60.jsonl --reader assets/reader -k 10 --analyse without,orders --write read")],
    "sycophancy": [("", "eval sycophancy --label-source gold --plots plots")],
    "tune": [("", "eval berds --tune mmr=.5,.75,.9,.95,.99 --dev dev.jsonl --questions test.jsonl --label-source gold --lane bm25 "
                  "--lane minilm --lane hybrid")],
}

# What the small inputs are, printed below the command.
NOTES = {
    "fid-tiny": "ramdocs-20: the first 20 questions of RAMDocs; fid: the tiny Fusion-in-Decoder with random weights of "
                "tests/fixtures/fid/plain, so the tables show that the command runs, and nothing else",
    "nq-lanes": "nq-60: the first 60 questions of NQ-open; nq-passages: the gold passages of all its questions",
    "nq-ser": "nq-60: the first 60 questions of NQ-open, each with its gold passage",
    "pir-encoders": "contriever and simcse: the tiny encoders with random weights of tests/fixtures/encoders, so the rows show that the "
                    "commands run, and nothing else",
    "ramdocs-60": "ramdocs-60: the first 60 questions of RAMDocs",
    "tune": "dev.jsonl and test.jsonl: the first and the last ten questions of the sample",
}
AFTER = ("Output of the program after the numbers that misled were mended. DATA is the folder of data; story/ is the task of that name in PIR's\n"
         "demo file, in the hub's layout; probe/ holds two questions with recorded answers.\n")


def lines(file):
    return [line for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def write(name, rows):
    file = WORK / name
    file.parent.mkdir(parents=True, exist_ok=True)
    text = (row if isinstance(row, str) else json.dumps(row, ensure_ascii=False) for row in rows)
    file.write_text("".join(f"{row}\n" for row in text), encoding="utf-8")


def prepare():
    WORK.mkdir(parents=True, exist_ok=True)
    for name, place in (("DATA", DATA), ("assets", ROOT / "assets"), ("contriever", ROOT / "tests/fixtures/encoders/contriever"),
                        ("simcse", ROOT / "tests/fixtures/encoders/simcse"), ("fid", ROOT / "tests/fixtures/fid/plain")):
        if not (WORK / name).exists():
            (WORK / name).symlink_to(place)
    sample = lines(ROOT / "sample_data/questions.jsonl")
    write("dev.jsonl", sample[:10])
    write("test.jsonl", sample[-10:])
    ramdocs = lines(DATA / "reader/ramdocs/RAMDocs_test.jsonl")
    write("ramdocs-20.jsonl", ramdocs[:20])
    write("ramdocs-60.jsonl", ramdocs[:60])
    nq = [json.loads(line) for line in lines(DATA / "reader/nq-open-oracle/nq-open-oracle.jsonl")]
    write("nq-60.jsonl", nq[:60])
    gold = dict.fromkeys((c["title"], c["text"]) for row in nq for c in row["ctxs"])
    write("nq-passages.jsonl", ({"_id": f"nq{i}", "title": title, "text": text} for i, (title, text) in enumerate(gold)))
    # Two questions: one is read rightly from its third passage on, the other only without passages.
    passages = [{"title": "", "text": f"passage {i}"} for i in range(1, 5)]
    questions = [{"question": f"q{i}", "answers": [answer], "ctxs": passages} for i, answer in ((1, "yes"), (2, "blue"))]
    write("probe/q.json", [json.dumps(questions)])
    answers = {"q1": ["no", "no", "no", "yes", "no"], "q2": ["blue", "red", "red", "red", "red"]}
    write("probe/a.jsonl", ({"question": q, "k": k, "answer": answer} for q, read in answers.items() for k, answer in enumerate(read)))
    # PIR's task `story` alone, and in the layout of the hub.
    task = json.loads((DATA / "pir-demo/demo_pir_dataset.json").read_text(encoding="utf-8"))["story"]
    write("story.json", [{"story": task}])
    write("story/corpus.jsonl", ({"_id": f"c{i}", "title": "", "text": text} for i, text in enumerate(task["corpus"])))
    rows = zip(task["queries"], task["source_queries"], task["perspectives"])
    write("story/queries.jsonl", ({"_id": f"q{i}", "text": q, "meta": json.dumps({"src_query": r, "perspective": p})}
                                  for i, (q, r, p) in enumerate(rows)))
    write("story/qrels.jsonl", ({"query-id": f"q{i}", "corpus-id": f"c{at}", "score": 1}
                                for i, gold in task["key_ref"].items() for at in gold))


def run(command, note):
    arguments = shlex.split(command)
    done = subprocess.run([PROGRAM, *arguments, "--data-dir", WORK / "data"], cwd=WORK, capture_output=True, text=True)
    printed = done.stdout if done.returncode == 0 else f"{done.stdout}exit {done.returncode}: {done.stderr}"
    note = f"({note})\n" if note else ""
    return f"$ parallax {' '.join(arguments)}\n{note}{printed.rstrip()}\n"


if __name__ == "__main__":
    prepare()
    for name in sys.argv[4:] or OUTPUTS:
        head = [AFTER] if name == "after" else []
        parts = head + [(f"== {title}\n" if title else "") + run(command, NOTES.get(name)) for title, command in OUTPUTS[name]]
        (OUT / f"{name}.txt").write_text("\n".join(parts), encoding="utf-8")
        print(name, flush=True)
