"""What a server of HTTP may say that it should not. Each lie: bytes, a function of the connection,
or None for silence; then the connection is closed (CLOSING) or kept."""
import socket
import struct
import time

from liar import answer, chunked


def endless(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                       b"Transfer-Encoding: chunked\r\n\r\n")
    piece = b"10000\r\n" + b"[" + b" " * 0xffff + b"\r\n"
    while True:
        connection.sendall(piece)


def until_close(connection):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        connection.sendall(b"[1," * 20000)


def drip(first):
    def send(connection):
        connection.sendall(first)
        while True:
            connection.sendall(b" ")
            time.sleep(0.2)
    return send


def repeated(piece, first=b""):
    def send(connection):
        connection.sendall(first)
        while True:
            connection.sendall(piece)
    return send


def reset(connection):
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


def in_bytes(connection):
    for byte in answer("nonsense"):
        connection.sendall(bytes([byte]))


OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
HTTP = {
    "silence": None,
    "drip of the head": drip(b"HTTP/1.1 200 OK\r\nX:"),
    "drip of the body": drip(OK + b"Content-Length: 100000\r\n\r\n["),
    "endless chunks": endless,
    "endless until close": until_close,
    "endless heads": repeated(b"X-Head: " + b"x" * 1000 + b"\r\n", b"HTTP/1.1 200 OK\r\n"),
    "one endless line": repeated(b"x" * 65536, b"HTTP/1.1 200 OK\r\nX: "),
    "endless reason": repeated(b"x" * 65536, b"HTTP/1.1 200 "),
    "flood of 100": repeated(b"HTTP/1.1 100 Continue\r\n\r\n" * 100),
    "flood of 103": repeated(b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" * 100),
    "reset": reset,
    "byte by byte": in_bytes,
    "truncated": OK + b"Content-Length: 100\r\n\r\n[",
    "truncated chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n100\r\n[",
    "no last chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n1\r\n[\r\n",
    "nothing": b"",
    "garbage": bytes(range(256)) * 16,
    "SSH": b"SSH-2.0-OpenSSH_9.2\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\4\0\0\0\0\0",
    "HTTP/0.9": b"[1]",
    "HTTP/9.9": b"HTTP/9.9 200 OK\r\nContent-Length: 3\r\n\r\n[1]x",
    "status 099": b"HTTP/1.1 099 No\r\nContent-Length: 2\r\n\r\n{}",
    "status 99999": b"HTTP/1.1 99999 No\r\nContent-Length: 2\r\n\r\n{}",
    "status word": b"HTTP/1.1 OK 200\r\nContent-Length: 2\r\n\r\n{}",
    "101": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    "204 with a body": b"HTTP/1.1 204 No Content\r\nContent-Length: 50\r\n\r\nHTTP/1.1 200 OK",
    "304": b"HTTP/1.1 304 Not Modified\r\n\r\n",
    "301 away": b"HTTP/1.1 301 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
    "307 to itself": b"HTTP/1.1 307 Again\r\nLocation: /session\r\nContent-Length: 0\r\n\r\n",
    "302 to a file": b"HTTP/1.1 302 Found\r\nLocation: file:///etc/passwd\r\nContent-Length: 0\r\n\r\n",
    "two lengths": OK + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "negative length": OK + b"Content-Length: -1\r\n\r\n{}",
    "length of letters": OK + b"Content-Length: two\r\n\r\n{}",
    "length 2^64": OK + b"Content-Length: 18446744073709551616\r\n\r\n{}",
    "length 2^63": OK + b"Content-Length: 9223372036854775808\r\n\r\n{}",
    "a petabyte": OK + b"Content-Length: 1000000000000000\r\n\r\n{",
    "length and chunks": OK + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{x\r\n0\r\n\r\n",
    "chunk of letters": OK + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n{}",
    "chunk 2^64": OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n{}",
    "chunk 2^64-1": OK + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}",
    "chunk negative": OK + b"Transfer-Encoding: chunked\r\n\r\n-2\r\n{}",
    "chunk without an end": OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}x\r\n0\r\n\r\n",
    "chunk extension": repeated(b"x" * 65536, OK + b"Transfer-Encoding: chunked\r\n\r\n2;"),
    "endless trailers": repeated(b"T: t\r\n" * 1000, OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n"),
    "said to be gzip": OK + b"Content-Encoding: gzip\r\nContent-Length: 4\r\n\r\n\x1f\x8b\x08\0",
    "NUL in the head": b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\n{]",
    "bare CR": b"HTTP/1.1 200 OK\rContent-Length: 2\r\r{}",
    "folded head": b"HTTP/1.1 200 OK\r\nX: a\r\n b\r\nContent-Length: 2\r\n\r\n{]",
    "two answers": answer("{]") + answer('{"second":true}'),
    "HTML": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 31\r\n\r\n"
            b"<script>alert(document)</script>",
    "no JSON": answer("hello"),
    "empty": answer(""),
    "half JSON": answer('[{"id":"ses'),
    "two values": answer("[][]"),
    "a NUL in it": answer("[\0]"),
    "only NULs": answer("\0" * 5000),
    "deep arrays": answer("[" * 200000 + "]" * 200000),
    "deep objects": answer('{"a":' * 100000 + "1" + "}" * 100000),
    "in pieces, wrong": chunked(b"[", b"1", b",", b"]", b"]"),
    "an endless error": b"HTTP/1.1 500 X\r\nContent-Type: application/json\r\nContent-Length: 100000000\r\n\r\n"
                        b'{"message":"' + b"x" * 100000,
}
# Lies within what is well-formed: passed on or refused, and harmless either way.
JSON = {
    "an error as JSON": answer('{"name":"<img src=x onerror=alert(1)>","data":{"message":["x"]}}',
                               "500 Internal Server Error"),
    "unknown coding": OK + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n",
    "another shape": answer('{"sessions":{"a":[1]}}'),
    "a string": answer('"text"'),
    "a number": answer("-1e999"),
    "null": answer("null"),
    "duplicate names": answer('{"id":"ses_a","id":"../../x","version":"1","version":2}'),
    "escaped NUL": answer('{"id":"a\\u0000b","directory":"/a\\u0000/../b"}'),
    "lone surrogates": answer('[{"title":"\\ud800"}]'),
    "bad UTF-8": answer(b'[{"title":"\xff\xfe\xc0\x80"}]'),
    "markup": answer('[{"title":"</script><img src=x onerror=alert(1)>\\u001b[2J"}]'),
    "huge numbers": answer("[" + "9" * 100000 + "]"),
    "a long name": answer('{"%s":1}' % ("n" * 1000000)),
    "many names": answer("{" + ",".join('"k%d":%d' % (i, i) for i in range(50000)) + "}"),
    "8 MB": answer('["%s"]' % ("x" * 8000000)),
    "17 MB": answer('["%s"]' % ("x" * 17000000)),
}
CLOSING = {"truncated", "truncated chunk", "no last chunk", "nothing", "garbage", "SSH", "HTTP/2",
           "HTTP/0.9", "bare CR", "an endless error"}

EVENT = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
EVENTS = {
    "silence": None,
    "no stream": answer("[]"),
    "an error": answer("{}", "500 X"),
    "a redirect": HTTP["301 away"],
    "no field": EVENT + b"hello\n\nx\n\n",
    "no JSON": EVENT + b"data: hello\n\n" * 100,
    "half JSON": EVENT + b'data: {"type":"message\n\n',
    "other types": EVENT + b'data: 1\n\ndata: null\n\ndata: []\n\ndata: {"type":1}\n\n',
    "deep": EVENT + b"data: " + b"[" * 200000 + b"\n\n",
    "NULs": EVENT + b"data: \0\0\0\n\n" + b"\0" * 10000,
    "bad UTF-8": EVENT + b'data: {"type":"x","properties":{"sessionID":"\xff\xc0"}}\n\n',
    "duplicate names": EVENT + b'data: {"type":"a","type":"b","properties":{},"properties":1}\n\n',
    "only comments": repeated(b": ping\n" * 1000, EVENT),
    "only line feeds": repeated(b"\n" * 60000, EVENT),
    "only CRs": repeated(b"\r" * 60000, EVENT),
    "one endless line": repeated(b"x" * 65536, EVENT + b"data: "),
    "endless lines of one event": repeated(b"data: " + b"x" * 1000 + b"\n", EVENT),
    "endless events": repeated(b'data: {"type":"x","properties":{"sessionID":"ses_1"}}\n\n' * 500, EVENT),
    "drip": drip(EVENT + b"data: "),
    "retry": EVENT + b"retry: 0\nid: \0\nevent: x\ndata: {}\n\n",
    "bad chunks": b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n5\r\ndata:zz",
    "reset": reset,
}
