/* The built-in page: its files are part of the program, precompressed, with ETags. */
#ifndef WORKER_PAGE_H
#define WORKER_PAGE_H

#include <stddef.h>

struct exchange;

/* Render index.html for this base path ("" or "/a/b"): deep links work because it names its
 * base. Before the sandbox. 0 or -errno. */
int
page_init(const char *base_path);

/* Answer a request outside the API. `path` is decoded, below the base path, and begins with
 * '/': a file of the page, else index.html for a path without an extension, else 404; 405 for
 * methods other than GET and HEAD. Sets the page's own Content-Security-Policy, so the HTTP
 * side must not add another. */
void
page_handle(struct exchange *x, const char *path);

#endif
