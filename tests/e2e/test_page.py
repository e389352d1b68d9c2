"""The built-in page: its files, caching, compression, deep links, policy."""
import gzip
import re

import pytest

from http_client import head


def index_of(server):
    r = server.get("/")
    assert r.status == 200
    return r.text


def assets_of(server):
    names = re.findall(r'(?:src|href)="\./(assets/[^"]+)"', index_of(server))
    assert len(names) >= 2, "a script and a style sheet"
    return ["/" + n for n in names]


def directives(response):
    text = response.header("Content-Security-Policy")
    return {d.split()[0]: d.split()[1:] for d in text.split(";")}


def test_index_names_its_base(shared):
    text = index_of(shared)
    assert text.count("<base ") == 1
    assert '<base href="%s/">' % shared.base in text
    assert text.index("<base ") < min(text.index("<link"), text.index("<script"))


def test_nothing_inline(shared):
    text = index_of(shared)
    assert not re.search(r"<style|style=|\son\w+=|<script(?![^>]*\ssrc=)", text)


def test_policy(shared):
    for path in ["/"] + assets_of(shared):
        r = shared.get(path)
        policy = directives(r)
        assert policy["default-src"] == ["'none'"]
        assert policy["script-src"] == ["'self'"] and policy["style-src"] == ["'self'"]
        assert policy["frame-ancestors"] == ["'none'"] and policy["form-action"] == ["'none'"]
        assert policy["require-trusted-types-for"] == ["'script'"]
        assert policy["trusted-types"] == ["ssebench"]
        assert "unsafe" not in r.header("Content-Security-Policy")
        assert r.header("X-Content-Type-Options") == "nosniff"
        assert r.header("Referrer-Policy") == "no-referrer"
        assert r.header("Cross-Origin-Opener-Policy") == "same-origin"
        assert r.header("Cross-Origin-Resource-Policy") == "same-origin"


def test_assets_are_for_ever_and_the_index_is_not(shared):
    assert shared.get("/").header("Cache-Control") == "no-cache"
    for path in assets_of(shared):
        r = shared.get(path)
        assert r.header("Cache-Control") == "public, max-age=31536000, immutable"
        kind = "text/css" if path.endswith(".css") else "text/javascript"
        assert r.header("Content-Type") == kind + "; charset=utf-8"


def test_compressed_and_plain_are_the_same(shared):
    for path in ["/"] + assets_of(shared):
        plain = shared.get(path)
        assert plain.header("Content-Encoding") is None
        packed = shared.get(path, {"Accept-Encoding": "br, gzip;q=0.8"})
        assert packed.header("Content-Encoding") == "gzip"
        assert packed.header("Vary") == plain.header("Vary") == "Accept-Encoding"
        assert gzip.decompress(packed.body) == plain.body
        assert len(packed.body) < len(plain.body)


@pytest.mark.parametrize("accept", ["gzip;q=0", "gzip; q=0.0", "identity", "xgzip", "br"])
def test_no_gzip_for_who_does_not_take_it(shared, accept):
    assert shared.get("/", {"Accept-Encoding": accept}).header("Content-Encoding") is None


def test_not_modified(shared):
    for path in ["/"] + assets_of(shared):
        etag = shared.get(path).header("ETag")
        for known in (etag, "W/" + etag, '"other", %s' % etag, "*"):
            r = shared.get(path, {"If-None-Match": known})
            assert (r.status, r.body) == (304, b"") and r.header("ETag") == etag
            assert r.header("Cache-Control")
        assert shared.get(path, {"If-None-Match": '"other"'}).status == 200


def test_deep_links_are_the_page(shared):
    index = index_of(shared)
    for path in ("/index.html", "/run/some-run", "/run/some-run/diff", "/settings"):
        assert shared.get(path).text == index, path


@pytest.mark.parametrize("path", ["/assets/none.js", "/assets/", "/favicon.ico", "/a/b.css",
                                  "/assets/page"])
def test_missing_files_are_missing(shared, path):
    r = shared.get(path)
    assert r.status == 404 and r.json()["error"]


def test_other_methods(shared):
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        r = shared.request(method, "/", {"Content-Length": "0"})
        assert r.status == 405 and r.header("Allow") == "GET, HEAD", method
    r = shared.request("HEAD", assets_of(shared)[0])
    assert r.status == 200 and r.body == b"" and int(r.header("Content-Length")) > 1000


def test_the_page_needs_no_token(guarded):
    for path in ["/"] + assets_of(guarded):
        with guarded.connect() as c:
            c.send(head("GET", guarded.base + path, [("Host", guarded.host)]))
            assert c.response().status == 200
