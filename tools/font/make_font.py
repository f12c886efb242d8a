#!/usr/bin/env python3
"""Cut the font that PNG frames are drawn with out of DejaVu Sans Mono.

    apt-get download fonts-dejavu-core && dpkg -x fonts-dejavu-core_2.37-*.deb dejavu
    pip install fonttools==4.68.0
    python3 tools/font/make_font.py dejavu/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf

The same source and the same fonttools give the same bytes; the hash is printed, and `--check` compares it with the
file that is already there instead of writing.
"""

import argparse
import hashlib
import io
import logging
import sys
from pathlib import Path

from fontTools import subset

SOURCE = "0f5db4f1749979d961019838b160bec74abdf7f9eca69553fe1aa856bbff49a4"
TARGET = Path(__file__).resolve().parents[2] / "assets" / "font" / "DejaVuSansMono-subset.ttf"
# Box drawing, blocks and braille are drawn as shapes and need no glyphs.
RANGES = [
    (0x0020, 0x007E), (0x00A0, 0x017F),  # Latin
    (0x0218, 0x021B), (0x02C6, 0x02DD), (0x0300, 0x0328),  # Romanian, modifiers, combining marks
    (0x0386, 0x03CE), (0x0400, 0x045F),  # Greek, Cyrillic
    (0x1E80, 0x1E85), (0x2000, 0x206F), (0x2070, 0x209C), (0x20A0, 0x20BF),  # punctuation, scripts, currency
    (0x2100, 0x218F), (0x2190, 0x21FF), (0x2200, 0x22FF), (0x2300, 0x23FF),  # letterlike to technical
    (0x25A0, 0x25FF), (0x2600, 0x2606), (0x2610, 0x2612), (0x2660, 0x266F), (0x2701, 0x2727), (0x2756, 0x2794),
    (0xFFFD, 0xFFFD),
]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("source", type=Path, help="DejaVuSansMono.ttf of release 2.37")
    parser.add_argument("--check", action="store_true", help="compare instead of writing")
    args = parser.parse_args()
    # Of a table without use outside its editor, which the subsetter drops with a warning.
    logging.getLogger("fontTools.subset").setLevel(logging.ERROR)

    found = hashlib.sha256(args.source.read_bytes()).hexdigest()
    if found != SOURCE:
        print(f"{args.source} is not the release this was made from: {found}, expected {SOURCE}", file=sys.stderr)
        return 1

    options = subset.Options()
    options.hinting = False
    options.layout_features = ["ccmp", "mark", "mkmk"]
    options.notdef_outline = True
    options.name_IDs = [0, 1, 2, 3, 4, 5, 6, 13, 14]
    options.name_languages = [0x409]
    options.glyph_names = False
    # The date of the source stays, so that the bytes do not depend on the day.
    options.recalc_timestamp = False
    font = subset.load_font(str(args.source), options)
    cut = subset.Subsetter(options)
    cut.populate(unicodes=[code for first, last in RANGES for code in range(first, last + 1)])
    cut.subset(font)
    held = io.BytesIO()
    subset.save_font(font, held, options)
    made = held.getvalue()

    print(f"{hashlib.sha256(made).hexdigest()}  {TARGET.name}  {len(made)} bytes")
    if args.check:
        if TARGET.read_bytes() != made:
            print(f"{TARGET} differs from what the source gives", file=sys.stderr)
            return 1
        return 0
    TARGET.parent.mkdir(parents=True, exist_ok=True)
    TARGET.write_bytes(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
