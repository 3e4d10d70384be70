#!/usr/bin/env python3
"""An agent for the RC cases, in the protocol of docs/agent-protocol.md.

usage: agent.py HOST PORT [TOKEN]

The class Adapter is what to replace: here it has one queue pair in memory, sends nothing, and
completes a READ as an adapter does that nobody answers.
"""

import hmac
import json
import socket
import struct
import sys
import time

VERSION = 1
MAX_MESSAGE = 64 << 10
MAX_WAIT_MS = 10_000
FLUSHED, RETRIES_EXCEEDED = 5, 12  # ibv_wc_status


class Failure(Exception):
    """A request that cannot be done: the kind, and a message for people."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Adapter:
    """One port with at most one queue pair. Replace the bodies by calls of your adapter."""

    device = {"name": "example0", "backend": "example", "apm": False, "active_mtu": 4096}
    address = "192.0.2.2"  # the one that the queue pair sends from

    def __init__(self):
        self.wanted = None

    def open(self, wanted):
        if self.wanted:
            raise Failure("request", "there is a queue pair already: close it first")
        self.wanted, self.state, self.due = wanted, "rts", []
        return {"queue_pair": 0x11, "address": self.address, "attributes": self.query()}

    def post_read(self, work_request, address, r_key, length):
        at, status = time.monotonic(), FLUSHED
        if self.state == "rts":
            t_tr = 4.096e-6 * 2 ** self.wanted["timeout"]
            at, status = at + (1 + self.wanted["retry_count"]) * t_tr, RETRIES_EXCEEDED
        self.due.append((at, {"work_request": work_request, "status": status, "vendor_error": 0}))

    def poll(self, wait_ms):
        end = time.monotonic() + min(wait_ms, MAX_WAIT_MS) / 1000
        while True:
            now = time.monotonic()
            done = [completion for at, completion in self.due if at <= now]
            if done or now >= end:
                break
            time.sleep(0.001)
        self.due = [one for one in self.due if one[1] not in done]
        if any(completion["status"] != 0 for completion in done):
            self.state = "error"
        return done

    def query(self):
        wanted = self.wanted
        return {
            "state": self.state,
            "path_mtu": wanted["path_mtu"],
            "retry_count": wanted["retry_count"],
            "timeout": wanted["timeout"],
            "psn": wanted["psn"],
            "retries_left": None,  # verbs do not show it
        }

    def close(self):
        self.wanted = None


def answer(adapter, request):
    """The response to one request after hello."""
    ask = request.pop("ask", None)
    if ask == "open":
        return {"answer": "opened", **adapter.open(request)}
    if ask not in ("post-read", "poll", "query", "close"):
        raise Failure("request", f"this agent knows no request {ask!r}")
    if not adapter.wanted:
        raise Failure("request", "there is no channel: open one first")
    if ask == "post-read":
        adapter.post_read(**request)
        return {"answer": "posted"}
    if ask == "poll":
        return {"answer": "completions", "completions": adapter.poll(**request)}
    if ask == "query":
        return {"answer": "queue-pair", **adapter.query()}
    adapter.close()
    return {"answer": "closed"}


def greeting(request, token):
    """The response to the first request."""
    if request.get("ask") != "hello":
        raise Failure("request", "expected hello first")
    if request.get("version") != VERSION:
        raise Failure("version", f"this agent speaks version {VERSION}")
    if token and not hmac.compare_digest(request.get("token") or "", token):
        raise Failure("token", "wrong or missing token")
    return {"answer": "welcome", "version": VERSION, "device": Adapter.device}


def receive(stream):
    """The next message; None at the end of the connection."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (length,) = struct.unpack("!I", head)
    if length > MAX_MESSAGE:
        return None
    return json.loads(stream.read(length))


def send(stream, message):
    octets = json.dumps(message).encode()
    stream.write(struct.pack("!I", len(octets)) + octets)
    stream.flush()


def serve(stream, token):
    """One tester, from its hello to its end."""
    adapter, greeted = Adapter(), False
    try:
        while (request := receive(stream)) is not None:
            try:
                response = answer(adapter, request) if greeted else greeting(request, token)
                greeted = True
            except Failure as failure:
                response = {"answer": "failed", "kind": failure.kind, "message": str(failure)}
            send(stream, response)
            if not greeted:
                break
    finally:
        adapter.close()


def main():
    host, port, token = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or [None])[0]
    with socket.create_server((host, port)) as server:
        print("listening on", *server.getsockname(), flush=True)
        while True:
            connection, _ = server.accept()
            with connection, connection.makefile("rwb") as stream:
                serve(stream, token)


if __name__ == "__main__":
    main()
