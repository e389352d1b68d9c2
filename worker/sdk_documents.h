/* The messages of sdk-ws about a run that is over, made from its files slice by slice. */
#ifndef WORKER_SDK_DOCUMENTS_H
#define WORKER_SDK_DOCUMENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/buf.h"

struct dialog_reader;

/* One document as messages. `fill` adds the next part of the message at hand, perhaps
 * nothing; `ret_ends` tells whether the message is complete with it. 1: go on; 0: the
 * document is over; -errno: its file cannot be read. */
struct sdk_document {
    int (*fill)(void *ctx, struct buf *out, bool *ret_ends);
    void (*done)(void *ctx);
    void *ctx;
};

/* All take the descriptor, also on failure. 0 or -ENOMEM. */
int
sdk_document_project(int fd, uint64_t size, struct sdk_document *ret_document);
int
sdk_document_files(int fd, uint64_t size, struct sdk_document *ret_document);
int
sdk_document_diff(int fd, uint64_t size, struct sdk_document *ret_document);
int
sdk_document_result(int fd, uint64_t size, struct sdk_document *ret_document);

/* Entries with seq > since, in batches of about 64 KiB; a longer entry is a batch alone. */
int
sdk_document_dialog(int fd, uint64_t size, double since, struct sdk_document *ret_document);

/* The same from a reader of the caller's making, which becomes the document's. */
int
sdk_document_dialog_of(struct dialog_reader *reader, struct sdk_document *ret_document);

#endif
