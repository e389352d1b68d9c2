/* What worker/web/embed.py writes: the page's files as they lie in the program. */
#ifndef WORKER_PAGE_ASSETS_H
#define WORKER_PAGE_ASSETS_H

#include <stdbool.h>
#include <stddef.h>

struct page_asset {
    const char *path; /* "/index.html", "/assets/app-1a2b3c.js" */
    const char *type; /* content type */
    const char *etag; /* quoted */
    const unsigned char *plain, *plain_end;
    const unsigned char *gzip, *gzip_end; /* NULL: does not shrink, only plain */
    bool immutable;   /* its name holds a hash of its content */
};

/* Sorted by path. */
extern const struct page_asset page_assets[];
extern const size_t n_page_assets;

#endif
