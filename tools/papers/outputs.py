"""Writes the outputs of docs/reports/data again, so that a reader can compare them with what the program prints today.

    python tools/papers/outputs.py PARALLAX DATA OUT            # all of them
    python tools/papers/outputs.py PARALLAX DATA OUT dl19 tune  # some

PARALLAX is the program, DATA the folder that PARALLAX_DATA names. Run it in the repository's root. It needs no package. Small inputs
that the commands name (the first questions of a set, a task in another layout) are made in OUT/work; the commands run there.
"""

import http.server
import json
import pathlib
import shlex
import shutil
import subprocess
import sys
import threading

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
    ("2. A second language model after a first one, in one data folder", None),
    ("2. Two language models; replies of one alone were recorded",
     "eval coverage --label-source gold --questions dev.jsonl --lane bm25 --lane bm25+csqe@llm=claude --lane bm25+csqe@llm=another"),
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
    # Two questions: one is read rightly from three passages (0010) and from the third alone, the other only without passages.
    two = [("a", "Who?", "Ann", 3), ("b", "Where?", "Paris", 0)]
    write("probe/q.json", [json.dumps([{"question": question, "answers": [gold], "ctxs": [
        {"id": f"{name}{i}", "text": f"passage {i}"} for i in range(1, 5)]} for name, question, gold, _ in two])])
    write("probe/a.jsonl", [{"question": "Who?", "k": 1, "passages": ["a3"], "answer": "Ann"}]
          + [{"question": question, "k": k, "answer": gold if k == right else "no"} for _, question, gold, right in two for k in range(5)])
    # PIR's task `story` alone, and in the layout of the hub.
    task = json.loads((DATA / "pir-demo/demo_pir_dataset.json").read_text(encoding="utf-8"))["story"]
    write("story.json", [{"story": task}])
    write("story/corpus.jsonl", ({"_id": f"c{i}", "title": "", "text": text} for i, text in enumerate(task["corpus"])))
    rows = zip(task["queries"], task["source_queries"], task["perspectives"])
    write("story/queries.jsonl", ({"_id": f"q{i}", "text": q, "meta": json.dumps({"src_query": r, "perspective": p})}
                                  for i, (q, r, p) in enumerate(rows)))
    write("story/qrels.jsonl", ({"query-id": f"q{i}", "corpus-id": f"c{at}", "score": 1}
                                for i, gold in task["key_ref"].items() for at in gold))


class Model(http.server.BaseHTTPRequestHandler):
    """Two language models of one sentence each, which count what they are asked."""

    says = {"one": "Animals suffer in small cages and zoos should be banned.", "two": "Zoos breed rare species and teach children."}
    asked = dict.fromkeys(says, 0)

    def do_POST(self):
        model = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["model"]
        self.asked[model] += 1
        reply = {"message": {"role": "assistant", "content": self.says[model]}, "finish_reason": "stop"}
        body = json.dumps({"choices": [reply], "usage": {"prompt_tokens": 9, "completion_tokens": 9}}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


def two_models():
    shutil.rmtree(WORK / "models", ignore_errors=True)
    server = http.server.HTTPServer(("127.0.0.1", 0), Model)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    printed = []
    for model in Model.says:
        command = ["search", "Should captive pandas be released?", "--lane", "bm25+keqe", "--label-source", "gold", "-k", "3", "--format", "json",
                   "--llm-model", model, "--llm"]
        address = f"http://127.0.0.1:{server.server_port}/v1"
        done = subprocess.run([PROGRAM, *command, address, "--data-dir", WORK / "models"], cwd=WORK, capture_output=True, text=True)
        lane = json.loads(done.stdout)["lanes"][0]
        texts = next(step for step in lane["steps"] if step["step"] == "expand")["added"]
        printed += [f"$ parallax {shlex.join(command)} URL", f"texts of the model {', '.join(sorted({t['source']['model'] for t in texts}))}; "
                    f"first three: {' '.join(hit['id'] for hit in lane['hits'])}; asked so far: {Model.asked}"]
    server.shutdown()
    return "\n".join(printed) + "\n"


def run(command, note):
    if command is None:
        return two_models()
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
