/* The built-in page as files of a site without a server. */
#ifndef WORKER_EXPORT_PAGE_FILES_H
#define WORKER_EXPORT_PAGE_FILES_H

/* Write the page's files; index.html last, with its mode, its base and, since no server will
 * send one, its Content-Security-Policy. 0 or -errno. */
int
page_files_write(int out_fd);

#endif
