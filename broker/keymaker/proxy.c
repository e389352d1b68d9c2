/*
 * HTTP/1.0 on purpose: the answer is whole when the proxy closes, and never in chunks.
 * Distrusts: the proxy's answer (bounded; read only behind the fence, by keymaker.c).
 */
#include "broker/keymaker/proxy.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "broker/keymaker/order.h"
#include "common/limits.h"

/* An address taken apart. */
struct place {
    bool tls;
    char host[KEYMAKER_URL_SIZE]; /* without brackets, for the certificate */
    char authority[KEYMAKER_URL_SIZE];
    char connect[KEYMAKER_URL_SIZE + 8]; /* host:port as BIO takes it */
    char path[KEYMAKER_URL_SIZE]; /* "" or "/llm" */
};

static int
place_read(const char *url, struct place *p)
{
    const char *at, *end, *colon;
    size_t len;

    if (strncmp(url, "https://", 8) == 0)
        p->tls = true, at = url + 8;
    else if (strncmp(url, "http://", 7) == 0)
        p->tls = false, at = url + 7;
    else
        return -1;
    end = at + strcspn(at, "/?#");
    len = (size_t)(end - at);
    if (len == 0 || len >= sizeof p->authority)
        return -1;
    memcpy(p->authority, at, len);
    p->authority[len] = '\0';
    colon = strrchr(p->authority, ':');
    if (colon != NULL && strchr(colon, ']') != NULL)
        colon = NULL; /* inside of [::1] */
    snprintf(p->connect, sizeof p->connect, "%s%s", p->authority,
             colon != NULL ? "" : p->tls ? ":443" : ":80");
    len = colon != NULL ? (size_t)(colon - p->authority) : len;
    if (p->authority[0] == '[' && len > 2)
        snprintf(p->host, sizeof p->host, "%.*s", (int)(len - 2), p->authority + 1);
    else
        snprintf(p->host, sizeof p->host, "%.*s", (int)len, p->authority);
    snprintf(p->path, sizeof p->path, "%s", *end == '/' ? end : "");
    len = strlen(p->path);
    while (len > 0 && p->path[len - 1] == '/')
        p->path[--len] = '\0';
    return 0;
}

/* With TLS the name in the certificate must be the one we were told. */
static BIO *
open_tls(const struct place *p)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    BIO *bio = NULL;
    SSL *ssl = NULL;

    if (ctx == NULL || SSL_CTX_set_default_verify_paths(ctx) != 1)
        goto out;
    SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
    bio = BIO_new_ssl_connect(ctx);
    if (bio == NULL || BIO_get_ssl(bio, &ssl) != 1 || ssl == NULL)
        goto out;
    SSL_set_tlsext_host_name(ssl, p->host);
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), p->host) != 1)
        SSL_set1_host(ssl, p->host);
    BIO_set_conn_hostname(bio, p->connect);
out:
    SSL_CTX_free(ctx); /* the connection holds its own reference */
    return bio;
}

static bool
send_all(BIO *bio, const struct buf *b)
{
    size_t at = 0;

    while (at < b->len) {
        int n = BIO_write(bio, b->data + at, (int)(b->len - at));

        if (n <= 0)
            return false;
        at += (size_t)n;
    }
    return true;
}

static bool
receive_all(BIO *bio, struct buf *answer)
{
    for (;;) {
        char *room = buf_reserve(answer, 16384);
        int n;

        if (room == NULL)
            return false;
        n = BIO_read(bio, room, 16384);
        if (n <= 0)
            return answer->len > 0;
        buf_commit(answer, (size_t)n);
    }
}

static void
render(const struct place *p, const char *path, const char *master_key,
       const struct buf *body, struct buf *out)
{
    buf_add_format(out,
                   "POST %s%s HTTP/1.0\r\nHost: %s\r\nAuthorization: Bearer %s\r\n"
                   "Content-Type: application/json\r\nAccept: application/json\r\n"
                   "Content-Length: %zu\r\nConnection: close\r\n\r\n",
                   p->path, path, p->authority, master_key, body->len);
    buf_add(out, body->data, body->len);
}

int
proxy_post(const char *url, const char *path, const char *master_key, const struct buf *body,
           struct buf *ret_answer, char *error)
{
    struct place p = {0};
    struct buf out;
    BIO *bio;
    int r = -1;

    if (place_read(url, &p) != 0) {
        snprintf(error, KEYMAKER_ERROR_SIZE, "The proxy's address is no http URL");
        return -1;
    }
    buf_init(&out, 0);
    render(&p, path, master_key, body, &out);
    bio = p.tls ? open_tls(&p) : BIO_new_connect(p.connect);
    if (bio == NULL || out.failed)
        snprintf(error, KEYMAKER_ERROR_SIZE, "Out of memory");
    else if (BIO_do_connect(bio) <= 0)
        snprintf(error, KEYMAKER_ERROR_SIZE, "The LiteLLM proxy at %.150s does not answer",
                 p.connect);
    else if (!send_all(bio, &out) || !receive_all(bio, ret_answer))
        snprintf(error, KEYMAKER_ERROR_SIZE,
                 "The LiteLLM proxy at %.150s broke the connection off", p.connect);
    else
        r = 0;
    BIO_free_all(bio);
    buf_done(&out);
    return r;
}

int
proxy_answer_split(const struct buf *answer, int *ret_status, const char **ret_body,
                   size_t *ret_len)
{
    const char *at = answer->data, *head_end;

    if (answer->len < 12 || strncmp(at, "HTTP/1.", 7) != 0 || at[8] != ' ')
        return -1;
    for (int i = 9; i < 12; i++)
        if (at[i] < '0' || at[i] > '9')
            return -1;
    *ret_status = (at[9] - '0') * 100 + (at[10] - '0') * 10 + (at[11] - '0');
    head_end = memmem(at, answer->len, "\r\n\r\n", 4);
    if (head_end == NULL)
        return -1;
    *ret_body = head_end + 4;
    *ret_len = answer->len - (size_t)(head_end + 4 - at);
    return 0;
}
