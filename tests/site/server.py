"""Serves a built site on 127.0.0.1 as GitHub Pages would: gzip, folders, 404.html, a base path."""

import gzip
import mimetypes
import threading
from contextlib import contextmanager
from functools import cache, partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMPRESSED = ("text/", "application/javascript", "application/json", "application/xml", "image/svg")
TYPES = {
    ".js": "application/javascript",
    ".mjs": "application/javascript",
    ".ipynb": "application/json",
    ".map": "application/json",
    ".woff2": "font/woff2",
    ".md": "text/plain",
    ".py": "text/plain",
}


def content_type(file):
    """The MIME type of a file, the same on every machine for the types that a site is made of."""
    kind = TYPES.get(file.suffix) or mimetypes.guess_type(file.name)[0]
    return kind or "application/octet-stream"


@cache
def _body(file, _modified, compress):
    data = file.read_bytes()
    return gzip.compress(data, 6, mtime=0) if compress else data


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def __init__(self, root, bases, *args):
        self.root, self.bases = root, sorted(bases, key=len, reverse=True)
        super().__init__(*args)

    def do_GET(self):
        file, moved = self._find(unquote(urlsplit(self.path).path))
        if moved:
            self.send_response(301)
            self.send_header("Location", urlsplit(self.path).path + "/")
            self.send_header("Content-Length", "0")
            self.end_headers()
        else:
            self._send(200 if file else 404, file or self.root / "404.html")

    def _find(self, path):
        """The file at this path, and whether the address lacks its closing slash."""
        base = next((base for base in self.bases if path.startswith(base)), None)
        if base is None:
            return None, False
        file = (self.root / path[len(base) :]).resolve()
        if not file.is_relative_to(self.root):
            return None, False
        if file.is_dir():
            index = file / "index.html"
            return (index, not path.endswith("/")) if index.is_file() else (None, False)
        return (file, False) if file.is_file() and not path.endswith("/") else (None, False)

    def _send(self, status, file):
        kind = content_type(file)
        compress = kind.startswith(COMPRESSED) and "gzip" in self.headers.get("Accept-Encoding", "")
        found = file.is_file()
        body = _body(file, file.stat().st_mtime_ns, compress) if found else b"not found"
        self.send_response(status)
        text = kind.startswith(COMPRESSED)
        self.send_header("Content-Type", f"{kind}; charset=utf-8" if text else kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Cache-Control", "max-age=600")
        if compress and found:
            self.send_header("Content-Encoding", "gzip")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """A browser that closes a page half-way through an answer is no news."""


@contextmanager
def serve(root, *bases):
    """Serve `root` below each base path; yields the origin, e.g. http://127.0.0.1:41234."""
    server = _Server(("127.0.0.1", 0), partial(_Handler, Path(root).resolve(), bases))
    threading.Thread(target=server.serve_forever, args=[0.05], daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
