"""A real OpenAI-compatible server process that answers by rule, fails on a script, and logs what it received and finished.

``python -m tests.servers.fault_server --port 0 --log FILE`` prints its address and serves until it is killed.

The script is a list of faults, set with ``PUT /script``; the first that applies to a request is used:

    {"fault": "status", "status": 429, "headers": {"retry-after": "0.1"}, "message": "…"}
    {"fault": "slow", "seconds": 5}          say nothing for so long, then answer
    {"fault": "drop"}                        close the connection without a word
    {"fault": "cut"}                         close it in the middle of the reply
    {"fault": "invalid_json"}  {"fault": "wrong_schema"}  {"fault": "empty_choices"}  {"fault": "empty_content"}
    {"fault": "body", "body": {…}}           HTTP 200 with this body
    {"fault": "text", "text": "…", "finish_reason": "stop"}   answer this
    {"fault": "no_usage"}  {"fault": "double_usage"}
    {"fault": "refuse", "field": "temperature"}      HTTP 400 where the request has this field
    {"fault": "refuse_images"}  {"fault": "image_limit", "limit": 1}

Each may carry ``match`` (a text that the request's body must contain) and ``times`` (how often it applies; always if absent).
Log lines are JSON: ``{"event": "received" | "finished", "id": SHA-256 of messages, "at": seconds, "status": …}``.
``GET /quiet`` answers when no other connection is open: after a client was killed, all that it sent is in the log then.
"""

import argparse
import hashlib
import json
import os
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np

MODELS = ("fault-vlm", "fault-embedder")
DIMENSION = 8
WORDS = ["amber", "birch", "canyon", "delta", "ember", "fjord", "grove", "harbor", "island", "juniper", "kelp", "lagoon", "meadow"]


def request_id(body: dict[str, Any]) -> str:
    """Names a request by what it asks: two sendings of the same question have the same id."""
    asked = body.get("messages", body.get("input"))
    return hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()


class FaultServer(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def __init__(self, port: int, log: Path, *, delay: float, api_key: str | None, echo: bool) -> None:
        super().__init__(("127.0.0.1", port), Handler)
        self.lock = threading.Lock()
        self.script: list[dict[str, Any]] = []
        self.delay = delay
        self.api_key = api_key
        self.echo = echo
        self.n_open = 0
        self._log = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Count a connection before the next is accepted."""
        with self.lock:
            self.n_open += 1
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            with self.lock:
                self.n_open -= 1

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Pass over clients that were killed; print anything else."""
        if not isinstance(sys.exc_info()[1], ConnectionError):
            super().handle_error(request, client_address)

    def write(self, event: str, id_: str, **more: Any) -> None:
        os.write(self._log, (json.dumps({"event": event, "id": id_, "at": time.time(), **more}) + "\n").encode())

    def fault_for(self, body: dict[str, Any]) -> dict[str, Any] | None:
        """The first fault of the script that applies; it is used up by one."""
        text = json.dumps(body, ensure_ascii=False)
        n_images = text.count('"image_url": {')
        with self.lock:
            for fault in self.script:
                if fault.get("times", 1) <= 0 or fault.get("match", "") not in text:
                    continue
                if fault["fault"] == "refuse" and fault["field"] not in body:
                    continue
                if fault["fault"] == "refuse_images" and not n_images:
                    continue
                if fault["fault"] == "image_limit" and n_images <= fault["limit"]:
                    continue
                if "times" in fault:
                    fault["times"] -= 1
                return fault
        return None


class Handler(BaseHTTPRequestHandler):
    server: FaultServer
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing on stderr."""

    def do_PUT(self) -> None:
        self.server.script = self._body()
        self._send(200, {})

    def do_GET(self) -> None:
        if self.path == "/quiet":
            while self.server.n_open > 1:
                time.sleep(0.005)
            self._send(200, {})
            return
        if self._refuses_key():
            return
        if self.path == "/v1/models":
            self._send(
                200, {"object": "list", "data": [{"id": name, "object": "model", "created": 0, "owned_by": "tests"} for name in MODELS]}
            )
        else:
            self._error(404, f"no such address: {self.path}")

    def do_POST(self) -> None:
        body = self._body()
        id_ = request_id(body)
        self.server.write("received", id_, retry=self.headers.get("x-stainless-retry-count"), n_bytes=len(json.dumps(body)))
        if self._refuses_key():
            return
        if "stream_options" in body and not body.get("stream"):
            self._error(400, "The 'stream_options' parameter is only allowed when 'stream' is enabled.", param="stream_options")
            return
        fault = self.server.fault_for(body)
        time.sleep(self.server.delay)
        if fault and self._failed(fault):
            self.server.write("failed", id_, fault=fault["fault"])
            return
        reply = embeddings(body) if self.path == "/v1/embeddings" else chat_completion(body, id_, fault, echo=self.server.echo)
        try:
            if body.get("stream"):
                self._stream(reply, fault, with_usage=bool(body.get("stream_options")))
            else:
                self._whole(reply, fault)
        except (BrokenPipeError, ConnectionResetError):
            self.server.write("lost", id_)
            self.close_connection = True
            return
        if not fault or fault["fault"] != "cut":
            self.server.write("finished", id_)

    def _body(self) -> Any:
        return json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))

    def _refuses_key(self) -> bool:
        given = self.headers.get("authorization", "")
        if self.server.api_key is None or given == f"Bearer {self.server.api_key}":
            return False
        self._error(401, f"Incorrect API key provided: {given.removeprefix('Bearer ')}", code="invalid_api_key")
        return True

    def _failed(self, fault: dict[str, Any]) -> bool:
        """Carry out a fault that ends the request; says whether it was one."""
        kind = fault["fault"]
        if kind == "status":
            self._error(fault["status"], fault.get("message", "injected"), headers=fault.get("headers", {}), code=fault.get("code"))
        elif kind == "drop":
            self.close_connection = True
        elif kind == "refuse":
            self._error(
                400,
                fault.get("message", f"Unsupported parameter: '{fault['field']}' is not supported with this model."),
                param=fault["field"],
            )
        elif kind == "body":
            self._send(200, fault["body"])
        elif kind == "refuse_images":
            self._error(500, "image input is not supported - hint: if this is unexpected, you may need to provide the mmproj")
        elif kind == "image_limit":
            self._error(400, f"At most {fault['limit']} image(s) may be provided in one prompt.")
        elif kind == "slow":
            time.sleep(fault["seconds"])
            return False
        else:
            return False
        return True

    def _whole(self, reply: dict[str, Any], fault: dict[str, Any] | None) -> None:
        kind = fault["fault"] if fault else None
        content = b'{"id": "broken", "choices": [' if kind == "invalid_json" else json.dumps(reply).encode()
        self._head(200, "application/json", len(content))
        self.wfile.write(content[: len(content) // 2] if kind == "cut" else content)
        self.close_connection |= kind == "cut"

    def _stream(self, reply: dict[str, Any], fault: dict[str, Any] | None, *, with_usage: bool) -> None:
        kind = fault["fault"] if fault else None
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        frame = {key: reply[key] for key in ("id", "created", "model")} | {"object": "chat.completion.chunk"}
        choice = reply["choices"][0] if reply["choices"] else None
        text = choice["message"]["content"] if choice else ""
        pieces = [text[start : start + 8] for start in range(0, len(text), 8)]
        for number, piece in enumerate(pieces):
            if kind == "cut" and number >= len(pieces) // 2:
                return
            if kind == "invalid_json":
                self.wfile.write(b'data: {"id": "bro\n\n')
                return
            self._chunk(frame | {"choices": [{"index": 0, "delta": {"content": piece}, "finish_reason": None}]})
        self._chunk(frame | {"choices": [{"index": 0, "delta": {}, "finish_reason": choice["finish_reason"]}] if choice else []})
        if with_usage and "usage" in reply:
            self._chunk(frame | {"choices": [], "usage": reply["usage"]})
        self.wfile.write(b"data: [DONE]\n\n")

    def _chunk(self, chunk: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(chunk).encode() + b"\n\n")
        self.wfile.flush()

    def _head(self, status: int, kind: str, length: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(length), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()

    def _send(self, status: int, reply: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        content = json.dumps(reply).encode()
        self._head(status, "application/json", len(content), headers)
        self.wfile.write(content)

    def _error(self, status: int, message: str, *, headers: dict[str, str] | None = None, **more: Any) -> None:
        self._send(status, {"error": {"message": message, "type": "injected", **more}}, headers)


def chat_completion(body: dict[str, Any], id_: str, fault: dict[str, Any] | None, *, echo: bool) -> dict[str, Any]:
    """The deterministic reply: words drawn by the request's hash, or JSON of such words that fits the schema asked for.

    With ``echo`` they are words of the request, and many: an answer then scores by what the request shows.
    """
    kind = fault["fault"] if fault else None
    seed = int(id_[:8], 16)
    schema = schema_of(body)
    vocabulary = " ".join(texts_of(body)).split() if echo else WORDS
    reason = "stop"
    if kind == "text":
        text, reason = fault["text"], fault.get("finish_reason", "stop")
    elif kind == "empty_content":
        text, reason = "", fault.get("finish_reason", "stop")
    elif kind == "wrong_schema":
        text = json.dumps({"unexpected": True})
    elif schema is not None:
        text = json.dumps(instance(schema, seed, vocabulary))
    else:
        text = words(seed, 60 if echo else 3, vocabulary)
    choices = [] if kind == "empty_choices" else [{"index": 0, "finish_reason": reason, "message": {"role": "assistant", "content": text}}]
    reply: dict[str, Any] = {"id": f"chat-{id_[:8]}", "object": "chat.completion", "created": 0, "model": body["model"], "choices": choices}
    if kind != "no_usage":
        n_input = sum(len(part.split()) for part in texts_of(body)) * (2 if kind == "double_usage" else 1)
        n_output = max(1, len(text.split()))
        reply["usage"] = {"prompt_tokens": n_input, "completion_tokens": n_output, "total_tokens": n_input + n_output}
    return reply


def texts_of(body: dict[str, Any]) -> list[str]:
    contents = [message["content"] for message in body["messages"]]
    parts = [
        [content] if isinstance(content, str) else [part["text"] for part in content if part["type"] == "text"] for content in contents
    ]
    return [text for texts in parts for text in texts]


def schema_of(body: dict[str, Any]) -> dict[str, Any] | None:
    """The schema in ``response_format``, or else the last that is written out in a message."""
    if "response_format" in body:
        return body["response_format"]["json_schema"]["schema"]
    mark = "JSON schema of the reply:"
    found = [text.rpartition(mark)[2] for text in texts_of(body) if mark in text]
    return json.JSONDecoder().raw_decode(found[-1].strip())[0] if found else None


def instance(schema: dict[str, Any], seed: int, vocabulary: list[str]) -> Any:
    """A value that fits the schema (the few keywords that the tasks use), different for different seeds."""
    if "anyOf" in schema:
        return instance(schema["anyOf"][-1], seed, vocabulary)
    kind = schema["type"]
    if kind == "object":
        return {name: instance(part, seed + number, vocabulary) for number, (name, part) in enumerate(schema["properties"].items())}
    if kind == "array":
        return [instance(schema["items"], seed + number, vocabulary) for number in range(schema.get("minItems", 2))]
    return {"string": words(seed, 2, vocabulary), "number": seed % 900, "integer": seed % 900, "boolean": bool(seed % 2), "null": None}[
        kind
    ]


def words(seed: int, n: int, vocabulary: list[str]) -> str:
    return " ".join(str(word) for word in np.random.default_rng(seed).choice(vocabulary, n))


def embeddings(body: dict[str, Any]) -> dict[str, Any]:
    """Vectors of norm 3 drawn by each text's hash, in reverse order, as a server may send them."""
    rows = []
    for index, text in enumerate(body["input"]):
        vector = np.random.default_rng(int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)).normal(size=DIMENSION)
        rows.append({"object": "embedding", "index": index, "embedding": (3 * vector / np.linalg.norm(vector)).tolist()})
    return {"object": "list", "model": body["model"], "data": rows[::-1], "usage": {"prompt_tokens": 1, "total_tokens": 1}}


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--log", type=Path, required=True)
    parser.add_argument("--delay", type=float, default=0.0, help="seconds that every reply takes")
    parser.add_argument("--api-key")
    parser.add_argument("--echo", action="store_true", help="answer with words of the request")
    options = parser.parse_args()
    server = FaultServer(options.port, options.log, delay=options.delay, api_key=options.api_key, echo=options.echo)
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    sys.stdout.close()
    server.serve_forever()


if __name__ == "__main__":
    main()
