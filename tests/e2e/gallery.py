# SPDX-License-Identifier: Apache-2.0
"""Results of the interpreter for a person to look at: each representation as a file, and one page that shows them all."""
import base64
import html
import json
import shutil
import struct
import zlib
from pathlib import Path


class Gallery:
    def __init__(self, folder: Path):
        self.folder = folder
        self.sections: list[str] = []
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)

    def keep(self, name: str, code: str, result) -> None:
        """Everything that `result` holds, under the name of its test."""
        shown = [f"<pre>{html.escape(code.strip())}</pre>"]
        for kind, ending in (("png", "png"), ("jpeg", "jpg"), ("svg", "svg")):
            if result[kind]:
                content = result[kind].encode() if kind == "svg" else base64.b64decode(result[kind])
                shown.append(f'<img src="{self._write(f"{name}.{ending}", content)}">')
        if result.html:
            shown.append(f'<iframe src="{self._write(f"{name}.html", result.html.encode())}"></iframe>')
        values = {"chart": result.chart and result.chart.to_dict(), "data": result.data, "json": result.json, **(result.extra or {})}
        texts = {kind: result[kind] for kind in ("text", "markdown", "latex")}
        texts |= {kind: json.dumps(value, indent=1, ensure_ascii=False) for kind, value in values.items() if value is not None}
        for kind, text in texts.items():
            if text:
                shown.append(f"<details><summary>{html.escape(kind)}</summary><pre>{html.escape(text)}</pre></details>")
        self.sections.append(f"<h2>{html.escape(name)}</h2>\n" + "\n".join(shown))

    def _write(self, file: str, content: bytes) -> str:
        (self.folder / file).write_bytes(content)
        return file

    def close(self) -> None:
        style = "body{font:15px sans-serif;max-width:60em;margin:2em auto}pre{background:#eee;padding:.5em;overflow:auto;max-height:30em}"
        style += "img{max-width:100%}iframe{width:100%;height:30em;border:1px solid #ccc}"
        page = "<!doctype html><meta charset=utf-8><title>Results of the interpreter</title>"
        page += f"<style>{style}</style><h1>Results of the interpreter</h1>\n" + "\n".join(self.sections)
        (self.folder / "index.html").write_text(page)


def png_size(encoded: str) -> tuple[int, int]:
    """Width and height of a picture whose every row of pixels is there (PNG specification, sections 5 and 11.2)."""
    content = base64.b64decode(encoded, validate=False)
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    at, compressed, kind = 8, b"", b""
    while kind != b"IEND":
        length, kind = struct.unpack(">I4s", content[at : at + 8])
        body = content[at + 8 : at + 8 + length]
        assert zlib.crc32(kind + body) == struct.unpack(">I", content[at + 8 + length : at + 12 + length])[0]
        if kind == b"IHDR":
            width, height, depth, colour, _, _, interlaced = struct.unpack(">IIBBBBB", body)
            assert not interlaced
        elif kind == b"IDAT":
            compressed += body
        at += 12 + length
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[colour]
    pixels = zlib.decompress(compressed)
    assert len(pixels) == height * (1 + (width * channels * depth + 7) // 8)
    assert len(set(pixels)) > 1, "one colour everywhere"
    return width, height
