/* Names that may reach the command line: run IDs, task IDs, path components. Pure. */
#ifndef POLICY_RUN_ID_H
#define POLICY_RUN_ID_H

#include <stdbool.h>
#include <stddef.h>

#define POLICY_RUN_ID_MAX 64u

/* 1 to 64 letters, digits, '.', '_' and '-', starting with a letter or digit; not "latest" in
 * any letter case (security model, "What the server can do"; contract 2.1). */
bool
policy_run_id_valid(const char *id, size_t len);

/* [A-Za-z0-9][A-Za-z0-9._-]{0,127} (contract 10.2). */
bool
policy_task_id_valid(const char *id, size_t len);

/* One directory name: not empty, "." or "..", no '/', no NUL, at most 255 bytes. */
bool
policy_component_valid(const char *name, size_t len);

/* A model's name as directories: components separated by single '/'. */
bool
policy_model_path_valid(const char *name, size_t len);

#endif
