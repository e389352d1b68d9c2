/* The checkout's .env, as the contract reads it (9.1): one value of it at a time. */
#ifndef BROKER_DOTENV_H
#define BROKER_DOTENV_H

#include <stddef.h>

/* The value of `name` in this text. 0; -ENOENT: no line has it, or its value is empty;
 * -EMSGSIZE: it does not fit. `ret_value` is NUL-terminated. Pure. */
int
dotenv_find(const char *text, size_t len, const char *name, char *ret_value, size_t size);

/* The same, from our own environment (blanks around it do not count), else from
 * <checkout>/.env. */
int
dotenv_setting(const char *checkout, const char *name, char *ret_value, size_t size);

#endif
