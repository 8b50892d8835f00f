#!/usr/bin/env python3
"""Writes src/text/jinja_unicode_classes.cpp and jinja_unicode_case.cpp: what Python's str methods know of each character.

usage: python3 tools/generate_jinja_unicode.py [folder]     (checked in: CPython 3.11, Unicode 14)
"""
import pathlib
import sys
import unicodedata

CODE_POINTS = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]


def casing(c):
    """Cased and Case_Ignorable show only in how a final sigma is lowered."""
    final_before_letter = ("A\u03a3" + chr(c) + "A").lower()[1] == "\u03c2"
    if final_before_letter:
        return 0
    return 1024 if ("A\u03a3" + chr(c)).lower()[1] == "\u03c2" else 512


def classes(c):
    s = chr(c)
    tests = [s.isalpha(), s.isdecimal(), s.isdigit(), s.isnumeric(), s.islower(), s.isupper(),
             unicodedata.category(s) == "Lt", s.isspace(), s.isprintable()]
    return sum(1 << i for i, test in enumerate(tests) if test) | casing(c)


def class_runs():
    runs, previous = [], None
    for c in range(0x110000):
        value = 0 if 0xD800 <= c < 0xE000 else classes(c)
        if value != previous:
            runs.append(c << 11 | value)
            previous = value
    return runs


def case_runs(mapping):
    runs = []
    for c, target in sorted(mapping.items()):
        delta = target - c
        if runs and runs[-1][3] == delta and c - runs[-1][1] in ((runs[-1][2],) if runs[-1][2] else (1, 2)):
            runs[-1][1:3] = [c, c - runs[-1][1]]
        else:
            runs.append([c, c, 0, delta])
    return [(first, last, stride or 1, delta) for first, last, stride, delta in runs]


def table(name, convert):
    simple, multiple = {}, {}
    for c in CODE_POINTS:
        text = convert(chr(c))
        if text != chr(c):
            if len(text) == 1:
                simple[c] = ord(text)
            else:
                multiple[c] = [ord(x) for x in text]
    lines = rows(f"constexpr CaseRun k{name}Runs[] = {{", [f"{{{a}, {b}, {s}, {d}}}" for a, b, s, d in case_runs(simple)])
    entries = [f"{{{c}, {{{', '.join(map(str, to))}}}}}" for c, to in sorted(multiple.items())]
    return lines + rows(f"constexpr CaseExpansion k{name}Expansions[] = {{", entries)


def rows(head, entries):
    lines, line = [head], "   "
    for entry in entries:
        if len(line) + len(entry) + 2 > 120:
            lines.append(line)
            line = "   "
        line += f" {entry},"
    return lines + [line, "};"]


def write(path, lines):
    source = ["// Written by tools/generate_jinja_unicode.py from Unicode " + unicodedata.unidata_version + ".",
              '#include "text/jinja_unicode.h"', "", "#include <iterator>", "", "// clang-format off", "namespace crest::text::jinja {", "namespace {", ""]
    path.write_text("\n".join(source + lines + ["", "}  // namespace crest::text::jinja", ""]))


def main():
    folder = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent / "src" / "text")
    runs = rows("constexpr uint32_t kRuns[] = {", [f"0x{run:08x}" for run in class_runs()])
    write(folder / "jinja_unicode_classes.cpp",
          runs + ["", "}  // namespace", "", "const TableView<uint32_t> kClassRuns = {kRuns, std::size(kRuns)};"])
    names = {"Upper": str.upper, "Lower": str.lower, "Title": str.title, "Fold": str.casefold}
    lines = [line for name, convert in names.items() for line in table(name, convert)]
    lines += ["", "}  // namespace", ""]
    lines += [f"const CaseTable k{n}Table = {{{{k{n}Runs, std::size(k{n}Runs)}}, {{k{n}Expansions, std::size(k{n}Expansions)}}}};"
              for n in names]
    write(folder / "jinja_unicode_case.cpp", lines)


if __name__ == "__main__":
    main()
