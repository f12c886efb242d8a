#!/usr/bin/env python3
"""What the carried detector does where it is used: first screens, tables beside gold, intervals, and labels that correct it.

    cargo build --release
    PARALLAX_DATA=DATA PARALLAX_PAIRS=RUN/pairs.jsonl tools/detector/in_use.py --parallax target/release/parallax --data-dir CACHE \\
        --page docs/reports/quality.md
    tools/detector/in_use.py ... screens tables          (only these parts)

Parts: `screens` (which sides the first five passages show, and how many gold confirms), `tables` (the same table from gold labels and from
the model's verdicts, and every pair of lanes), `intervals` (how often intervals from verdicts hold the gold mean; needs PARALLAX_PAIRS, what
prepare.py wrote, for the labels' questions), `labels` (prediction-powered inference, on real questions and simulated). The last two run the
ignored tests of the crate. Verdicts are kept in CACHE and in the target folder, so a second run takes seconds; another detector is judged anew.

The report goes to standard output and, with --page, between the marks `<!-- in use -->` and `<!-- /in use -->` of that page. Parts that are
not run keep what stands there. Needs numpy.
"""
import argparse
import json
import os
import re
import subprocess
import sys

import first_screens

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.join(HERE, "..", "..")
LANES = "bm25,minilm,hybrid"
PARTS = ("screens", "tables", "intervals", "labels")


def sets(data):
    """The two sets with gold: names and the options of the program."""
    own = os.path.join(data, "arguments-pro-con")
    options = {"corpus": os.path.join(own, "corpus.jsonl"), "questions": os.path.join(own, "questions.jsonl"),
               "labels": os.path.join(own, "gold.div.qrels") + ":positives"}
    return [("the sample, 24 questions", {}), ("arguments-pro-con, 79 questions", options)]


def named(options):
    return [part for name, value in options.items() for part in (f"--{name}", value)]


def run(command, env=None):
    done = subprocess.run(command, capture_output=True, text=True, env=env, cwd=ROOT)
    if done.returncode:
        sys.exit(f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done.stdout


# --- screens ---

def first_screen(a, *more):
    """The explorer's first answer at 140×40, as text."""
    return run([a.parallax, "frame", "--keys", "Should zoos be banned?<Enter>", "--size", "140x40", "--offline", "--data-dir", a.data_dir, *more])


def screens(a):
    """The first five of three lanes on the sample, and of MiniLM on arguments-pro-con. The screens themselves are printed, not put into the page."""
    print(first_screen(a), first_screen(a, "--label-source", "model"), sep="\n", flush=True)
    out = ["| set | lanes | passages | with gold | of them with one side | called both | sides shown | right | right where one side | coverage |",
           "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    for (name, options), lanes in zip(sets(a.data), (LANES, "minilm")):
        # The share of sides that gold confirms is of all passages with labels; the sample labels all.
        rows = first_screens.rows(argparse.Namespace(parallax=a.parallax, data_dir=a.data_dir, lanes=lanes, k=5, corpus=options.get("corpus"),
                                                     questions=options.get("questions"), labels=options.get("labels"),
                                                     own=os.path.join(ROOT, "sample_data/questions.jsonl")))
        f = first_screens.figures(rows)
        out.append(f"| {name} | {lanes} | {f['passages']} | {f['with_gold']} | {f['one_side']} | {f['both']} | {f['shown']} | {f['right']} | "
                   f"{f['right_of_one']} | {f['coverage']} |")
    return out


# --- tables ---

def table(a, options, source):
    command = [a.parallax, "eval", "berds", "--lanes", LANES, "--label-source", source, "--all-pairs", "--format", "json", "--offline",
               "--data-dir", a.data_dir] + named(options)
    return json.loads(run(command))


def ends(cell):
    """The interval with questions and verdicts drawn where a model judged, else that of the questions."""
    own = cell.get("doubt") or cell
    return own["low"], own["high"]


def side(cell):
    """1 or -1 where the interval of a difference excludes 0, else 0."""
    low, high = ends(cell)
    return 1 if low > 0 else -1 if high < 0 else 0


def tables(a):
    out, turned = [], []
    for name, options in sets(a.data):
        made = {source: table(a, options, source) for source in ("gold", "model")}
        values = {source: {row["lane"]: row["measures"] for row in t["rows"]} for source, t in made.items()}
        out += ["", f"**{name[0].upper()}{name[1:]}**", "",
                "| lane | MRecall@5, gold | model | Prec@5, gold | model |", "| --- | ---: | ---: | ---: | ---: |"]
        show = lambda cell: f"{cell['mean']:.3f} ({ends(cell)[0]:.2f} to {ends(cell)[1]:.2f})"
        for lane, own in values["gold"].items():
            cells = [show(values[source][lane][measure]) for measure in ("MRecall@5", "Prec@5") for source in ("gold", "model")]
            out.append(f"| {lane} | {' | '.join(cells)} |")
        pairs = {source: {row["lane"]: row["measures"]["difference"] for t in made[source]["further"] if t["suite"] == "comparison"
                          for row in t["rows"]} for source in made}
        out += ["", "| difference | gold | model | separated by |", "| --- | ---: | ---: | --- |"]
        sign = lambda cell: f"{cell['mean']:+.3f} ({ends(cell)[0]:+.2f} to {ends(cell)[1]:+.2f})"
        for what, gold in pairs["gold"].items():
            if not what.startswith(("MRecall@5", "Prec@5")):
                continue
            model = pairs["model"][what]
            by = side(gold), side(model)
            words = {(0, by[1]): "the model alone", (by[0], 0): "gold alone", (0, 0): "neither"}
            words = words.get(by, "both" if by[0] == by[1] else "**turned over**")
            turned += [what] * (by[0] * by[1] < 0)
            out.append(f"| {what} | {sign(gold)} | {sign(model)} | {words} |")
    out += ["", "No pair of lanes that gold separates is separated the other way by the model." if not turned
            else f"Turned over by the model: {'; '.join(turned)}."]
    return out


# --- the ignored tests ---

def ignored(name, target):
    """The lines that an ignored test prints, split at the bars."""
    command = ["cargo", "test", "--all-features", *target, name, "--", "--ignored", "--nocapture", "--test-threads=1"]
    # the first line that a test prints stands behind its name
    lines = (line.removeprefix(f"test {line[5:].split(' ')[0]} ... ") for line in run(command, {**os.environ, "CARGO_TERM_COLOR": "never"}).splitlines())
    return [line.split(" | ") for line in lines]


def intervals(a):
    out = ["| questions | measure | n | 90 % intervals that hold the gold mean, of 200 | mean width | widened by | hold then | mean width | needed for .90 |",
           "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    lines = ignored("how_often_intervals", ["--test", "it"])
    out += ["| " + " | ".join(row[1:]) + " |" for row in lines if row[0] == "covering"]
    out += ["", "On the development part: " + "".join(row[0] for row in lines if row[0].startswith('"bias"'))]
    return out


def labels(a):
    out = ["| questions | measure | N | labelled | corrected: hold the mean | width | labels alone: hold | width | width ratio | exact instead |",
           "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: |"]
    out += ["| " + " | ".join(row[1:]) + " |" for row in ignored("how_much_labels_narrow", ["--test", "it"]) if row[0] == "corrected"]
    out += ["", "Simulated, 10,000 runs each, 95 % intervals that hold the mean:", "", "| N | labelled | correlation | about | hold |", "| ---: | ---: | ---: | --- | ---: |"]
    pattern = re.compile(r"N (\d+) n (\d+) r (\S+) (\w+): (\S+)")
    found = [pattern.search(row[0]) for row in ignored("ten_thousand_intervals", ["--lib"])]
    about = {"These": "these questions", "Population": "their population"}
    out += [f"| {m[1]} | {m[2]} | {m[3]} | {about[m[4]]} | {m[5]} |" for m in found if m]
    return out


TITLES = {"screens": "Sides shown on first screens", "tables": "The same table from gold and from the model",
          "intervals": "Intervals from verdicts", "labels": "Labels that correct the model"}


def replace(page, part, lines):
    begin, end = f"<!-- {part} in use -->", f"<!-- /{part} in use -->"
    with open(page, encoding="utf-8") as f:
        text = f.read()
    before, rest = text.split(begin, 1)
    _, after = rest.split(end, 1)
    with open(page + ".new", "w", encoding="utf-8") as f:
        f.write(before + begin + "\n" + "\n".join(lines).strip() + "\n" + end + after)
    os.replace(page + ".new", page)


def main():
    ap = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ap.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART")
    ap.add_argument("--parallax", required=True)
    ap.add_argument("--data", default=os.environ.get("PARALLAX_DATA"))
    ap.add_argument("--data-dir", default=os.path.join(ROOT, "target", "in-use"))
    ap.add_argument("--page")
    a = ap.parse_args()
    if not a.data:
        ap.error("name the folder of data with --data or PARALLAX_DATA")
    a.parallax, a.data_dir, a.data = map(os.path.abspath, (a.parallax, a.data_dir, a.data))
    os.environ["PARALLAX_DATA"] = a.data
    for part in a.parts or PARTS:
        lines = globals()[part](a)
        print(f"\n## {TITLES[part]}\n", *lines, sep="\n", flush=True)
        if a.page:
            replace(a.page, part, lines)


if __name__ == "__main__":
    main()
