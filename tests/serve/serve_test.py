"""shardwise serve against clients that are slow, large, malformed, curious or many.

serve_test.py PROGRAM starts it on a free port. Every test ends with a question that must be answered:
the server goes on. Prints "N passed, N failed".
"""

import http.client
import json
import re
import socket
import subprocess
import sys
import threading
import time

QUESTION = {"model": "gpt2", "gpus": "rtx-4090", "method": ["full"]}
PATIENCE = 60  # seconds, for whatever has to happen some time


class Server:
    def __init__(self, program):
        self.process = subprocess.Popen([program, "serve", "--port", "0", "--seconds", "20"],
                                        stdout=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        self.port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/\n", line).group(1))

    def ask(self, method="POST", path="/api/fit", body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        if isinstance(body, dict):
            body = json.dumps(body)
        connection.request(method, path, body, headers or {})
        reply = connection.getresponse()
        text = reply.read()
        connection.close()
        return reply.status, text, reply

    def raw(self, data):
        """Sends bytes as they are; what comes back until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE) as s:
            try:
                s.sendall(data)
                s.shutdown(socket.SHUT_WR)
                parts = []
                while part := s.recv(65536):
                    parts.append(part)
                return b"".join(parts)
            except (ConnectionResetError, BrokenPipeError):
                return b""

    def goes_on(self):
        status, text, _ = self.ask(body=QUESTION)
        assert status == 200, (status, text[:200])
        assert json.loads(text)["answers"][0]["method"] == "full"

    def stop(self):
        self.process.terminate()
        self.process.wait()


def answers(server):
    for path, kind in (("/", "text/html"), ("/openapi.json", "json"), ("/api/models.json", "json"),
                       ("/schemas/fit.schema.json", "json")):
        status, text, reply = server.ask("GET", path)
        assert status == 200 and kind in reply.getheader("Content-Type"), (path, status)
        assert "default-src 'none'" in reply.getheader("Content-Security-Policy")
    status, text, _ = server.ask(path="/api/simulate/document", body=QUESTION)
    assert status == 200 and json.loads(text)["details"][0]["timeline"]["lanes"]


def refuses_malformed(server):
    for body in ("", "{", "[]", "null", "\0\0", '{"model": "x"}', '{"gpus": 1}', "[" * 100000):
        status, text, _ = server.ask(body=body)
        assert status == 400 and json.loads(text)["problems"], (body[:20], status)
    for data in (b"\r\n\r\n", b"GET\r\n\r\n", b"POST /api/fit HTTP/9.9\r\n\r\n", b"\x16\x03\x01\x02\x00" * 50,
                 b"POST /api/fit HTTP/1.1\r\nContent-Length: -1\r\n\r\n", b"A" * 100000,
                 b"POST /api/fit HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\nx",
                 b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\n" + b"X: y\r\n" * 200000 + b"\r\n"):
        reply = server.raw(data)
        assert not reply.startswith(b"HTTP/1.1 200"), (data[:40], reply[:60])


def refuses_oversized(server):
    status, _, _ = server.ask(body=json.dumps({"model": "x" * 300_000}))
    assert status == 413, status
    endless = b"POST /api/fit HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n"
    reply = server.raw(endless + b"10000\r\n" + b"x" * 0x10000 + b"\r\n10000\r\n" + b"x" * 0x10000 * 20)
    assert not reply.startswith(b"HTTP/1.1 200"), reply[:60]


def refuses_traversal(server):
    for path in ("/../../etc/passwd", "/..%2f..%2fetc%2fpasswd", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd",
                 "/api/../../etc/passwd", "/api/fit/../../../etc/passwd", "/catalog/models/gpt2.json",
                 "/schemas/../openapi.json%00", "/proc/self/environ"):
        for method in ("GET", "POST"):
            status, text, _ = server.ask(method, path, "{}")
            assert status in (400, 404) and b"root:" not in text, (method, path, status)
    for model in ("/etc/passwd", "../../etc/passwd", "./tests/catalog/hf_configs"):
        status, text, _ = server.ask(body=dict(QUESTION, model=model))
        assert status == 400 and b"root:" not in text, (model, status)


def refuses_other_sites(server):
    for headers in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}):
        status, _, _ = server.ask(body=QUESTION, headers=headers)
        assert status == 403, (headers, status)
    status, _, _ = server.ask(body=QUESTION, headers={"Origin": f"http://127.0.0.1:{server.port}"})
    assert status == 200, status


def cuts_slow_ones_off(server):
    """A client that sends a byte now and then is cut off; others are answered meanwhile."""
    slow = [socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) for _ in range(50)]
    for s in slow:
        s.sendall(b"POST /api/fit HTTP/1.1\r\nHost: 127.0.0.1\r\nX: ")
    server.goes_on()
    given_up = time.time() + PATIENCE
    while slow and time.time() < given_up:
        for s in list(slow):
            try:
                s.sendall(b"x")
                s.settimeout(0.001)
                if s.recv(4096) == b"" or True:
                    slow.remove(s)
            except TimeoutError:
                pass
            except OSError:
                slow.remove(s)
        time.sleep(0.2)
    assert not slow, f"{len(slow)} slow connections are still open"


def answers_many(server):
    """Clients at once, each with several questions, some of them the same."""
    failures = []

    def client(number):
        try:
            for sequence in (512, 1024, 512 + 16 * (number % 4)):
                status, text, _ = server.ask(body=dict(QUESTION, sequence=sequence))
                if status != 200 or json.loads(text)["request"]["sequence"] != sequence:
                    failures.append((status, text[:100]))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=client, args=(i,)) for i in range(40)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not failures, failures[:3]


def same_bytes(server):
    first, second = (server.ask(body=QUESTION)[1] for _ in range(2))
    assert first == second == server.ask(body=dict(QUESTION))[1]
    backwards = json.dumps(dict(reversed(QUESTION.items())), indent=4)
    assert first == server.ask(body=backwards)[1], "spaces and the order of keys do not matter"
    twice = json.dumps(QUESTION)[:-1] + ', "model": "gpt2"}'
    assert server.ask(body=twice)[0] == 400, "a key twice is no question, known or not"


def post(body, more=b""):
    return (b"POST /api/fit HTTP/1.1\r\nHost: 127.0.0.1\r\n" + more +
            b"Content-Length: %d\r\n\r\n" % len(body) + body)


def reads_requests_as_they_come(server):
    """In pieces, several at once, chunked, asking whether to go on, or with nothing to follow."""
    body = json.dumps(QUESTION).encode()
    assert server.raw(post(body) * 3).count(b"HTTP/1.1 200 OK") == 3, "three in one piece"
    chunked = post(b"").replace(b"Content-Length: 0", b"Transfer-Encoding: chunked")
    half = len(body) // 2
    chunks = b"".join(b"%x\r\n%s\r\n" % (len(c), c) for c in (body[:half], body[half:], b""))
    assert server.raw(chunked + chunks).startswith(b"HTTP/1.1 200 OK"), "chunked"
    # Text that looks like the last chunk ("0", two ends of lines) within a chunk ends nothing.
    spaced = body[:-1] + b', "batch": 10\r\n\r\n}'
    inside = b"%x\r\n%s\r\n0\r\n\r\n" % (len(spaced), spaced)
    twice = server.raw((chunked + inside) * 2)
    assert twice.count(b"HTTP/1.1 200 OK") == 2, "a chunk that holds what ends a body"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as s:
        s.sendall(chunked + chunks[:-2] + b"Checked: yes\r\n\r\n")
        assert s.recv(9) == b"HTTP/1.1 ", "trailers end a body: 200, or 400 by an older library"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as s:
        whole = post(body)
        for i in range(0, len(whole), 7):
            s.sendall(whole[i:i + 7])
            time.sleep(0.001)
        assert s.recv(15) == b"HTTP/1.1 200 OK", "in pieces"
    with socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE) as s:
        s.sendall(post(body, b"Expect: 100-continue\r\n")[:-len(body)])
        assert s.recv(1000) == b"HTTP/1.1 100 Continue\r\n\r\n", "asked whether to go on"
        s.sendall(body)
        time.sleep(0.1)
        assert b"HTTP/1.1 200 OK" in s.recv(65536), "went on"


def bears_slow_readers(server):
    """Clients that take no answer keep nobody else from theirs; nor do more of them than there is room for."""
    body = json.dumps(dict(QUESTION, gpus="2x24GB")).encode()
    idle = []
    for _ in range(60):
        s = socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE)
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        s.sendall(post(body) * 40)
        idle.append(s)
    for _ in range(20):
        server.goes_on()
    for _ in range(900):
        idle.append(socket.create_connection(("127.0.0.1", server.port), timeout=PATIENCE))
    server.goes_on()
    for s in idle:
        s.close()


TESTS = (answers, refuses_malformed, refuses_oversized, refuses_traversal, refuses_other_sites, cuts_slow_ones_off,
         answers_many, same_bytes, reads_requests_as_they_come, bears_slow_readers)


def main(program):
    server = Server(program)
    failed = 0
    try:
        for test in TESTS:
            try:
                test(server)
                server.goes_on()
            except Exception as error:
                failed += 1
                print(f"FAILED {test.__name__}: {type(error).__name__}: {error}")
    finally:
        server.stop()
    print(f"{len(TESTS) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
