/* What the key maker may still do when it begins to read what others wrote. */
#ifndef BROKER_KEYMAKER_FENCE_H
#define BROKER_KEYMAKER_FENCE_H

/* From the start: no dump, no new privileges, little memory and time. */
void
fence_early(void);

/* For good: read and write what is open, memory, and the end. Dies if it cannot. */
void
fence_up(void);

#endif
