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


def number(allowed):
    """The check of a field that has one of these numbers."""
    # True and 1.0 equal 1.
    return lambda value: type(value) is int and value in allowed


def text(value):
    return isinstance(value, str)


def text_or_null(value):
    return value is None or text(value)


BITS_24, BITS_32, BITS_64 = (number(range(1 << bits)) for bits in (24, 32, 64))
# The verbs, with a check of each field.
REQUESTS = {
    "hello": {"version": BITS_32, "token": text_or_null},
    "open": {
        "path_mtu": number((256, 512, 1024, 2048, 4096)),
        "retry_count": number(range(8)),
        "timeout": number(range(32)),
        "remote": text,
        "remote_queue_pair": BITS_24,
        "psn": BITS_24,
        "remote_psn": BITS_24,
    },
    "post-read": {
        "work_request": BITS_64,
        "address": BITS_64,
        "r_key": BITS_32,
        "length": BITS_32,
    },
    "poll": {"wait_ms": BITS_32},
    "query": {},
    "close": {},
}


class Failure(Exception):
    """A request that cannot be done: the kind, and a message for people."""

    def __init__(self, kind, message):
        super().__init__(message)
        self.kind = kind


class Malformed(Failure):
    """What came is no request. The connection ends with the answer."""

    def __init__(self, message):
        super().__init__("request", message)


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


def answer(adapter, ask, fields):
    """The response to one request after hello."""
    if ask == "hello":
        raise Failure("request", "hello was said already")
    if ask == "open":
        return {"answer": "opened", **adapter.open(fields)}
    if not adapter.wanted:
        raise Failure("request", "there is no channel: open one first")
    if ask == "post-read":
        adapter.post_read(**fields)
        return {"answer": "posted"}
    if ask == "poll":
        return {"answer": "completions", "completions": adapter.poll(**fields)}
    if ask == "query":
        return {"answer": "queue-pair", **adapter.query()}
    adapter.close()
    return {"answer": "closed"}


def greeting(ask, fields, token):
    """The response to the first request."""
    if ask != "hello":
        raise Failure("request", "expected hello first")
    if fields["version"] != VERSION:
        raise Failure("version", f"this agent speaks version {VERSION}")
    tokens = (fields["token"] or "", token or "")
    told, secret = (one.encode(errors="surrogatepass") for one in tokens)
    if token and not hmac.compare_digest(told, secret):
        raise Failure("token", "wrong or missing token")
    return {"answer": "welcome", "version": VERSION, "device": Adapter.device}


def receive(stream):
    """The next message in octets; None at the end of the connection."""
    head = stream.read(4)
    if len(head) < 4:
        return None
    (length,) = struct.unpack("!I", head)
    if length > MAX_MESSAGE:
        raise Malformed(f"a message of more than {MAX_MESSAGE} octets")
    octets = stream.read(length)
    return octets if len(octets) == length else None


def parse(octets):
    """The verb of a request, and its fields."""
    try:
        message = json.loads(octets)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"a message that is no request: {error}") from None
    if not isinstance(message, dict) or not isinstance(message.get("ask"), str):
        raise Malformed("a message that is no request: expected an object with a verb in `ask`")
    ask = message["ask"]
    if ask not in REQUESTS:
        *verbs, last = REQUESTS
        expected = f"expected {', '.join(verbs)} or {last}"
        raise Failure("request", f"no request is called {json.dumps(ask)}: {expected}")
    fields = {name: message.get(name) for name in REQUESTS[ask]}
    for name, may_be in REQUESTS[ask].items():
        if not may_be(fields[name]):
            raise Malformed(f"{ask} cannot have {json.dumps(fields[name])} as its {name}")
    return ask, fields


def send(stream, message):
    octets = json.dumps(message).encode()
    stream.write(struct.pack("!I", len(octets)) + octets)
    stream.flush()


def serve(stream, token):
    """One tester, from its hello to its end."""
    adapter, greeted, goes_on = Adapter(), False, True
    try:
        while goes_on:
            try:
                octets = receive(stream)
                if octets is None:
                    break
                ask, fields = parse(octets)
                if greeted:
                    response = answer(adapter, ask, fields)
                else:
                    response = greeting(ask, fields, token)
                    greeted = True
            except Failure as failure:
                response = {"answer": "failed", "kind": failure.kind, "message": str(failure)}
                goes_on = greeted and not isinstance(failure, Malformed)
            send(stream, response)
    finally:
        adapter.close()


def main():
    host, port, token = sys.argv[1], int(sys.argv[2]), (sys.argv[3:] or [None])[0]
    with socket.create_server((host, port)) as server:
        print("listening on", *server.getsockname(), flush=True)
        while True:
            connection, _ = server.accept()
            try:
                with connection, connection.makefile("rwb") as stream:
                    serve(stream, token)
            except OSError as error:
                # The next tester is served all the same.
                print("the connection broke off:", error, file=sys.stderr)


if __name__ == "__main__":
    main()
