/* The built-in page: files of the program's own memory, index.html rendered once. */
#include "worker/page.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <zlib.h>

#include "common/buf.h"
#include "common/hash.h"
#include "worker/exchange.h"
#include "worker/gzip.h"
#include "worker/page_assets.h"

#define INDEX_NAME "/index.html"
#define ETAG_SIZE 32u

/* No inline script or style, nothing from elsewhere, nobody's frame; base-uri 'self' because
 * index.html names its base; the one Trusted Types policy is the page's sanitiser. */
static const char page_policy[] =
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "font-src 'self'; connect-src 'self'; manifest-src 'self'; base-uri 'self'; "
    "form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; "
    "trusted-types ssebench";

/* index.html as this server serves it; lives as long as the process. */
static struct page_asset page_index;
static char page_index_etag[ETAG_SIZE];

static const struct page_asset *
find_asset(const char *path)
{
    size_t low = 0, high = n_page_assets;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strcmp(path, page_assets[middle].path);
        if (order == 0)
            return &page_assets[middle];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return NULL;
}

/* Base paths are checked by the settings; escaping is for whoever loosens that check. */
static void
add_attribute(struct buf *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("&<>\"'", *text))
            buf_add_format(out, "&#%d;", *text);
        else
            buf_add(out, text, 1);
    }
}

/* index.html with its base: in the place of the one the page was built with, else as the
 * first thing in <head>. */
static int
render_index(const struct page_asset *source, const char *base_path, struct buf *out)
{
    static const char built_base[] = "<base href=\"/\">";
    const char *text = (const char *)source->plain;
    size_t len = (size_t)(source->plain_end - source->plain);
    const char *at = memmem(text, len, built_base, strlen(built_base));
    const char *rest = at ? at + strlen(built_base) : NULL;
    if (!at) {
        at = memmem(text, len, "<head>", 6);
        if (!at)
            return -EBADMSG;
        at = rest = at + 6;
    }
    buf_add(out, text, (size_t)(at - text));
    buf_add_str(out, "<base href=\"");
    add_attribute(out, base_path);
    buf_add_str(out, "/\">");
    buf_add(out, rest, len - (size_t)(rest - text));
    return out->failed ? -ENOMEM : 0;
}

static int
compress_index(const struct buf *plain, struct buf *out)
{
    z_stream z = {0};
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return -ENOMEM;
    uLong bound = deflateBound(&z, plain->len);
    z.next_out = (Bytef *)buf_reserve(out, bound);
    z.avail_out = (uInt)bound;
    z.next_in = (Bytef *)plain->data;
    z.avail_in = (uInt)plain->len;
    int err = -ENOMEM;
    if (z.next_out && deflate(&z, Z_FINISH) == Z_STREAM_END) {
        buf_commit(out, bound - z.avail_out);
        err = 0;
    }
    deflateEnd(&z);
    return err;
}

static void
tag_index(const struct buf *plain)
{
    uint8_t digest[HASH_SIZE];
    size_t at = 0;

    hash_sha256(plain->data, plain->len, digest);
    page_index_etag[at++] = '"';
    for (unsigned i = 0; i < 10; i++)
        at += (size_t)snprintf(page_index_etag + at, ETAG_SIZE - at, "%02x", digest[i]);
    snprintf(page_index_etag + at, ETAG_SIZE - at, "\"");
}

int
page_init(const char *base_path)
{
    const struct page_asset *source = find_asset(INDEX_NAME);
    if (!source)
        return -ENOENT;
    struct buf plain, packed;
    buf_init(&plain, 0);
    buf_init(&packed, 0);
    int err = render_index(source, base_path, &plain);
    if (err == 0)
        err = compress_index(&plain, &packed);
    if (err == 0) {
        tag_index(&plain);
        page_index = *source;
        page_index.etag = page_index_etag;
        page_index.plain = (const unsigned char *)plain.data;
        page_index.plain_end = page_index.plain + plain.len;
        page_index.gzip = (const unsigned char *)packed.data;
        page_index.gzip_end = page_index.gzip + packed.len;
        return 0;
    }
    buf_done(&plain);
    buf_done(&packed);
    return err;
}

/* Tags are compared weakly: a quoted tag anywhere in the list, or "*" (RFC 9110, 13.1.2). */
static bool
is_known(struct span list, const char *etag)
{
    if (!list.at || list.len == 0)
        return false;
    if (list.len == 1 && list.at[0] == '*')
        return true;
    return memmem(list.at, list.len, etag, strlen(etag)) != NULL;
}

static void
answer_asset(struct exchange *x, const struct page_asset *asset)
{
    const struct request *request = exchange_request(x);
    exchange_header(x, "ETag", asset->etag);
    exchange_header(x, "Vary", "Accept-Encoding");
    exchange_header(x, "Cache-Control",
                    asset->immutable ? "public, max-age=31536000, immutable" : "no-cache");
    exchange_header(x, "Content-Security-Policy", page_policy);
    exchange_header(x, "Cross-Origin-Opener-Policy", "same-origin");
    if (is_known(request->if_none_match, asset->etag)) {
        exchange_static(x, 304, NULL, NULL, 0);
        return;
    }
    if (asset->gzip && gzip_accepted(request)) {
        exchange_header(x, "Content-Encoding", "gzip");
        exchange_static(x, 200, asset->type, asset->gzip,
                        (size_t)(asset->gzip_end - asset->gzip));
        return;
    }
    exchange_static(x, 200, asset->type, asset->plain,
                    (size_t)(asset->plain_end - asset->plain));
}

/* A path without an extension is a place in the page, not a file of it; so is every path that
 * names runs, whose IDs may hold dots. */
static bool
is_place(const char *path)
{
    if (strncmp(path, "/runs/", 6) == 0 || strncmp(path, "/compare/", 9) == 0)
        return true;
    return strchr(strrchr(path, '/'), '.') == NULL && strncmp(path, "/assets/", 8) != 0;
}

void
page_handle(struct exchange *x, const char *path)
{
    enum request_method method = exchange_request(x)->method;
    if (method != METHOD_GET && method != METHOD_HEAD) {
        exchange_header(x, "Allow", "GET, HEAD");
        exchange_error(x, 405, "Method not allowed", NULL);
        return;
    }
    const struct page_asset *asset = find_asset(path);
    if (asset && strcmp(path, INDEX_NAME) != 0)
        answer_asset(x, asset);
    else if (asset || is_place(path))
        answer_asset(x, &page_index);
    else
        exchange_error(x, 404, "Not found", NULL);
}
