/* Documents that the broker fetches and never reads: the doctor's report, the catalog's
 * manifest. Callers at the same time share one call. */
#ifndef BROKER_DOCUMENTS_H
#define BROKER_DOCUMENTS_H

#include <stddef.h>

struct broker;
struct documents;

struct documents *
documents_new(struct broker *b);
void
documents_free(struct documents *d);

/* Where a catalog's manifest is (contract 8.3): of a URL, the URL to fetch. False: no URL. */
int
documents_manifest_url(const char *location, char *out, size_t size);

#endif
