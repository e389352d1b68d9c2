/*
 * The files of a git diff with their states and counted lines (contract 4.4), read piece by
 * piece: git's quoted and octal-escaped names, renames, copies, binary and mode-only changes,
 * `---`/`+++` inside hunks, CRLF. Two neighbours of one path (git's way to say that a file
 * became a link) are told as one modified file. Pure, in memory bounded by header lines.
 */
#ifndef WORKER_DIFF_FILES_H
#define WORKER_DIFF_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/buf.h"

#define DIFF_FILES_LINE (40u * 1024u) /* bytes of a header line: two names of 4 KiB, all octal */

enum diff_status {
    DIFF_MODIFIED, DIFF_ADDED, DIFF_DELETED, DIFF_RENAMED, DIFF_COPIED
};

struct diff_file {
    const char *path; /* unquoted bytes, any encoding; lives during the callback */
    size_t path_len;
    enum diff_status status;
    bool binary;
    uint64_t additions, deletions;
};

struct diff_files {
    void (*found)(void *ctx, const struct diff_file *file); /* a file is complete */
    void *ctx;
    struct buf line;      /* the header line at hand, cut at DIFF_FILES_LINE */
    struct buf path;      /* of the file at hand */
    struct buf held_path; /* of the file before it, told once its successor is known */
    struct diff_file file, held;
    bool open, has_held;
    bool in_hunk;    /* past the first @@ of the file */
    bool line_plain; /* the line at hand is content: only its first byte matters */
    bool line_start;
    bool path_sure;  /* `path` needs no help from further header lines */
};

void
diff_files_init(struct diff_files *d, void (*found)(void *ctx, const struct diff_file *file),
                void *ctx);
void
diff_files_done(struct diff_files *d);

/* More bytes, cut anywhere. */
void
diff_files_feed(struct diff_files *d, const char *bytes, size_t len);

/* The end: the last line and the last file are complete. */
void
diff_files_end(struct diff_files *d);

const char *
diff_status_name(enum diff_status status);

/* {"path":...,"status":...,"additions":n,"deletions":n}, with "binary":true where it is. */
void
diff_file_write(struct buf *out, const struct diff_file *file);

#endif
