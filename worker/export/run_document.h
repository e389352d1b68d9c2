/* data/runs/ID.json: everything of one run in a document (contract 10.9, front-end 5.11). */
#ifndef WORKER_EXPORT_RUN_DOCUMENT_H
#define WORKER_EXPORT_RUN_DOCUMENT_H

struct finished_run;
struct results;
struct site_file;

/* Write the run's document. 0, or -errno when a file of the run cannot be read although it is
 * there; what the site's file cannot take stays with that (site_file_end). */
int
run_document_write(const struct results *results, const struct finished_run *run,
                   struct site_file *f);

#endif
