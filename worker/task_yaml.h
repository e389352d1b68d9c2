/* A local task's config.yaml, of which one thing is read (contract 7.4). Pure. */
#ifndef WORKER_TASK_YAML_H
#define WORKER_TASK_YAML_H

#include <stddef.h>

/* The string `files.patch`: copied into ret_path. 0; -ENOENT: there is none; -EBADMSG: not YAML,
 * or nested deeper than LIMIT_JSON_DEPTH; -ENAMETOOLONG. */
int
task_yaml_patch(const char *bytes, size_t len, char *ret_path, size_t size);

#endif
