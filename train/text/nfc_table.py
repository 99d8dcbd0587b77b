"""Writes nfc_table.h from Python's unicodedata, as far as the tokenizers library 0.23.3 knows it (Unicode 9): ids are to be those of
that library. Run with it: python3 nfc_table.py
"""

import unicodedata
from pathlib import Path

from tokenizers import normalizers

nfd = normalizers.NFD()


def combining(code):
    """The class, 0 where the library does not order by it."""
    value = unicodedata.combining(chr(code))
    text = chr(code) + "\u0334" if value > 1 else "\u0301" + chr(code)
    return value if nfd.normalize_str("a" + text) == unicodedata.normalize("NFD", "a" + text) else 0


codes = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000 and not 0xAC00 <= c < 0xD7A4]
composites, others = [], []
for code in codes:
    text = unicodedata.decomposition(chr(code))
    if not text or text.startswith("<") or nfd.normalize_str(chr(code)) == chr(code):
        continue
    parts = [int(part, 16) for part in text.split()] + [0]
    (composites if unicodedata.normalize("NFC", chr(code)) == chr(code) else others).append((code, parts[0], parts[1]))
classes = []
for code in codes:
    value = combining(code)
    if value and classes and classes[-1][1] == code - 1 and classes[-1][2] == value:
        classes[-1][1] = code
    elif value:
        classes.append([code, code, value])


def table(doc, kind, name, rows):
    cells = ["{" + ",".join(str(v) for v in row) + "}" for row in rows]
    lines, line = [], "   "
    for cell in cells:
        if len(line) + len(cell) + 2 > 126:
            lines.append(line)
            line = "   "
        line += (" " if line == "   " else "") + cell + ","
    lines.append(line)
    return f"/// {doc}\ninline constexpr {kind} {name}[] = {{\n" + "\n".join(lines) + "\n};\n"


Path(__file__).with_suffix(".h").write_text(
    f"""#pragma once
// Made by nfc_table.py from Unicode 9. All rows ascend by code point.
#include <cstdint>

// clang-format off
namespace onestep::train::nfc {{

/// A character and the two that it is made of; second = 0 where it is another name of one.
struct Decomposition {{
  uint32_t code, first, second;
}};

/// The code points from first to last have this canonical combining class.
struct CombiningClass {{
  uint32_t first, last;
  int value;
}};

{table("Characters that normalisation form C keeps.", "Decomposition", "kComposites", composites)}
{table("Characters that it takes apart.", "Decomposition", "kDecomposed", others)}
{table("Classes above 0.", "CombiningClass", "kClasses", classes)}
}}  // namespace onestep::train::nfc
""")
