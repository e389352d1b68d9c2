/*
 * HTTP/1.0 on purpose: the answer is whole when the proxy closes, and never in chunks.
 * Distrusts: the proxy, from its first byte (its answer is bounded).
 */
#include "broker/keymaker/proxy.h"

#include <openssl/bio.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "broker/keymaker/authorities.h"
#include "common/limits.h"

static int
take_apart(const char *url, struct proxy *p)
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

/* TLS above p->bio. The name in the certificate must be the one we were told. All files that
 * OpenSSL may want are read here. */
static int
add_tls(struct proxy *p)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    BIO *bio = NULL;
    SSL *ssl = NULL;

    if (ctx != NULL) {
        authorities_load(SSL_CTX_get_cert_store(ctx));
        SSL_CTX_set_verify(ctx, SSL_VERIFY_PEER, NULL);
        SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION);
        bio = BIO_new_ssl(ctx, 1);
        SSL_CTX_free(ctx); /* the connection holds its own reference */
    }
    tzset(); /* gmtime_r, for a certificate's dates, reads /etc/localtime the first time */
    if (bio == NULL || BIO_get_ssl(bio, &ssl) != 1 || ssl == NULL)
        return -1;
    SSL_set_tlsext_host_name(ssl, p->host);
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), p->host) != 1)
        SSL_set1_host(ssl, p->host);
    p->bio = BIO_push(bio, p->bio);
    return 0;
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
render(const struct proxy *p, const char *path, const char *master_key,
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
proxy_connect(struct proxy *p, const char *url, char *error)
{
    if (take_apart(url, p) != 0) {
        snprintf(error, KEYMAKER_ERROR_SIZE, "The proxy's address is no http URL");
        return -1;
    }
    p->bio = BIO_new_connect(p->connect);
    if (p->bio == NULL) {
        snprintf(error, KEYMAKER_ERROR_SIZE, "Out of memory");
        return -1;
    }
    if (BIO_do_connect(p->bio) <= 0) {
        snprintf(error, KEYMAKER_ERROR_SIZE, "The LiteLLM proxy at %.150s does not answer",
                 p->connect);
        return -1;
    }
    if (p->tls && add_tls(p) != 0) {
        snprintf(error, KEYMAKER_ERROR_SIZE, "TLS cannot be used");
        return -1;
    }
    return 0;
}

static bool
shake_hands(const struct proxy *p, char *error)
{
    SSL *ssl = NULL;

    if (BIO_do_handshake(p->bio) > 0)
        return true;
    if (BIO_get_ssl(p->bio, &ssl) == 1 && SSL_get_verify_result(ssl) != X509_V_OK)
        snprintf(error, KEYMAKER_ERROR_SIZE,
                 "The LiteLLM proxy at %.150s has no certificate that is trusted", p->connect);
    else
        snprintf(error, KEYMAKER_ERROR_SIZE, "The LiteLLM proxy at %.150s fails at TLS",
                 p->connect);
    return false;
}

int
proxy_post(const struct proxy *p, const char *path, const char *master_key,
           const struct buf *body, struct buf *ret_answer, char *error)
{
    struct buf out;
    int r = -1;

    buf_init(&out, 0);
    render(p, path, master_key, body, &out);
    if (out.failed) {
        snprintf(error, KEYMAKER_ERROR_SIZE, "Out of memory");
    } else if (!p->tls || shake_hands(p, error)) {
        if (send_all(p->bio, &out) && receive_all(p->bio, ret_answer))
            r = 0;
        else
            snprintf(error, KEYMAKER_ERROR_SIZE,
                     "The LiteLLM proxy at %.150s broke the connection off", p->connect);
    }
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
