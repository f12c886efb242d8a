"""Makes a set that brings its passages (FiD's JSON, RAMDocs' or RetrievalQA's JSONL) one that the explorer opens.

python lists.py FILE OUT     writes OUT/lists.jsonl (rank_llm's form, the passages in their order) and OUT/questions.jsonl
parallax --corpus OUT/lists.jsonl --lanes run:OUT/lists.jsonl --questions OUT/questions.jsonl --reader assets/reader
"""
import json
import os
import sys

from evaluate import questions


def main():
    path, out = sys.argv[1:]
    os.makedirs(out, exist_ok=True)
    seen = set()
    with open(os.path.join(out, "lists.jsonl"), "w", encoding="utf-8") as lists, \
            open(os.path.join(out, "questions.jsonl"), "w", encoding="utf-8") as asked:
        for i, (question, gold, passages) in enumerate(questions(path)):
            # the explorer knows a question by its words
            if question in seen or not passages:
                continue
            seen.add(question)
            docs = [{"docid": f"{i}-{j + 1}", "score": len(passages) - j, "doc": {"title": t, "contents": x}}
                    for j, (t, x) in enumerate(passages)]
            lists.write(json.dumps({"query": {"qid": str(i), "text": question}, "candidates": docs}, ensure_ascii=False) + "\n")
            asked.write(json.dumps({"id": str(i), "question": question, "answers": gold}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
