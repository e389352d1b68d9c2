/* Switches: 1 true yes on / 0 false no off, any case. Pure. */
#ifndef POLICY_FLAG_H
#define POLICY_FLAG_H

enum flag { FLAG_OFF, FLAG_ON, FLAG_BLANK, FLAG_BAD };

/* Read a switch's text; blanks around it are ignored. */
enum flag
policy_flag_parse(const char *text);

#endif
